package api

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/store"
)

// mustExist is the revision that "If-Match: *" asks for.
const mustExist = store.AnyRevision - 1

// wantedRevision reads If-Match and If-None-Match. It returns 0 if the resource must be new, store.AnyRevision if there
// is no condition, or mustExist. least is the lowest revision of the resource: 0 if even an unset one has a revision.
func wantedRevision(r *http.Request, least int64) (int64, error) {
	for _, name := range []string{"If-Match", "If-None-Match"} {
		if len(r.Header[name]) > 1 {
			return 0, fault(codeParameter, name+" appears more than once", "").in("header:"+name, "must appear once")
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

// preconditionOf turns a conflict into a failed precondition, if the client set one. Without one it stays a conflict.
func preconditionOf(err error, revision int64) error {
	if p := problemOf(err); revision != store.AnyRevision && (p.Code == codeConflict || p.Code == codeExists) {
		return fault(codePrecondition, "", "")
	}
	return err
}

// existing resolves mustExist: it returns store.AnyRevision if find succeeds, and a failed precondition if find returns
// store.ErrNotFound. Other revisions pass unchanged.
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

// unchanged returns a failed precondition if the resource to delete does not have the wanted revision. now returns its
// revision, or store.ErrNotFound. A change between the check and the deletion goes unnoticed, but deleting archives,
// and a restore brings the change back.
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

// sendRevision is send with the revision as ETag.
func (s *server) sendRevision(w *reply, status int, revision int64, v any) error {
	w.Header().Set("ETag", strconv.Quote(strconv.FormatInt(revision, 10)))
	return s.send(w, status, v)
}

// putStatus returns the status of the reply to a PUT. It sets Location if the resource was created.
func (s *server) putStatus(w *reply, r *http.Request, created bool) int {
	if !created {
		return http.StatusOK
	}
	w.Header().Set("Location", s.location(r.URL.EscapedPath()))
	return http.StatusCreated
}
