package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/recurgentd/recurgentd/internal/access"
	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/strict"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// Maintenance are the operations on a namespace that the interface needs from a runtime.
type Maintenance interface {
	Policy() agent.Policy
	PatchPolicy(ctx context.Context, patch json.RawMessage, actor string) (agent.Policy, error)
	SimulatePolicy(ctx context.Context, q operator.SimulationQuery) (operator.Simulation, error)
	// Stale lists tools and artifacts that were idle for that many days.
	Stale(ctx context.Context, days int) ([]store.Target, error)
	Prune(ctx context.Context, q operator.PruneRequest) (operator.PruneReport, error)
	// Restore brings back what was archived, or deleted recently.
	Restore(ctx context.Context, t store.Target, actor, reason string) (operator.RestoreReport, error)
	// Undo returns operator.ErrAdminOnly if the request is not an admin's but has to be.
	Undo(ctx context.Context, q operator.UndoRequest) (operator.Undone, error)
	// Export writes an archive of one namespace, or of all if only is "".
	Export(ctx context.Context, w io.Writer, only agent.Namespace, actor string) error
}

// maxDays bounds periods in days, to 100 years.
const maxDays = 36500

// getStale lists what a prune with the same number of days would remove.
func (s *server) getStale(w *reply, r *http.Request) error {
	q := readQuery(r)
	days := q.integer("days", 30, 0, maxDays)
	if err := q.err(); err != nil {
		return err
	}
	targets, err := w.run.Stale(r.Context(), days)
	if err != nil {
		return err
	}
	if targets == nil {
		targets = []store.Target{}
	}
	return s.send(w, http.StatusOK, list[store.Target]{Data: targets})
}

// prune archives or deletes idle tools and artifacts. It is a dry run unless dry_run is false.
func (s *server) prune(w *reply, r *http.Request) error {
	q := operator.PruneRequest{Mode: "archive", DryRun: true, Actor: w.owner} // safe defaults
	given := false
	err := s.decode(w, r, false, func(f *fields, name, v []byte) {
		switch string(name) {
		case "stale_days":
			given = !isNull(v)
			f.integer("/stale_days", v, &q.StaleDays, 0, maxDays)
		case "mode":
			f.text("/mode", v, &q.Mode)
			if q.Mode != "archive" && q.Mode != "delete" {
				f.bad("/mode", "must be archive or delete", "")
			}
		case "dry_run":
			f.boolean("/dry_run", v, &q.DryRun)
		case "reason":
			f.short("/reason", v, &q.Reason, maxReason)
		default:
			f.unknown("", name, "stale_days, mode, dry_run, reason")
		}
	})
	if err != nil {
		return err
	}
	if !given {
		return required("stale_days", "say for how many days a tool or artifact must have been idle")
	}
	report, err := w.run.Prune(r.Context(), q)
	if err != nil {
		return err
	}
	if report.Targets == nil {
		report.Targets = []store.Target{}
	}
	return s.send(w, http.StatusOK, report)
}

// restore brings an archived tool or artifact back.
func (s *server) restore(w *reply, r *http.Request) error {
	var t store.Target
	var reason string
	given := false
	err := s.decode(w, r, false, func(f *fields, name, v []byte) {
		switch string(name) {
		case "role":
			given = !isNull(v)
			f.name("/role", "role", v, &t.Role)
		case "method":
			f.name("/method", "method", v, &t.Method)
		case "reason":
			f.short("/reason", v, &reason, maxReason)
		default:
			f.unknown("", name, "role, method, reason")
		}
	})
	if err != nil {
		return err
	}
	if !given {
		return required("role", "say which tool comes back")
	}
	report, err := w.run.Restore(r.Context(), t, w.owner, reason)
	if err != nil {
		return missing(err, "archived tool or program of that name")
	}
	return s.send(w, http.StatusOK, report)
}

// undo undoes the operation of an audit entry.
func (s *server) undo(w *reply, r *http.Request) error {
	var reason string
	err := s.decode(w, r, true, func(f *fields, name, v []byte) {
		if string(name) != "reason" {
			f.unknown("", name, "reason")
			return
		}
		f.short("/reason", v, &reason, maxReason)
	})
	if err != nil {
		return err
	}
	entry, err := w.run.Undo(r.Context(), operator.UndoRequest{AuditID: chi.URLParam(r, "id"), Reason: reason,
		Actor: w.owner, Admin: w.who.Scopes.Has(access.Admin)})
	if errors.Is(err, operator.ErrAdminOnly) {
		return w.needs(access.Admin)
	}
	if err != nil {
		return missing(err, "audit entry of that id")
	}
	return s.send(w, http.StatusOK, entry)
}

func (s *server) getPolicy(w *reply, _ *http.Request) error {
	return s.send(w, http.StatusOK, w.run.Policy())
}

// patchPolicy applies a merge patch. Only an admin may change the caps of spending.
func (s *server) patchPolicy(w *reply, r *http.Request) error {
	patch, err := s.readObject(w, r)
	if err != nil {
		return err
	}
	if err := strict.Members(patch, func(name, _ []byte) error {
		if strings.EqualFold(string(name), "spend") { // encoding/json matches names in any case
			return w.needs(access.Admin)
		}
		return nil
	}); err != nil {
		return err
	}
	p, err := w.run.PatchPolicy(r.Context(), patch, w.owner)
	if err != nil {
		return err
	}
	return s.send(w, http.StatusOK, p)
}

// readObject returns a body that was validated as a JSON object but not decoded.
func (s *server) readObject(w *reply, r *http.Request) (json.RawMessage, error) {
	data, err := s.readBody(w, r)
	if err != nil {
		return nil, err
	}
	if err := strict.Members(data, func(_, _ []byte) error { return nil }); err != nil {
		return nil, shapeProblem(err)
	}
	return data, nil
}

func (s *server) getVersion(w *reply, r *http.Request) error {
	if sent, err := s.ofReplica(w, r); sent || err != nil {
		return err
	}
	return s.sendNow(w, http.StatusOK, w.run.Version())
}

type health struct {
	Status string `json:"status"`
}

// healthz reports that the process is alive, whatever the state of its store.
func (s *server) healthz(w *reply, _ *http.Request) error {
	return s.sendNow(w, http.StatusOK, health{"ok"})
}

// readyz reports whether the daemon takes calls.
func (s *server) readyz(w *reply, _ *http.Request) error {
	err := s.o.Namespaces.Ready()
	if err == nil {
		return s.sendNow(w, http.StatusOK, health{"ready"})
	}
	// problemOf alone would report and log other causes as internal errors
	for _, known := range []error{runtime.ErrDraining, store.ErrAway, store.ErrReadOnly} {
		if errors.Is(err, known) {
			return problemOf(known)
		}
	}
	s.log.Debug().Err(err).Msg("not ready")
	return fault(codeNotReady, "", "")
}

// metricsNeed returns the scope that /metrics needs. Public metrics need none, and have no labels that name a role or a
// method.
func (s *server) metricsNeed() access.Scope {
	if s.o.MetricsPublic {
		return anyone
	}
	return access.Admin
}

// metrics returns the handler of /metrics.
func (s *server) metrics() handler {
	g := s.o.Registry
	if s.o.MetricsPublic {
		g = telemetry.Public(g)
	}
	h := promhttp.HandlerFor(g, promhttp.HandlerOpts{EnableOpenMetrics: true})
	return func(w *reply, r *http.Request) error {
		h.ServeHTTP(w, r)
		return nil
	}
}

func (s *server) openAPI(w *reply, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/yaml")
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(s.o.OpenAPI)
	return nil
}

// noMethod answers a request whose path exists but not with that method. It lists the allowed methods.
func (s *server) noMethod(w *reply, r *http.Request) error {
	path := r.URL.RawPath
	if path == "" {
		path = r.URL.Path
	}
	var allowed []string
	routes := chi.RouteContext(r.Context()).Routes
	for _, method := range []string{"DELETE", "GET", "PATCH", "POST", "PUT"} {
		if routes.Match(chi.NewRouteContext(), method, path) {
			allowed = append(allowed, method)
			if method == http.MethodGet {
				allowed = append(allowed, http.MethodHead)
			}
		}
	}
	w.Header().Set("Allow", strings.Join(slices.Compact(allowed), ", "))
	hint := "methods of this path: " + strings.Join(allowed, ", ")
	if r.Method == http.MethodPost && path == "/v1/calls" {
		hint += "; a call is made in a session: POST /v1/sessions, then POST /v1/sessions/{id}/calls"
	}
	return fault(codeMethod, r.Method+" is not a method of "+r.URL.EscapedPath(), hint)
}
