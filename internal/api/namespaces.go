package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/recurgentd/recurgentd/internal/access"
	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Namespaces is what the interface asks of all namespaces together.
type Namespaces interface {
	// Use returns what serves the namespace, and what must be called when it is not needed any more. Where named is set, as for a namespace
	// that a header names, one that does not exist is store.ErrNotFound; that of a token exists.
	Use(ctx context.Context, name agent.Namespace, named bool) (run Runtime, done func(), err error)
	Ready() error

	ListNamespaces(ctx context.Context, after agent.Namespace, limit int) ([]store.NamespaceInfo, error)
	Namespace(ctx context.Context, name agent.Namespace) (store.NamespaceInfo, error)
	CreateNamespace(ctx context.Context, name agent.Namespace, reason, actor string) (store.NamespaceInfo, error)
	EraseNamespace(ctx context.Context, name agent.Namespace, reason, actor string) error
}

// Holdings is how much a namespace holds.
type Holdings struct {
	Sessions    int64 `json:"sessions"`
	Tools       int64 `json:"tools"`
	Methods     int64 `json:"methods"`
	Connections int64 `json:"connections"`
}

// namespaceHeader is the header in which an admin names the namespace to act in.
const namespaceHeader = "Recurgent-Namespace"

// enterNamespace has the request act in the namespace of its principal, or in the one that an admin names.
func (s *server) enterNamespace(w *reply, r *http.Request) error {
	name, named := w.who.Namespace, false
	if given := r.Header[namespaceHeader]; len(given) > 0 {
		if len(given) > 1 {
			return fault(codeParameter, "the header "+namespaceHeader+" is there more than once",
				"").in("header:"+namespaceHeader, "more than one")
		}
		if name = agent.Namespace(given[0]); name.Validate() != nil {
			return badNamespace("header:"+namespaceHeader, name)
		}
		if named = name != w.who.Namespace; named {
			if err := w.needs(access.Admin); err != nil {
				return err
			}
		}
	}
	run, leave, err := s.o.Namespaces.Use(r.Context(), name, named)
	if err != nil {
		return noNamespace(err, name)
	}
	if named {
		w.as = w.who.Visitor()
		w.owner = w.as.Owner()
	}
	w.leave, w.in = leave, name
	w.use(run)
	return nil
}

func badNamespace(at string, name agent.Namespace) error {
	return fault(codeParameter, name.Validate().Error(), "").in(at, "is not the name of a namespace")
}

func noNamespace(err error, name agent.Namespace) error {
	if errors.Is(err, store.ErrNotFound) {
		return fault(codeNotFound, "there is no namespace "+strconv.Quote(string(name)),
			"PUT /v1/namespaces/"+string(name)+" makes it, GET /v1/namespaces lists those that there are.")
	}
	return err
}

// untilErased returns the request with a context that also ends when its namespace is deleted. end must be called after it.
func (w *reply) untilErased(r *http.Request) (until *http.Request, end func()) {
	ctx, cancel := context.WithCancelCause(r.Context())
	erased := w.run.Erased()
	stop := context.AfterFunc(erased, func() { cancel(context.Cause(erased)) })
	return r.WithContext(ctx), func() {
		stop()
		cancel(nil)
	}
}

// namespaceView is a namespace in lists; with what it holds where it is asked for by name.
type namespaceView struct {
	Name      agent.Namespace `json:"name"`
	CreatedAt *time.Time      `json:"created_at"` // null where it is not known
	Holds     *Holdings       `json:"holds,omitempty"`
}

func viewOfNamespace(info store.NamespaceInfo) namespaceView {
	v := namespaceView{Name: info.Name}
	if !info.CreatedAt.IsZero() {
		at := info.CreatedAt.UTC()
		v.CreatedAt = &at
	}
	return v
}

func namespaceParam(r *http.Request) (agent.Namespace, error) {
	name := agent.Namespace(param(r, "name"))
	if name.Validate() != nil {
		return "", badNamespace("path:name", name)
	}
	return name, nil
}

func (s *server) listNamespaces(w *reply, r *http.Request) error {
	q := readQuery(r)
	limit, after := q.limit(), q.text("after")
	if err := q.err(); err != nil {
		return err
	}
	all, err := s.o.Namespaces.ListNamespaces(r.Context(), agent.Namespace(after), limit+1)
	if err != nil {
		return err
	}
	views := make([]namespaceView, 0, len(all))
	for _, info := range all {
		views = append(views, viewOfNamespace(info))
	}
	return s.send(w, http.StatusOK, page(views, limit, func(v namespaceView) string { return string(v.Name) }))
}

func (s *server) getNamespace(w *reply, r *http.Request) error {
	name, err := namespaceParam(r)
	if err != nil {
		return err
	}
	info, err := s.o.Namespaces.Namespace(r.Context(), name)
	if err != nil {
		return noNamespace(err, name)
	}
	run, done, err := s.o.Namespaces.Use(r.Context(), name, true)
	if err != nil {
		return noNamespace(err, name)
	}
	defer done()
	view := viewOfNamespace(info)
	if view.Holds, err = run.Holdings(r.Context()); err != nil {
		return err
	}
	return s.send(w, http.StatusOK, view)
}

func (s *server) putNamespace(w *reply, r *http.Request) error {
	name, err := namespaceParam(r)
	if err != nil {
		return err
	}
	reason, err := queryReason(r)
	if err != nil {
		return err
	}
	status := http.StatusCreated
	info, err := s.o.Namespaces.CreateNamespace(r.Context(), name, reason, w.owner)
	if errors.Is(err, store.ErrExists) {
		status = http.StatusOK
		info, err = s.o.Namespaces.Namespace(r.Context(), name)
	}
	if err != nil {
		return err
	}
	return s.send(w, status, viewOfNamespace(info))
}

func (s *server) deleteNamespace(w *reply, r *http.Request) error {
	name, err := namespaceParam(r)
	if err != nil {
		return err
	}
	reason, err := queryReason(r)
	if err != nil {
		return err
	}
	err = s.o.Namespaces.EraseNamespace(r.Context(), name, reason, w.owner)
	if errors.Is(err, store.ErrDefault) {
		return fault(codeConflict, err.Error(), "Delete its tools and sessions, or begin with another data directory.")
	}
	if err != nil {
		return noNamespace(err, name)
	}
	return s.noContent(w)
}
