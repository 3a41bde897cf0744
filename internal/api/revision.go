package api

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/store"
)

// mustExist is the revision of If-Match with a star.
const mustExist = store.AnyRevision - 1

// wantedRevision reads If-Match and If-None-Match: 0 is "must be new", store.AnyRevision is "whatever it is". least is the lowest revision that a
// reply names: 0 where what nobody has set yet has one.
func wantedRevision(r *http.Request, least int64) (int64, error) {
	for _, name := range []string{"If-Match", "If-None-Match"} {
		if len(r.Header[name]) > 1 {
			return 0, fault(codeParameter, name+" is there more than once", "").in("header:"+name, "must be there once")
		}
	}
	if none := r.Header.Get("If-None-Match"); none != "" {
		if none != "*" {
			return 0, fault(codeParameter, "If-None-Match takes only * here", "").in("header:If-None-Match",
				"must be *")
		}
		return 0, nil
	}
	match := r.Header.Get("If-Match")
	switch match {
	case "":
		return store.AnyRevision, nil
	case "*":
		return mustExist, nil
	}
	n, err := strconv.ParseInt(strings.Trim(match, `"`), 10, 64)
	if err != nil || n < least {
		return 0, fault(codeParameter, "If-Match is not an ETag of this daemon",
			`such as If-Match: "7"`).in("header:If-Match", "must be a quoted revision")
	}
	return n, nil
}

// preconditionOf distinguishes a failed If-Match from a change that raced with the request.
func preconditionOf(err error, revision int64) error {
	if p := problemOf(err); revision != store.AnyRevision && (p.Code == codeConflict || p.Code == codeExists) {
		return fault(codePrecondition, "", "")
	}
	return err
}

// existing is the revision that a change wants of what must exist by If-Match with a star; any other stays. find looks for it: store.ErrNotFound.
func existing(revision int64, find func() error, detail, hint string) (int64, error) {
	if revision != mustExist {
		return revision, nil
	}
	switch err := find(); {
	case errors.Is(err, store.ErrNotFound):
		return 0, fault(codePrecondition, detail, hint)
	case err != nil:
		return 0, err
	}
	return store.AnyRevision, nil
}

// unchanged returns the problem that what is about to go has another revision than the one that is wanted. A change between the look and
// the operation goes unnoticed: what is archived can be restored with it. now returns store.ErrNotFound where there is nothing.
func unchanged(revision int64, now func() (int64, error)) error {
	if revision == store.AnyRevision {
		return nil
	}
	have, err := now()
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if revision == mustExist && err == nil || revision == have {
		return nil
	}
	return fault(codePrecondition, "", "")
}

func (s *server) sendRevision(w *reply, status int, revision int64, v any) error {
	w.Header().Set("ETag", strconv.Quote(strconv.FormatInt(revision, 10)))
	return s.send(w, status, v)
}

// putStatus is the status of the reply to a PUT, which names the place of what it created.
func (s *server) putStatus(w *reply, r *http.Request, created bool) int {
	if !created {
		return http.StatusOK
	}
	w.Header().Set("Location", s.location(r.URL.EscapedPath()))
	return http.StatusCreated
}
