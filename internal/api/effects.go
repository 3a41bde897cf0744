package api

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Effects are the operations on effects manifests that the interface needs from a runtime. A manifest lists what the
// programs of a method may reach.
type Effects interface {
	Effects(ctx context.Context, role, method string) (operator.MethodEffects, error)
	PutEffects(ctx context.Context, q operator.EffectsPut) (operator.MethodEffects, error)
}

func (s *server) getEffects(w *reply, r *http.Request) error {
	role, method, err := target(r)
	if err != nil {
		return err
	}
	v, err := w.run.Effects(r.Context(), role, method)
	if err != nil {
		return noArtifact(err, role, method)
	}
	return s.sendRevision(w, http.StatusOK, v.Revision, v)
}

// putEffects sets the lists of the manifest that the body has. The other lists stay unchanged.
func (s *server) putEffects(w *reply, r *http.Request) error {
	role, method, err := target(r)
	if err != nil {
		return err
	}
	revision, err := wantedRevision(r, 0)
	if err != nil {
		return err
	}
	q := operator.EffectsPut{Role: role, Method: method, Actor: w.owner}
	err = s.decode(w, r, false, func(f *fields, name, v []byte) {
		switch string(name) {
		case "hosts":
			q.Hosts = f.names("/hosts", v)
		case "methods":
			q.Methods = f.names("/methods", v)
		case "tools":
			q.Tools = f.names("/tools", v)
		case "files":
			q.Files = f.names("/files", v)
		case "reason":
			f.short("/reason", v, &q.Reason, maxReason)
		// members that GET returns are accepted and ignored
		case "role", "method_name", "origin", "policy", "revision", "approved_by", "approved_at", "generations":
		default:
			f.unknown("", name, "hosts, methods, tools, files, reason")
		}
	})
	if err != nil {
		return err
	}
	if q.Hosts == nil && q.Methods == nil && q.Tools == nil && q.Files == nil {
		return required("hosts", `such as {"hosts": ["api.example.org"], "methods": ["GET"]}`)
	}
	q.Revision, err = existing(revision, func() error {
		v, err := w.run.Effects(r.Context(), role, method)
		// a manifest that was never written counts as missing for If-Match
		if err == nil && v.Revision == 0 {
			err = store.ErrNotFound
		}
		return err
	}, "the method has no effects manifest yet", "leave If-Match out to write one")
	if err != nil {
		return err
	}
	v, err := w.run.PutEffects(r.Context(), q)
	if err != nil {
		return preconditionOf(err, q.Revision)
	}
	return s.sendRevision(w, http.StatusOK, v.Revision, v)
}

// names reads a list of strings. It returns nil for null and an empty list for [].
func (f *fields) names(at string, v []byte) []string {
	if isNull(v) {
		return nil
	}
	all := []string{}
	if json.Unmarshal(v, &all) != nil {
		f.wrongKind(at, "an array of strings", v)
	}
	return all
}
