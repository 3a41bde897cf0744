package api

import (
	"mime"
	"net/http"
	"strings"
)

// home redirects browsers to the console. Other clients get the reply for a path that does not exist.
func (s *server) home(w *reply, r *http.Request) error {
	w.Header().Add("Vary", "Accept")
	if !wantsPage(r) {
		return s.noRoute(w, r)
	}
	return s.toConsole(w, r)
}

// toConsole redirects to a relative URL, which stays valid below the path of a proxy.
func (s *server) toConsole(w *reply, _ *http.Request) error {
	w.Header().Set("Location", "ui/")
	w.WriteHeader(http.StatusSeeOther)
	return nil
}

// wantsPage reports whether the Accept header lists text/html explicitly. Browsers list it, programs do not.
func wantsPage(r *http.Request) bool {
	for one := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		if media, params, err := mime.ParseMediaType(one); err == nil && media == "text/html" && params["q"] != "0" {
			return true
		}
	}
	return false
}

// consolePage serves the page of the console. It needs no token: the page asks for one.
func (s *server) consolePage(w *reply, r *http.Request) error {
	s.console.ServePage(w, r)
	return nil
}

// consoleFile serves a file of the console. Its path contains a version, since a page of another version may ask for
// it.
func (s *server) consoleFile(w *reply, r *http.Request) error {
	if !s.console.ServeFile(w, r, param(r, "version"), param(r, "folder")+"/"+param(r, "file")) {
		return fault(codeNotFound, "the console has no such file",
			"load /ui/ again: this daemon may be another version than the one that served the page")
	}
	return nil
}
