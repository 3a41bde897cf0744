package api

import (
	"mime"
	"net/http"
	"strings"
)

// home leads browsers to the console. Others get what every address without a resource answers.
func (s *server) home(w *reply, r *http.Request) error {
	w.Header().Add("Vary", "Accept")
	if !wantsPage(r) {
		return s.noRoute(w, r)
	}
	return s.toConsole(w, r)
}

// toConsole redirects by a relative address, which holds behind a proxy's path too.
func (s *server) toConsole(w *reply, _ *http.Request) error {
	w.Header().Set("Location", "ui/")
	w.WriteHeader(http.StatusSeeOther)
	return nil
}

// wantsPage reports whether the request names HTML as a type that it takes, which browsers do and programs do not.
func wantsPage(r *http.Request) bool {
	for one := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		if media, params, err := mime.ParseMediaType(one); err == nil && media == "text/html" && params["q"] != "0" {
			return true
		}
	}
	return false
}

func (s *server) consolePage(w *reply, r *http.Request) error {
	s.console.ServePage(w, r)
	return nil
}

func (s *server) consoleFile(w *reply, r *http.Request) error {
	if !s.console.ServeFile(w, r, param(r, "version"), param(r, "folder")+"/"+param(r, "file")) {
		return fault(codeNotFound, "the console has no such file",
			"load /ui/ again: this daemon may be another version than the one that served the page")
	}
	return nil
}
