package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/recurgentd/recurgentd/internal/access"
	"github.com/recurgentd/recurgentd/internal/runtime/predict"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/strict"
)

// Predictions are the operations on signatures, and questions to the model, that the interface needs from a runtime.
type Predictions interface {
	Predict(ctx context.Context, q predict.Query) (predict.Answer, error)
	ListSignatures(ctx context.Context, after string, limit int) ([]predict.Named, error)
	Signature(ctx context.Context, name string) (predict.Named, error)
	PutSignature(ctx context.Context, name string, raw json.RawMessage, actor string) (s predict.Named, created bool,
		err error)
	DeleteSignature(ctx context.Context, name, actor string) error
	ModelStatus() (s provider.Status, asked bool) // asked is false if programs come from a recording
	// CheckModel asks the model for a test program at the owner's expense. asked is false if there is no model.
	CheckModel(ctx context.Context, owner string) (c provider.Check, asked bool, err error)
}

const predictNames = "signature, inputs, demos, model, adapter, session_id, debug"

// predict handles POST /v1/predict and POST /v1/signatures/{name}/predict. The latter takes the named signature and
// refuses one in the body.
func (s *server) predict(w *reply, r *http.Request) error {
	q := predict.Query{Name: param(r, "name"), Owner: w.owner, Operates: w.who.Scopes.Has(access.Operate),
		TraceID: traceID(r)}
	if q.TraceID != "" {
		q.TraceParent = r.Header["Traceparent"][0]
	}
	named, inputs := q.Name != "", false
	known := predictNames
	if named {
		known = "inputs, demos, model, adapter, session_id, debug"
	}
	err := s.decode(w, r, false, func(f *fields, name, v []byte) {
		switch string(name) {
		case "signature":
			if named {
				f.unknown("", name, known)
			}
			f.object("/signature", v, &q.Signature)
		case "inputs":
			inputs = !isNull(v)
			q.Inputs = f.values("/inputs", v)
		case "demos":
			f.array("/demos", v, &q.Demos)
		case "model":
			f.short("/model", v, &q.Model, 200)
		case "adapter":
			f.short("/adapter", v, &q.Adapter, 32)
		case "session_id":
			f.short("/session_id", v, &q.SessionID, 64)
		case "debug":
			f.boolean("/debug", v, &q.Debug)
		default:
			f.unknown("", name, known)
		}
	})
	if err != nil {
		return err
	}
	if !inputs {
		return required("inputs", `such as {"question": "..."}`)
	}
	answer, err := w.run.Predict(r.Context(), q)
	if err != nil {
		what := "session " + strconv.Quote(q.SessionID)
		if named {
			what = "signature " + strconv.Quote(q.Name) + ", or no session of that id"
		}
		return missing(err, what)
	}
	s.warnOfSpend(w, "", "predict")
	return s.send(w, http.StatusOK, answer)
}

// values reads an object with any values.
func (f *fields) values(base string, v []byte) map[string]json.RawMessage {
	if isNull(v) {
		return nil
	}
	if v[0] != '{' {
		f.wrongKind(base, "an object", v)
		return nil
	}
	m := map[string]json.RawMessage{}
	_ = strict.Members(v, func(name, value []byte) error { // cannot fail: the whole body has passed
		m[string(name)] = value
		return nil
	})
	return m
}

func (s *server) listSignatures(w *reply, r *http.Request) error {
	q := readQuery(r)
	limit, after := q.limit(), q.text("after")
	if err := q.err(); err != nil {
		return err
	}
	named, err := w.run.ListSignatures(r.Context(), after, limit+1)
	if err != nil {
		return err
	}
	return s.send(w, http.StatusOK, page(named, limit, func(n predict.Named) string { return n.Name }))
}

func (s *server) getSignature(w *reply, r *http.Request) error {
	name, err := nameParam(r, "name")
	if err != nil {
		return err
	}
	got, err := w.run.Signature(r.Context(), name)
	if err != nil {
		return missing(err, "signature "+strconv.Quote(name))
	}
	return s.send(w, http.StatusOK, got)
}

// putSignature stores a named signature. There is no revision: the last write wins.
func (s *server) putSignature(w *reply, r *http.Request) error {
	name, err := nameParam(r, "name")
	if err != nil {
		return err
	}
	raw, err := s.readObject(w, r)
	if err != nil {
		return err
	}
	got, created, err := w.run.PutSignature(r.Context(), name, raw, w.owner)
	if err != nil {
		return err
	}
	return s.send(w, s.putStatus(w, r, created), got)
}

func (s *server) deleteSignature(w *reply, r *http.Request) error {
	name, err := nameParam(r, "name")
	if err != nil {
		return err
	}
	if err := w.run.DeleteSignature(r.Context(), name, w.owner); err != nil {
		return missing(err, "signature "+strconv.Quote(name))
	}
	return s.noContent(w)
}
