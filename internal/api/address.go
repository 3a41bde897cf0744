package api

import (
	"bytes"
	"errors"
	"net/http"
)

// address is the absolute address of a path of this daemon: below the public one where that is known, else below the scheme and the host by which the client
// has reached it. What a proxy says of the client's scheme is not believed: anybody could say it.
func (s *server) address(r *http.Request, path string) string {
	switch {
	case s.o.PublicURL != "":
		return s.o.PublicURL + path
	case r.TLS == nil:
		return "http://" + r.Host + path
	}
	return "https://" + r.Host + path
}

// location is the value of the header Location for a path of this daemon. Where the public address is known it is absolute, since that may have a path of its own.
func (s *server) location(path string) string { return s.o.PublicURL + path }

// defaultServer is where the OpenAPI document has the daemon.
var defaultServer = []byte("\n  - url: http://127.0.0.1:8420\n    description: the default address\n")

// withServer returns the OpenAPI document with the public address in the place of the default one.
func withServer(document []byte, public string) ([]byte, error) {
	if bytes.Count(document, defaultServer) != 1 {
		return nil, errors.New("api: OpenAPI has no server at the default address")
	}
	return bytes.Replace(document, defaultServer, []byte("\n  - url: "+public+"\n"), 1), nil
}
