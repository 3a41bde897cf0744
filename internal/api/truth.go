package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/recurgentd/recurgentd/internal/access"
	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/strict"
)

// Examples are the operations on examples that the interface needs from a runtime.
type Examples interface {
	Examples(ctx context.Context, role, method string) ([]agent.Example, error)
	PutExamples(ctx context.Context, q operator.ExamplesPut) ([]agent.Example, error)
	DecideExample(ctx context.Context, q operator.ExampleDecision) ([]agent.Example, error)
	RunExamples(ctx context.Context, q operator.ExampleQuery) (operator.ExampleRun, error)
	// Try runs a program without storing or counting anything.
	Try(ctx context.Context, q operator.TryRequest) (operator.TryReport, error)
	// BrokenExamples returns the ids of the active examples that the current program does not satisfy.
	BrokenExamples(ctx context.Context, role, method, owner string) ([]string, error)
}

// exampleList is the reply with the examples of a method.
type exampleList struct {
	Examples []agent.Example `json:"examples"`
}

func (s *server) getExamples(w *reply, r *http.Request) error {
	role, method, err := target(r)
	if err != nil {
		return err
	}
	all, err := w.run.Examples(r.Context(), role, method)
	if err != nil {
		return err
	}
	return s.sendExamples(w, w.cutExamples(r.Context(), all))
}

func (s *server) sendExamples(w *reply, all []agent.Example) error {
	return s.sendRevision(w, http.StatusOK, agent.ExamplesRevision(all), shown(all))
}

// shown removes recorded effects, which only runs of the examples need.
func shown(all []agent.Example) exampleList {
	out := exampleList{Examples: make([]agent.Example, 0, len(all))}
	for _, x := range all {
		x.Effects, x.TakenAt = nil, time.Time{}
		out.Examples = append(out.Examples, x)
	}
	return out
}

// putExamples replaces the active examples of a method, which need not exist yet.
func (s *server) putExamples(w *reply, r *http.Request) error {
	role, method, err := target(r)
	if err != nil {
		return err
	}
	revision, err := wantedRevision(r, 0)
	if err != nil {
		return err
	}
	var all []agent.Example
	err = s.decode(w, r, false, func(f *fields, name, v []byte) {
		if string(name) != "examples" {
			f.unknown("", name, "examples")
			return
		}
		all = f.examples(v)
	})
	if err != nil {
		return err
	}
	if all == nil {
		return required("examples", `such as {"examples": [{"args": [1000], "expect": {"value": 700}}]}`)
	}
	revision, err = existing(revision, func() error {
		kept, err := w.run.Examples(r.Context(), role, method)
		// a method without examples counts as a missing resource for If-Match
		if err == nil && len(kept) == 0 {
			err = store.ErrNotFound
		}
		return err
	}, "the method has no examples yet", "leave If-Match out to put some")
	if err != nil {
		return err
	}
	kept, err := w.run.PutExamples(r.Context(), operator.ExamplesPut{Role: role, Method: method, Examples: all,
		Revision: revision, Actor: w.owner})
	if err != nil {
		return noArtifact(preconditionOf(err, revision), role, method)
	}
	return s.sendExamples(w, kept)
}

// examples reads a list of examples. It returns nil for null.
func (f *fields) examples(v []byte) []agent.Example {
	if isNull(v) {
		return nil
	}
	var items []json.RawMessage
	f.array("/examples", v, &items)
	all := make([]agent.Example, 0, len(items))
	for i, item := range items {
		all = append(all, f.example("/examples/"+strconv.Itoa(i), item))
	}
	return all
}

// example reads one example.
func (f *fields) example(at string, v []byte) agent.Example {
	var x agent.Example
	if len(v) == 0 || v[0] != '{' {
		f.wrongKind(at, "an object", v)
		return x
	}
	_ = strict.Members(v, func(name, value []byte) error { // cannot fail: the whole body has passed
		switch string(name) {
		case "id":
			f.short(at+"/id", value, &x.ID, 64)
		case "args":
			f.array(at+"/args", value, &x.Args)
		case "kwargs":
			f.object(at+"/kwargs", value, &x.Kwargs)
		case "context":
			f.object(at+"/context", value, &x.Context)
		case "expect":
			f.expectation(at+"/expect", value, &x.Expect)
		case "tolerance":
			f.number(at+"/tolerance", value, &x.Tolerance)
		case "note":
			f.short(at+"/note", value, &x.Note, maxNote)
		case "state", "by", "created_at", "call_id", "session_id": // set by the daemon; accepted since GET returns them
		default:
			f.unknown(at, name, "id, args, kwargs, context, expect, tolerance, note")
		}
		return nil
	})
	return x
}

// expectation reads what an example demands.
func (f *fields) expectation(at string, v []byte, into *agent.Expectation) {
	if len(v) == 0 || v[0] != '{' {
		f.wrongKind(at, `an object with one of "value", "error_type" and "schema"`, v)
		return
	}
	_ = strict.Members(v, func(name, value []byte) error {
		switch string(name) {
		case "value":
			into.Value = append(json.RawMessage{}, value...) // null is an expectation, too
		case "error_type":
			f.short(at+"/error_type", value, &into.ErrorType, 64)
		case "schema":
			f.object(at+"/schema", value, &into.Schema)
		default:
			f.unknown(at, name, "value, error_type, schema")
		}
		return nil
	})
}

// decideExample returns the handler that accepts or rejects a proposed example.
func (s *server) decideExample(accept bool) handler {
	return func(w *reply, r *http.Request) error {
		role, method, err := target(r)
		if err != nil {
			return err
		}
		id, ok := idParam(r, "id")
		if !ok {
			return fault(codeNotFound, "there is no proposed example "+strconv.Quote(param(r, "id")), "")
		}
		all, err := w.run.DecideExample(r.Context(), operator.ExampleDecision{Role: role, Method: method, ID: id,
			Accept: accept, Actor: w.owner})
		if err != nil {
			return missing(err, "proposed example "+strconv.Quote(id))
		}
		return s.sendExamples(w, all)
	}
}

// runExamples runs examples on a program. It stores nothing.
func (s *server) runExamples(w *reply, r *http.Request) error {
	role, method, err := target(r)
	if err != nil {
		return err
	}
	q := operator.ExampleQuery{Role: role, Method: method, Owner: w.owner}
	err = s.decode(w, r, true, func(f *fields, name, v []byte) {
		switch string(name) {
		case "generation":
			f.short("/generation", v, &q.Generation, 64)
		case "code":
			f.text("/code", v, &q.Code)
		case "examples":
			q.Examples = f.examples(v)
		default:
			f.unknown("", name, "generation, code, examples")
		}
	})
	if err != nil {
		return err
	}
	run, err := w.run.RunExamples(r.Context(), q)
	if err != nil {
		return noArtifact(err, role, method)
	}
	return s.send(w, http.StatusOK, run)
}

// try runs a program on given arguments. It stores nothing.
func (s *server) try(w *reply, r *http.Request) error {
	role, method, err := target(r)
	if err != nil {
		return err
	}
	q := operator.TryRequest{Role: role, Method: method, Owner: w.owner}
	err = s.decode(w, r, false, func(f *fields, name, v []byte) {
		switch string(name) {
		case "generation":
			f.short("/generation", v, &q.Generation, 64)
		case "code":
			f.text("/code", v, &q.Code)
		case "args":
			f.array("/args", v, &q.Args)
		case "kwargs":
			f.object("/kwargs", v, &q.Kwargs)
		case "context":
			f.object("/context", v, &q.Context)
		case "fetch":
			mode := "live"
			f.text("/fetch", v, &mode)
			if q.NoFetch = mode == "denied"; mode != "live" && mode != "denied" {
				f.bad("/fetch", "must be live or denied", "")
			}
		default:
			f.unknown("", name, "generation, code, args, kwargs, context, fetch")
		}
	})
	if err != nil {
		return err
	}
	report, err := w.run.Try(r.Context(), q)
	if err != nil {
		return noArtifact(err, role, method)
	}
	return s.send(w, http.StatusOK, report)
}

// Verdicts are the operations on people's verdicts that the interface needs from a runtime.
type Verdicts interface {
	// Judge records a verdict on a call. The channel, if not nil, is closed after the first attempt at a correction.
	Judge(ctx context.Context, callID string, j operator.Judgement) (operator.JudgedCall, <-chan struct{}, error)
	Verdict(ctx context.Context, callID string) (operator.JudgedCall, error)
	DropVerdict(ctx context.Context, callID, actor string, mayOperate bool) error
}

const maxNote = 4 << 10 // bytes of a note

// unproposed returns the problem of a missing scope for a change that only principals with operate may make. Other
// errors pass unchanged.
func (w *reply) unproposed(err error) error {
	if errors.Is(err, operator.ErrInForce) {
		return cmp.Or(w.needs(access.Operate), err)
	}
	return err
}

// postVerdict records a person's verdict on a call. With "Prefer: wait=N" it waits for the first attempt at a
// correction.
func (s *server) postVerdict(w *reply, r *http.Request) error {
	id, err := callID(r)
	if err != nil {
		return err
	}
	j := operator.Judgement{Actor: w.owner, MayOperate: w.who.Scopes.Has(access.Operate)}
	err = s.decode(w, r, false, func(f *fields, name, v []byte) {
		switch string(name) {
		case "verdict":
			f.text("/verdict", v, &j.Verdict)
		case "expected":
			j.Expected = append(json.RawMessage{}, v...) // null is an expectation, too
		case "expected_error_type":
			f.short("/expected_error_type", v, &j.ExpectedErrorType, 64)
		case "note":
			f.short("/note", v, &j.Note, maxNote)
		default:
			f.unknown("", name, "verdict, expected, expected_error_type, note")
		}
	})
	if err != nil {
		return err
	}
	if j.Verdict == "" {
		return required("verdict", "right or wrong")
	}
	var wait time.Duration
	if prefer := r.Header["Prefer"]; len(prefer) > 0 {
		if _, wait, err = parsePrefer(prefer); err != nil {
			return err
		}
	}
	judged, tried, err := w.run.Judge(r.Context(), id, j)
	if err != nil {
		return noCall(w.unproposed(err), id)
	}
	if tried != nil && wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-tried:
		case <-timer.C:
		case <-r.Context().Done():
		}
		// read again: the attempt may have changed the state of the correction
		if judged, err = w.run.Verdict(r.Context(), id); err != nil {
			return noCall(err, id)
		}
		w.Header().Set("Preference-Applied", "wait="+strconv.Itoa(int(wait.Seconds())))
	}
	return s.send(w, http.StatusOK, judged)
}

func (s *server) getVerdict(w *reply, r *http.Request) error {
	id, err := callID(r)
	if err != nil {
		return err
	}
	v, err := w.run.Verdict(r.Context(), id)
	if err != nil {
		return missing(err, "verdict on the call "+id)
	}
	return s.send(w, http.StatusOK, v)
}

// deleteVerdict withdraws a verdict. Without the scope operate, only a proposed one.
func (s *server) deleteVerdict(w *reply, r *http.Request) error {
	id, err := callID(r)
	if err != nil {
		return err
	}
	if err := w.run.DropVerdict(r.Context(), id, w.owner, w.who.Scopes.Has(access.Operate)); err != nil {
		return missing(w.unproposed(err), "verdict on the call "+id)
	}
	return s.noContent(w)
}

// fixtureList is what proves the programs of a method, apart from its examples: recorded calls of the current
// generation, and recorded effects of active examples by id. Both contain values of sessions.
type fixtureList struct {
	Data       []agent.Fixture            `json:"data"`
	Effects    map[string]json.RawMessage `json:"effects"`
	NextCursor *string                    `json:"next_cursor"` // always null: a generation keeps few fixtures
}

// listFixtures needs the scope operate, since fixtures contain values of all owners' sessions.
func (s *server) listFixtures(w *reply, r *http.Request) error {
	a, err := s.artifact(w, r)
	if err != nil {
		return err
	}
	out := fixtureList{Data: []agent.Fixture{}, Effects: map[string]json.RawMessage{}}
	if g := a.Current(); g != nil {
		for _, f := range g.Fixtures {
			if f.Args == nil {
				f.Args = []json.RawMessage{}
			}
			if len(f.Kwargs) == 0 {
				f.Kwargs = json.RawMessage("{}")
			}
			out.Data = append(out.Data, f)
		}
	}
	for _, x := range a.ActiveExamples() {
		if x.Effects != nil {
			out.Effects[x.ID] = x.Effects
		}
	}
	return s.send(w, http.StatusOK, out)
}
