package api

import (
	"bytes"
	"errors"
	"net/http"
)

// address returns the absolute URL of a path of this daemon. It is below PublicURL if that is set, else below the
// scheme and host by which the client reached the daemon. Headers such as X-Forwarded-Proto are ignored: any client
// can set them.
func (s *server) address(r *http.Request, path string) string {
	switch {
	case s.o.PublicURL != "":
		return s.o.PublicURL + path
	case r.TLS == nil:
		return "http://" + r.Host + path
	}
	return "https://" + r.Host + path
}

// location returns the value of the Location header for a path of this daemon. With a PublicURL it is absolute, since
// clients may reach the daemon below another path.
func (s *server) location(path string) string { return s.o.PublicURL + path }

// defaultServer is the entry of the OpenAPI document's servers that withServer replaces.
var defaultServer = []byte("\n  - url: http://127.0.0.1:8420\n    description: the default address\n")

// withServer returns the OpenAPI document with the public URL in place of the default address. It returns an error
// unless the document has that address exactly once.
func withServer(document []byte, public string) ([]byte, error) {
	if bytes.Count(document, defaultServer) != 1 {
		return nil, errors.New("api: OpenAPI has no server at the default address")
	}
	return bytes.Replace(document, defaultServer, []byte("\n  - url: "+public+"\n"), 1), nil
}
