package fetch

import (
	"net/http"
	"net/textproto"
	"net/url"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// ownHeader returns the headers that are always sent.
func ownHeader() http.Header {
	return http.Header{"User-Agent": {"recurgentd"}, "Accept": {"*/*"}, "Accept-Encoding": {acceptEncoding}}
}

// errForbiddenHeader lists headers that programs must not set, in canonical form.
var errForbiddenHeader = map[string]bool{"Host": true, "Connection": true, "Content-Length": true,
	"Transfer-Encoding": true, "Te": true, "Trailer": true,
	"Upgrade": true, "Keep-Alive": true, "Expect": true, "Accept-Encoding": true, "Proxy-Authorization": true,
	"Proxy-Connection": true,
	// Some servers take the method from these, which would turn an unguarded GET into a write.
	"X-Http-Method": true, "X-Http-Method-Override": true, "X-Method-Override": true}

// checkRequest checks what a program wants to send, and returns the method in upper case and the header.
func checkRequest(q *recurgent.Request) (method string, header http.Header, err error) {
	method = strings.ToUpper(q.Method)
	switch method {
	case "":
		method = http.MethodGet
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS":
	default:
		return "", nil, deny("the method is not one of GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS")
	}
	if len(q.Body) > maxRequestBody {
		return "", nil, deny("the request's body has more than %d bytes", maxRequestBody)
	}
	header = ownHeader()
	sum := 0
	for name, value := range q.Header {
		// Many servers do not distinguish underscores from hyphens.
		canonical := textproto.CanonicalMIMEHeaderKey(strings.ReplaceAll(name, "_", "-"))
		sum += len(name) + len(value)
		switch {
		case errForbiddenHeader[canonical] || strings.HasPrefix(canonical, "Proxy-"):
			return "", nil, deny("programs cannot set the header %s", canonical)
		case len(q.Header) > maxFetchHeaders || sum > maxFetchHeaderSum:
			return "", nil, deny("the request has too many headers")
		}
		header.Set(name, value) // net/http rejects invalid headers
	}
	return method, header, nil
}

// redirectTarget returns the absolute target of a redirect, or false if the answer is not one that can be followed.
func redirectTarget(at *url.URL, answer *http.Response) (*url.URL, bool) {
	switch answer.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect,
		http.StatusPermanentRedirect:
	default:
		return nil, false
	}
	location := answer.Header.Get("Location")
	if location == "" || len(location) > maxURL {
		return nil, false
	}
	next, err := at.Parse(location)
	return next, err == nil
}

// SafeURL returns the address without user information and fragment, with bounded length, for notes and logs.
func SafeURL(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return "(unreadable address)"
	}
	u.User = nil
	u.Fragment = ""
	return wire.BoundText([]byte(u.String()), maxURL)
}
