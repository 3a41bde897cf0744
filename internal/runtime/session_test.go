package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/env"
	"github.com/recurgentd/recurgentd/internal/runtime/interrupt"
	"github.com/recurgentd/recurgentd/internal/runtime/runtimetest"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/selection"
	"github.com/recurgentd/recurgentd/internal/runtime/sessions"
	"github.com/recurgentd/recurgentd/internal/runtime/turns"
	"github.com/recurgentd/recurgentd/internal/store"
)

func TestSessions(t *testing.T) {
	t.Parallel()
	r, _ := scripted(t, &runtimetest.Box{}, nil, func(o *env.Options) { o.MaxContext = 100 })
	refusals := map[string]sessions.Request{
		"role":            {Role: "a/b"},
		"invalid_context": {Role: "r", Context: json.RawMessage("[1]")},
		"too_large":       {Role: "r", Context: json.RawMessage(`{"k":"` + strings.Repeat("x", 94) + `"}`)},
		"contract":        {Role: "r", Contract: &agent.Contract{Deliverable: json.RawMessage(`{"type":7}`)}},
	}
	for name, q := range refusals {
		if _, err := r.CreateSession(t.Context(), q); err == nil {
			t.Errorf("%s: a session was made", name)
		} else if in := (*agent.InputError)(nil); errors.As(err, &in) && name != "contract" && in.Code != name {
			t.Errorf("%s: refused as %s", name, in.Code)
		}
	}
	s, err := r.CreateSession(t.Context(), sessions.Request{Role: "r",
		Context: json.RawMessage(`{"k":"` + strings.Repeat("x", 93) + `"}`), Contract: &agent.Contract{}})
	if err != nil || s.Contract != nil || s.HistorySize != 0 {
		t.Fatalf("a context of the greatest size: %+v, %v", s, err)
	}
	if _, err := r.CreateSession(t.Context(), sessions.Request{Role: "r", Context: json.RawMessage("null")}); err != nil {
		t.Errorf("no context: %v", err)
	}
	if list, _, err := r.ListSessions(t.Context(), sessions.Query{Limit: 10}); err != nil || len(list) != 2 {
		t.Errorf("%d sessions, %v", len(list), err)
	}
	if err := r.DeleteSession(t.Context(), s.ID, "ann"); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"deleted again": r.DeleteSession(t.Context(), s.ID, "ann"),
		"read":          second(r.Session(t.Context(), s.ID)),
		"patched":       second(r.PatchContext(t.Context(), s.ID, json.RawMessage("{}"), "ann")),
		"asked":         second(r.Responds(t.Context(), s.ID, "m")),
		"called":        second(r.Call(t.Context(), CallRequest{SessionID: s.ID, Method: "m"})),
	} {
		if !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s after it was deleted: %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestPatchContext(t *testing.T) {
	t.Parallel()
	r, _ := scripted(t, &runtimetest.Box{}, nil, func(o *env.Options) { o.MaxContext = 40 })
	id, _ := conversation(t, r, sessions.Request{Role: "r", Context: json.RawMessage(`{"a":1,"b":2}`)})
	got, err := r.PatchContext(t.Context(), id, json.RawMessage(`{"a":null,"c":{"d":3}}`), "ann")
	if err != nil || string(agent.Encoded(got)) != `{"b":2,"c":{"d":3},"conversation_history":[]}` {
		t.Errorf("got %s, %v", agent.Encoded(got), err)
	}
	for patch, code := range map[string]string{"[]": "invalid_context", "7": "invalid_context",
		`{"e":"` + strings.Repeat("x", 40) + `"}`: "too_large"} {
		var in *agent.InputError
		if _, err := r.PatchContext(t.Context(), id, json.RawMessage(patch),
			"ann"); !errors.As(err, &in) || in.Code != code {
			t.Errorf("%s: %v, want %s", patch, err, code)
		}
	}
	if memory, err := r.Context(t.Context(), id); err != nil ||
		string(agent.Encoded(memory)) != `{"b":2,"c":{"d":3},"conversation_history":[]}` {
		t.Errorf("afterwards %s, %v", agent.Encoded(memory), err)
	}
}

// Patches fall between calls, and deleting a session ends what runs in it.
func TestSessionTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waits := func(ctx context.Context, _ sandbox.Request, _ sandbox.Host) sandbox.Result {
			<-ctx.Done()
			return sandbox.Result{Failure: &sandbox.Failure{Type: agent.ErrCanceled, Ours: true}}
		}
		r, _ := scripted(t, &runtimetest.Box{Programs: map[string]runtimetest.Run{"waits": waits}},
			map[string][]string{"r.m": {"waits"}}, func(o *env.Options) { o.MaxQueue = 1 })
		id, _ := conversation(t, r, sessions.Request{Role: "r"})
		callID, done, err := r.Start(CallRequest{SessionID: id, Method: "m"})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if e, running := r.Running(callID); !running || e.Method != "m" || e.OutcomeStatus != agent.StatusRunning ||
			len(r.RunningCalls()) != 1 || r.Progress(callID) == nil {
			t.Errorf("running: %+v, %v", e, running)
		}
		patched := make(chan error, 1)
		go func() { patched <- second(r.PatchContext(t.Context(), id, json.RawMessage(`{"a":1}`), "ann")) }()
		synctest.Wait()
		if running, waiting := r.Load(); running != 0 || waiting != 1 {
			t.Errorf("%d calls run, %d wait", running, waiting) // a patch waits, and is no call
		}
		if _, _, err := r.Turn(t.Context(), id); !errors.Is(err, turns.ErrFull) {
			t.Errorf("a turn in a full queue: %v", err)
		}
		if err := r.DeleteSession(t.Context(), id, "ann"); err != nil {
			t.Fatal(err)
		}
		if err := <-patched; err != nil {
			t.Errorf("the patch: %v", err)
		}
		res := <-done
		if res.OK || !strings.Contains(string(res.Body), `"canceled"`) || res.CallID != callID {
			t.Errorf("the call got %s", res.Body)
		}
		if _, running := r.Running(callID); running || r.Progress(callID) != nil || r.CancelRunning(callID) ||
			len(r.RunningCalls()) != 0 {
			t.Error("the call is still running")
		}
	})
}

// full is a store that keeps no call.
type full struct{ store.Namespace }

func (full) CommitCall(context.Context, *store.CallCommit) error { return store.ErrReadOnly }

// A client that waits for an asynchronous call learns why it was not committed.
func TestStartedCallThatIsNotKept(t *testing.T) {
	t.Parallel()
	r, _ := scripted(t, &runtimetest.Box{}, nil, nil)
	id, _ := conversation(t, r, sessions.Request{Role: "r"})
	r.env.Store = full{r.env.Store}
	_, done, err := r.Start(CallRequest{SessionID: id, Method: "a=", Args: []json.RawMessage{json.RawMessage("1")}})
	if err != nil {
		t.Fatal(err)
	}
	if res := <-done; !errors.Is(res.Err, store.ErrReadOnly) || len(res.Body) > 0 {
		t.Errorf("got %s, %v", res.Body, res.Err)
	}
}

func TestResponds(t *testing.T) {
	t.Parallel()
	box := &runtimetest.Box{Programs: map[string]runtimetest.Run{"one": runtimetest.Returns("1")}}
	r, _ := scripted(t, box, map[string][]string{"r.made": {"one"}, "r.held": {"one"}}, nil)
	id, call := conversation(t, r, sessions.Request{Role: "r", Context: json.RawMessage(`{"key":1}`)})
	call("made")
	call("held")
	reason := "odd"
	operate(t, r, agent.ArtifactChange{Role: "r", MethodName: "held", Quarantine: &reason})
	for method, want := range map[string]string{"key": "context", "key=": "setter", "made": "artifact", "held": "",
		"new": ""} {
		got, err := r.Responds(t.Context(), id, method)
		via := ""
		if got.Via != nil {
			via = *got.Via
		}
		if err != nil || via != want || got.Responds != (want == "setter" || want == "artifact") {
			t.Errorf("%s: %v by %q, %v, want %q", method, got.Responds, via, err, want)
		}
	}
	if _, err := r.Responds(t.Context(), id, "a\x00b"); err == nil {
		t.Error("a name of control characters responds")
	}
}

// A setter writes the context and runs nothing.
func TestSetter(t *testing.T) {
	t.Parallel()
	r, model := scripted(t, &runtimetest.Box{}, nil, nil)
	id, call := conversation(t, r, sessions.Request{Role: "r"})
	got := call("name=", "Ada")
	wantReply(t, "setter", got, `"Ada" none`)
	if memory, err := r.Context(t.Context(), id); err != nil || string(memory["name"]) != `"Ada"` {
		t.Errorf("the context is %s, %v", memory["name"], err)
	}
	if e := logOf(t, r, got.CallID); e.Selection.Reason != selection.ReasonSetter || e.Replayable ||
		len(model.Requests()) != 0 {
		t.Errorf("log: %+v, replayable %v; %d requests", e.Selection, e.Replayable, len(model.Requests()))
	}
}

func TestRefusedCalls(t *testing.T) {
	t.Parallel()
	r, _ := scripted(t, &runtimetest.Box{}, nil, nil)
	id, _ := conversation(t, r, sessions.Request{Role: "r"})
	tests := map[string]CallRequest{
		"role":                {Role: "a/b", Method: "m"},
		"method":              {Method: "a/b"},
		"invalid_timeout":     {Method: "m", Timeout: -1},
		"invalid_timeout max": {Method: "m", Timeout: r.env.MaxTimeout + 1},
		"invalid_setter":      {Method: "x="},
		"invalid_setter 2":    {Method: "x=", Args: texts("1", "2")},
		"contract":            {Method: "m", Contract: &agent.Contract{Deliverable: json.RawMessage(`{"type":7}`)}},
	}
	for name, q := range tests {
		q.SessionID = id
		_, err := r.Call(t.Context(), q)
		if err == nil {
			t.Errorf("%s: it was called", name)
			continue
		}
		var in *agent.InputError
		if strings.HasPrefix(name, "invalid") && (!errors.As(err, &in) || in.Code != strings.Fields(name)[0]) {
			t.Errorf("%s: %v", name, err)
		}
		if _, _, err := r.Start(q); err == nil {
			t.Errorf("%s: it was started", name)
		}
	}
	if n := len(historyOf(t, r, id)) + r.Count(); n != 0 {
		t.Errorf("%d calls are recorded or running", n)
	}
	if res, err := r.Call(t.Context(), CallRequest{SessionID: id, Method: "x=", Args: texts("1"),
		Timeout: r.env.MaxTimeout}); err != nil || !res.OK {
		t.Errorf("the longest timeout: %v", err)
	}
}

// An idempotency key answers once: again with the same bytes, not with another request, not while the first one runs.
func TestIdempotency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := &runtimetest.Box{Programs: map[string]runtimetest.Run{"one": runtimetest.Returns("1")}}
		r, model := scripted(t, box, map[string][]string{"r.m": {"one"}}, nil)
		model.Block = make(chan struct{})
		id, _ := conversation(t, r, sessions.Request{Role: "r"})
		q := CallRequest{SessionID: id, Method: "m", IdempotencyKey: "k", BodyHash: "h"}
		_, done, err := r.Start(q)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if _, err := r.Call(t.Context(), q); !errors.Is(err, ErrKeyInUse) {
			t.Errorf("while it runs: %v", err)
		}
		close(model.Block)
		first := <-done
		again, err := r.Call(t.Context(), q)
		if err != nil || !again.Replayed || string(again.Body) != string(first.Body) || again.CallID != first.CallID ||
			again.TraceID != first.TraceID || !again.OK {
			t.Errorf("again: %+v, %v", again, err)
		}
		callID, redone, err := r.Start(q)
		if res := <-redone; err != nil || callID != first.CallID || !res.Replayed {
			t.Errorf("started again: %+v, %v", res, err)
		}
		other := q
		other.BodyHash = "other"
		if _, err := r.Call(t.Context(), other); !errors.Is(err, ErrKeyReused) {
			t.Errorf("another request: %v", err)
		}
		if n := len(historyOf(t, r, id)); n != 1 {
			t.Errorf("%d records", n)
		}
	})
}

// A shutdown admits no new calls and waits for the running ones.
func TestAdmissionAndStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := &runtimetest.Box{Programs: map[string]runtimetest.Run{"one": runtimetest.Returns("1")}}
		r, model := scripted(t, box, map[string][]string{"r.m": {"one"}}, nil)
		model.Block = make(chan struct{})
		id, _ := conversation(t, r, sessions.Request{Role: "r"})
		q := CallRequest{SessionID: id, Method: "m", IdempotencyKey: "k"}
		if err := r.Ready(); err != nil {
			t.Error(err)
		}
		_, done, err := r.Start(q)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		stopped := make(chan error, 1)
		go func() { stopped <- r.Stop(t.Context()) }()
		synctest.Wait()
		if err := r.Ready(); !errors.Is(err, ErrDraining) {
			t.Errorf("ready during the shutdown: %v", err)
		}
		if _, err := r.Call(t.Context(), CallRequest{SessionID: id, Method: "m"}); !errors.Is(err, ErrDraining) {
			t.Errorf("a call during the shutdown: %v", err)
		}
		if r.Life().Err() != nil {
			t.Error("the shutdown ended what runs")
		}
		close(model.Block)
		if res := <-done; !res.OK {
			t.Errorf("the call got %s", res.Body)
		}
		if err := <-stopped; err != nil {
			t.Errorf("the shutdown: %v", err)
		}
		if !errors.Is(context.Cause(r.Life()), interrupt.ErrShutdown) {
			t.Errorf("the end of life: %v", context.Cause(r.Life()))
		}
		if err := r.Stop(t.Context()); err != nil {
			t.Errorf("the second shutdown: %v", err)
		}
	})
}

// A shutdown whose time is over cancels the running calls, and gives up on those that do not end.
func TestStopCancels(t *testing.T) {
	for _, stubborn := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			release := make(chan struct{})
			waits := func(ctx context.Context, _ sandbox.Request, _ sandbox.Host) sandbox.Result {
				<-ctx.Done()
				if stubborn {
					<-release
				}
				return sandbox.Result{Failure: &sandbox.Failure{Type: agent.ErrCanceled, Ours: true}}
			}
			r, _ := scripted(t, &runtimetest.Box{Programs: map[string]runtimetest.Run{"waits": waits}},
				map[string][]string{"r.m": {"waits"}}, nil)
			id, _ := conversation(t, r, sessions.Request{Role: "r"})
			_, done, err := r.Start(CallRequest{SessionID: id, Method: "m"})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			hurried := errors.New("no time left")
			over, hurry := context.WithCancelCause(t.Context())
			hurry(hurried)
			began := time.Now()
			err = r.Stop(over)
			if stubborn {
				if err == nil || errors.Is(err, hurried) || time.Since(began) != r.env.CancelGrace {
					t.Errorf("after %v: %v", time.Since(began), err)
				}
				close(release)
			} else if !errors.Is(err, hurried) {
				t.Errorf("the shutdown: %v", err)
			}
			if res := <-done; res.OK || !strings.Contains(string(res.Body), "shutting down") {
				t.Errorf("the call got %s", res.Body)
			}
		})
	}
}

// A call ends with its time: while it waits for its turn, and while it runs.
func TestCallTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, model := scripted(t, &runtimetest.Box{}, nil, nil)
		model.Block = make(chan struct{})
		defer close(model.Block)
		id, _ := conversation(t, r, sessions.Request{Role: "r"})
		began := time.Now()
		_, runs, err := r.Start(CallRequest{SessionID: id, Method: "m"})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		_, waits, err := r.Start(CallRequest{SessionID: id, Method: "m", Timeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		for name, tt := range map[string]struct {
			done  <-chan CallResult
			after time.Duration
		}{"waits": {waits, time.Second}, "runs": {runs, r.env.CallTimeout}} {
			res := <-tt.done
			var reply Reply
			if err := json.Unmarshal(res.Body, &reply); err != nil || reply.Outcome.ErrorType != agent.ErrTimeout {
				t.Errorf("%s: got %s, %v", name, res.Body, err)
			}
			if e := logOf(t, r, res.CallID); e.DurationMs != agent.Milliseconds(tt.after) {
				t.Errorf("%s: it took %v ms, want %v", name, e.DurationMs, tt.after)
			}
		}
		if took := time.Since(began); took != r.env.CallTimeout {
			t.Errorf("both took %v", took)
		}
	})
}

func TestOptions(t *testing.T) {
	t.Parallel()
	r, _ := scripted(t, &runtimetest.Box{}, nil, nil)
	good := r.env.Options
	bad := map[string]func(*env.Options){
		"store":    func(o *env.Options) { o.Store = nil },
		"sandbox":  func(o *env.Options) { o.Sandbox = nil },
		"provider": func(o *env.Options) { o.Provider = nil },
		"metrics":  func(o *env.Options) { o.Metrics = nil },
		"clock":    func(o *env.Options) { o.Now = nil },
		"imports":  func(o *env.Options) { o.AllowImport = nil },
		"run":      func(o *env.Options) { o.RunTimeout = 0 },
		"call":     func(o *env.Options) { o.CallTimeout = 0 },
		"max":      func(o *env.Options) { o.MaxTimeout = o.CallTimeout - 1 },
		"commit":   func(o *env.Options) { o.CommitTimeout = 0 },
		"grace":    func(o *env.Options) { o.CancelGrace = -1 },
		"queue":    func(o *env.Options) { o.MaxQueue = 0 },
		"context":  func(o *env.Options) { o.MaxContext = 0 },
	}
	for name, change := range bad {
		o := good
		change(&o)
		if _, err := New(t.Context(), o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	least := good
	least.RunTimeout, least.CallTimeout, least.MaxTimeout, least.CommitTimeout, least.CancelGrace, least.MaxQueue,
		least.MaxContext = 1, 1, 1, 1, 0, 1, 1
	if _, err := New(t.Context(), least); err != nil {
		t.Errorf("the least of everything: %v", err)
	}
	if r.RunTimeout() != good.RunTimeout || r.Feed() == nil || r.Policy().NestedCallBudget != 64 {
		t.Error("the accessors give something else")
	}
}
