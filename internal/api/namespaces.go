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

// Namespaces are the operations across namespaces that the interface needs.
type Namespaces interface {
	// Use returns the runtime of the namespace. The caller must call done when it does not need the runtime any more.
	// With named, as for a name from a header, a namespace that does not exist is store.ErrNotFound; a token's own
	// namespace always exists.
	Use(ctx context.Context, name agent.Namespace, named bool) (run Runtime, done func(), err error)
	// Ready returns nil, or why the daemon does not take calls.
	Ready() error

	ListNamespaces(ctx context.Context, after agent.Namespace, limit int) ([]store.NamespaceInfo, error)
	Namespace(ctx context.Context, name agent.Namespace) (store.NamespaceInfo, error)
	// CreateNamespace returns store.ErrExists if the namespace exists.
	CreateNamespace(ctx context.Context, name agent.Namespace, reason, actor string) (store.NamespaceInfo, error)
	// EraseNamespace deletes the namespace with everything in it. For the default namespace it returns
	// store.ErrDefault.
	EraseNamespace(ctx context.Context, name agent.Namespace, reason, actor string) error
}

// Holdings counts the contents of a namespace.
type Holdings struct {
	Sessions    int64 `json:"sessions"`
	Tools       int64 `json:"tools"`
	Methods     int64 `json:"methods"`
	Connections int64 `json:"connections"`
}

// namespaceHeader is the header in which an admin names the namespace to act in.
const namespaceHeader = "Recurgent-Namespace"

// enterNamespace selects the namespace of the request: the principal's own, or the one that an admin names in the
// header. On success, w.leave must be called.
func (s *server) enterNamespace(w *reply, r *http.Request) error {
	name, named := w.who.Namespace, false
	if given := r.Header[namespaceHeader]; len(given) > 0 {
		if len(given) > 1 {
			return fault(codeParameter, "the header "+namespaceHeader+" appears more than once",
				"").in("header:"+namespaceHeader, "more than one")
		}
		if name = agent.Namespace(given[0]); name.Validate() != nil {
			return badNamespace("header:"+namespaceHeader, name)
		}
		// naming one's own namespace needs no further right
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
		// a name that no principal of that namespace has
		w.as = w.who.Visitor()
		w.owner = w.as.Owner()
	}
	w.run, w.leave, w.in = run, leave, name
	return nil
}

func badNamespace(at string, name agent.Namespace) error {
	return fault(codeParameter, name.Validate().Error(), "").in(at, "is not the name of a namespace")
}

// noNamespace turns store.ErrNotFound into the problem that the namespace does not exist. Other errors pass unchanged.
func noNamespace(err error, name agent.Namespace) error {
	if errors.Is(err, store.ErrNotFound) {
		return fault(codeNotFound, "there is no namespace "+strconv.Quote(string(name)),
			"PUT /v1/namespaces/"+string(name)+" creates it, GET /v1/namespaces lists all.")
	}
	return err
}

// untilErased returns the request with a context that also ends when its namespace is deleted. The caller must call
// end.
func (w *reply) untilErased(r *http.Request) (until *http.Request, end func()) {
	ctx, cancel := context.WithCancelCause(r.Context())
	erased := w.run.Erased()
	stop := context.AfterFunc(erased, func() { cancel(context.Cause(erased)) })
	return r.WithContext(ctx), func() {
		stop()
		cancel(nil)
	}
}

// namespaceView is a namespace in replies. Holds is set only for a single namespace.
type namespaceView struct {
	Name      agent.Namespace `json:"name"`
	CreatedAt *time.Time      `json:"created_at"` // null if unknown
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

// getNamespace returns a namespace with the number of its contents. Counting opens the namespace and reads all of it.
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

// putNamespace creates a namespace. Repeating it is not an error: the status is then 200.
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

// deleteNamespace deletes a namespace with all its contents. It cannot be undone.
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
		return fault(codeConflict, err.Error(), "Delete its tools and sessions, or start with another data directory.")
	}
	if err != nil {
		return noNamespace(err, name)
	}
	return s.noContent(w)
}
