package runtime

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/runtime/attempt"
	"github.com/recurgentd/recurgentd/internal/runtime/correct"
	"github.com/recurgentd/recurgentd/internal/runtime/env"
	"github.com/recurgentd/recurgentd/internal/runtime/interrupt"
	"github.com/recurgentd/recurgentd/internal/runtime/runtimetest"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/sessions"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// wrongly makes a method that answers 1, and a person's verdict that 2 is right; expected "" is a verdict without.
func wrongly(t *testing.T, box *runtimetest.Box, programs []string, expected string,
	change func(*env.Options)) (*Runtime, *runtimetest.Model, Reply) {
	t.Helper()
	r, model := scripted(t, box, map[string][]string{"r.m": programs}, change)
	id, call := conversation(t, r, sessions.Request{Role: "r"})
	first := call("m", 7)
	wantReply(t, "first", first, "1 generated")
	v := agent.Verdict{CallID: first.CallID, SessionID: id, Generation: "gen-1", Verdict: agent.VerdictWrong,
		State: agent.ExampleActive, Note: "too small",
		Args: texts("7"), Kwargs: json.RawMessage("{}"), Got: json.RawMessage("1")}
	c := agent.ArtifactChange{Role: "r", MethodName: "m", Verdict: &v,
		Correction: &agent.Correction{State: agent.CorrectionQueued}}
	if expected != "" {
		x := example("ex_1", expected, "7")
		v.Expected, v.ExampleID, c.Example = x.Expect.Value, x.ID, &x
	}
	operate(t, r, c)
	return r, model, first
}

func corrections(extra map[string]runtimetest.Run) *runtimetest.Box {
	box := &runtimetest.Box{Programs: scriptedPrograms()}
	for k, p := range extra {
		box.Programs[k] = p
	}
	return box
}

// How a correction ends that needs one attempt.
func TestCorrections(t *testing.T) {
	yes, reason := true, "odd"
	tests := []struct {
		name     string
		programs []string
		expected string
		policy   string
		before   agent.ArtifactChange // what a person does before it is forged
		state    string
		current  string
		requests int // of the model, the first program's included
	}{
		{"adopted", []string{"one", "two"}, "2", "", agent.ArtifactChange{}, agent.CorrectionAdopted, "two", 2},
		{"adopted at the second program", []string{"one", "one", "two"}, "2", "", agent.ArtifactChange{},
			agent.CorrectionAdopted, "two", 3},
		{"adopted, nobody said what is right", []string{"one", "one", "two"}, "", "", agent.ArtifactChange{},
			agent.CorrectionAdopted, "two", 3},
		{"no program holds the example", []string{"one"}, "2", "", agent.ArtifactChange{}, agent.CorrectionBackingOff,
			"one", 3},
		{"no recovery is left", []string{"one"}, "2", `{"outcome_repair_budget": 0}`, agent.ArtifactChange{},
			agent.CorrectionBackingOff, "one", 2},
		{"it waits for approval", []string{"one", "two"}, "2", `{"approval_required": true}`, agent.ArtifactChange{},
			agent.CorrectionAwaitingApproval, "two", 2},
		{"quarantined", []string{"one", "two"}, "2", "", agent.ArtifactChange{Quarantine: &reason},
			agent.CorrectionQueued, "one", 1},
		{"pinned", []string{"one", "two"}, "2", "", agent.ArtifactChange{Pin: &yes}, agent.CorrectionQueued, "one", 1},
		{"the verdict was taken back", []string{"one", "two"}, "2", "", agent.ArtifactChange{DropVerdict: "the first"},
			agent.CorrectionNone, "one", 1},
		{"it is none any more", []string{"one", "two"}, "2", "",
			agent.ArtifactChange{Correction: &agent.Correction{State: agent.CorrectionNone}}, agent.CorrectionNone,
			"one", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, model, first := wrongly(t, corrections(nil), tt.programs, tt.expected, nil)
			if tt.policy != "" {
				patchPolicy(t, r, tt.policy)
			}
			change := tt.before
			change.Role, change.MethodName = "r", "m"
			if change.DropVerdict != "" {
				change.DropVerdict = first.CallID
			}
			operate(t, r, change)
			<-r.Corrections.Correct("r", "m", "ada")
			a := artifactOf(t, r, "r", "m")
			if a.Correction.State != tt.state || a.Code != tt.current && tt.state != agent.CorrectionAwaitingApproval {
				t.Errorf("the correction is %s, %s serves; want %s, %s", agent.Encoded(a.Correction), a.Code, tt.state,
					tt.current)
			}
			if n := model.Count("r.m", ""); n != tt.requests {
				t.Errorf("%d requests, want %d", n, tt.requests)
			}
			switch c := a.Correction; tt.state {
			case agent.CorrectionAdopted, agent.CorrectionAwaitingApproval:
				if c.Attempts != 1 || c.Generation == nil || *c.Generation != "gen-2" ||
					*a.Find("gen-2").ParentID != "gen-1" || a.Find("gen-2").Trigger != correct.Trigger {
					t.Errorf("the correction is %s", agent.Encoded(c))
				}
				if n := a.Find("gen-2").ForgeUsage.ModelRequests; n != tt.requests-1 {
					t.Errorf("it cost %d requests, want %d", n, tt.requests-1)
				}
				audit, err := r.env.Store.Audit(t.Context(), store.AuditQuery{Limit: 1})
				if err != nil || len(audit) != 1 {
					t.Fatalf("audit %+v, %v", audit, err)
				}
				if e := audit[0]; e.Action != "artifact.correct" || e.Actor != "ada" || e.Undo == "" ||
					len(e.Before) == 0 || string(e.Before) == string(e.After) {
					t.Errorf("audit %+v", e)
				}
			case agent.CorrectionBackingOff:
				if c.Attempts != 1 || c.LastError == nil || !strings.HasPrefix(*c.LastError, "execution: ") ||
					c.NextTryAt == nil || len(a.Rejections) != tt.requests-1 ||
					!strings.Contains(string(agent.Encoded(a.Rejections[0])), "the answer must be 2, it is 1") ||
					a.Rejections[0].Stage != attempt.StageProof {
					t.Errorf("the correction is %s, rejections %+v", agent.Encoded(c), a.Rejections)
				}
			}
		})
	}
}

// A correction that fails is tried again with growing delays, as often as it is worth, and then left to people. Each
// delay is that of the policy.
func TestCorrectionIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, model, _ := wrongly(t, corrections(nil), []string{"one"}, "2", nil)
		patchPolicy(t, r, `{"backoff": {"base_seconds": 10, "max_seconds": 100}, "outcome_repair_budget": 0}`)
		began := time.Now()
		<-r.Corrections.Correct("r", "m", "ada")
		for _, want := range []time.Duration{10, 20, 40, 80, 100, 100, 100} {
			a := artifactOf(t, r, "r", "m")
			if next := a.Correction.NextTryAt; next == nil || time.Until(*next) != want*time.Second {
				t.Fatalf("attempt %d is followed after %v, want %v", a.Correction.Attempts, next, want*time.Second)
			}
			<-time.After(want * time.Second)
			synctest.Wait()
		}
		r.Corrections.Wait()
		a := artifactOf(t, r, "r", "m")
		if c := a.Correction; c.State != agent.CorrectionFailed || c.Attempts != correct.Most || c.LastError == nil {
			t.Errorf("the correction is %s", agent.Encoded(c))
		}
		if n := model.Count("r.m", ""); n != 1+correct.Most || time.Since(began) != 450*time.Second {
			t.Errorf("%d requests in %v", n, time.Since(began))
		}
		if r.Corrections.Pending() {
			t.Error("it is still pending")
		}
	})
}

// The timer alone brings a correction about: nobody calls, judges or restarts anything meanwhile.
func TestTimerRetriesCorrection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, model, _ := wrongly(t, corrections(nil), []string{"one", "one", "one", "two"}, "2", nil)
		patchPolicy(t, r, `{"backoff": {"base_seconds": 10, "max_seconds": 100}, "outcome_repair_budget": 0}`)
		began := time.Now()
		<-r.Corrections.Correct("r", "m", "ada")
		if a := artifactOf(t, r, "r", "m"); a.Correction.State != agent.CorrectionBackingOff || a.Code != "one" {
			t.Fatalf("after the first attempt it is %s, %s serves", agent.Encoded(a.Correction), a.Code)
		}
		r.Corrections.Wait() // for the attempts after 10 and 30 s
		a := artifactOf(t, r, "r", "m")
		if a.Correction.State != agent.CorrectionAdopted || a.Correction.Attempts != 3 || a.Code != "two" ||
			time.Since(began) != 30*time.Second || model.Count("r.m", "") != 4 {
			t.Errorf("it is %s, %s serves after %v and %d requests", agent.Encoded(a.Correction), a.Code,
				time.Since(began), model.Count("r.m", ""))
		}
	})
}

// A verdict that comes while a correction is forged makes it run once more.
func TestVerdictDuringCorrection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, model, _ := wrongly(t, corrections(map[string]runtimetest.Run{"three": runtimetest.Returns("3")}),
			[]string{"one", "two", "three"}, "2", nil)
		model.Block = make(chan struct{})
		tried := r.Corrections.Correct("r", "m", "ada")
		synctest.Wait() // the model is asked
		again := r.Corrections.Correct("r", "m", "bob")
		x := example("ex_1", "3", "7")
		operate(t, r, agent.ArtifactChange{Role: "r", MethodName: "m", Example: &x,
			Correction: &agent.Correction{State: agent.CorrectionQueued}})
		close(model.Block)
		<-tried
		<-again // an attempt that began after the second verdict
		r.Corrections.Wait()
		a := artifactOf(t, r, "r", "m")
		if a.Correction.State != agent.CorrectionAdopted || a.Code != "three" {
			t.Errorf("the correction is %s, %s serves", agent.Encoded(a.Correction), a.Code)
		}
	})
}

// If examples change between the proof and the adoption, the correction starts again. An operation of a
// person's on the artifact ends it.
func TestCorrectionOvertaken(t *testing.T) {
	reason := "odd"
	x := example("ex_2", "2", "8")
	tests := []struct {
		name    string
		change  agent.ArtifactChange
		state   string
		current string
	}{
		{"another example", agent.ArtifactChange{Example: &x}, agent.CorrectionAdopted, "two"},
		{"quarantined", agent.ArtifactChange{Quarantine: &reason}, agent.CorrectionQueued, "one"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var r *Runtime
			var done bool
			box := corrections(map[string]runtimetest.Run{"two": func(_ context.Context, q sandbox.Request,
				_ sandbox.Host) sandbox.Result {
				if !done {
					done = true
					change := tt.change
					change.Role, change.MethodName = "r", "m"
					operate(t, r, change)
				}
				return runtimetest.Value("2")
			}})
			r, _, _ = wrongly(t, box, []string{"one", "two"}, "2", nil)
			<-r.Corrections.Correct("r", "m", "ada")
			r.Corrections.Wait()
			a := artifactOf(t, r, "r", "m")
			if a.Correction.State != tt.state || a.Code != tt.current {
				t.Errorf("the correction is %s, %s serves", agent.Encoded(a.Correction), a.Code)
			}
		})
	}
}

// A program made for the contract of a call is corrected under that contract. If the contract is unknown, as for
// programs that earlier versions stored, no model is asked, unless the judged session's contract is the one.
func TestCorrectionNeedsItsContract(t *testing.T) {
	t.Parallel()
	number := &agent.Contract{Deliverable: json.RawMessage(`{"type":"number"}`)}
	for name, tt := range map[string]struct {
		session, asked *agent.Contract
		state          string
		requests       int
	}{
		"known":          {nil, number, agent.CorrectionAdopted, 2},
		"of the session": {number, nil, agent.CorrectionAdopted, 2},
		"not known":      {nil, nil, agent.CorrectionBackingOff, 1},
		"another of the session": {&agent.Contract{Deliverable: json.RawMessage(`{"type":"integer"}`)}, nil,
			agent.CorrectionBackingOff, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, model := scripted(t, corrections(nil), map[string][]string{"r.m": {"one", "two"}}, nil)
			id, call := conversation(t, r, sessions.Request{Role: "r", Contract: tt.session})
			first := call("m", 7)
			g := *artifactOf(t, r, "r", "m").Current()
			g.ID, g.CallersContract, g.Asked, g.CheckedFingerprint = "gen-2", true, tt.asked,
				r.env.Contracts.Resolve(contract.Layers{Call: number}).Checked
			operate(t, r, agent.ArtifactChange{Role: "r", MethodName: "m", Generation: &g})
			x := example("ex_1", "2", "7")
			operate(t, r, agent.ArtifactChange{Role: "r", MethodName: "m", Example: &x,
				Correction: &agent.Correction{State: agent.CorrectionQueued},
				Verdict: &agent.Verdict{CallID: first.CallID, SessionID: id, Generation: "gen-2",
					Verdict: agent.VerdictWrong, State: agent.ExampleActive, Args: texts("7"),
					Kwargs: json.RawMessage("{}"), Got: json.RawMessage("1"), Expected: x.Expect.Value,
					ExampleID: x.ID}})
			<-r.Corrections.Correct("r", "m", "ada")
			a := artifactOf(t, r, "r", "m")
			if n := model.Count("r.m", ""); a.Correction.State != tt.state || n != tt.requests {
				t.Errorf("the correction is %s after %d requests, want %s after %d", agent.Encoded(a.Correction), n,
					tt.state, tt.requests)
			}
			if tt.state == agent.CorrectionAdopted && (!a.Current().CallersContract ||
				a.Current().CheckedFingerprint != g.CheckedFingerprint ||
				string(a.Current().Asked.Deliverable) != string(number.Deliverable)) {
				t.Errorf("the correction is %+v", a.Current())
			}
			if c := a.Correction; tt.state != agent.CorrectionAdopted &&
				!strings.Contains(*c.LastError, correct.ErrContractUnknown.Error()) {
				t.Errorf("the error is %s", agent.Encoded(c))
			}
		})
	}
}

// A correction that a shutdown interrupts is queued again, and resumed after the next start.
func TestCorrectionInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := storetest.NewMemory(time.Now)
		over := func(o *env.Options) { o.Store = held }
		r, model, _ := wrongly(t, corrections(nil), []string{"one", "two"}, "2", over)
		model.Block = make(chan struct{})
		tried := r.Corrections.Correct("r", "m", "ada")
		synctest.Wait()
		r.end(interrupt.ErrShutdown)
		<-tried
		a := artifactOf(t, r, "r", "m")
		if c := a.Correction; c.State != agent.CorrectionQueued || c.Attempts != 0 {
			t.Fatalf("the correction is %s", agent.Encoded(c))
		}
		next, model := scripted(t, corrections(nil), map[string][]string{"r.m": {"two"}}, over)
		patchPolicy(t, next, `{"correction": "manual"}`)
		if err := next.Corrections.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		if synctest.Wait(); model.Count("r.m", "") != 0 {
			t.Error("a manual correction was resumed")
		}
		patchPolicy(t, next, `{"correction": "background"}`)
		if err := next.Corrections.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		next.Corrections.Wait()
		if a := artifactOf(t, next, "r", "m"); a.Correction.State != agent.CorrectionAdopted || a.Code != "two" {
			t.Errorf("the correction is %s, %s serves", agent.Encoded(a.Correction), a.Code)
		}
	})
}

// A correction that waits for its next attempt when the daemon stops keeps waiting after the next start: restarts do
// not cause more model requests.
func TestCorrectionWaitsOverARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := storetest.NewMemory(time.Now)
		over := func(o *env.Options) { o.Store = held }
		r, _, _ := wrongly(t, corrections(nil), []string{"one"}, "2", over)
		<-r.Corrections.Correct("r", "m", "ada")
		time.Sleep(10 * time.Second)
		if err := r.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		at := artifactOf(t, r, "r", "m").Correction.NextTryAt
		next, model := scripted(t, corrections(nil), map[string][]string{"r.m": {"two"}}, over)
		if err := next.Corrections.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Until(*at) - time.Second)
		if synctest.Wait(); model.Count("r.m", "") != 0 {
			t.Errorf("the model was asked %v too early", time.Until(*at))
		}
		time.Sleep(time.Second)
		next.Corrections.Wait()
		if c := artifactOf(t, next, "r", "m").Correction; c.State != agent.CorrectionAdopted || c.Attempts != 2 {
			t.Errorf("the correction is %s", agent.Encoded(c))
		}
	})
}

// outage is a store that fails for corrections for a minute. The minute starts when begins returns true for a read of
// an artifact, whose change is nil, or for a change.
type outage struct {
	store.Namespace
	begins func(*agent.ArtifactChange) bool
	until  time.Time
}

func (o *outage) away(c *agent.ArtifactChange) bool {
	if o.until.IsZero() && o.begins(c) {
		o.until = time.Now().Add(time.Minute)
	}
	return time.Now().Before(o.until)
}

func (o *outage) Artifact(ctx context.Context, role, method string) (*agent.Artifact, error) {
	if o.away(nil) {
		return nil, store.ErrAway
	}
	return o.Namespace.Artifact(ctx, role, method)
}

func (o *outage) ChangeArtifact(ctx context.Context, revision int64, c agent.ArtifactChange,
	entry *agent.AuditEntry) (*agent.Artifact, error) {
	if o.away(&c) {
		return nil, store.ErrAway
	}
	return o.Namespace.ChangeArtifact(ctx, revision, c, entry)
}

// A queued correction survives an outage of the store at each of its steps, without a restart. No model is asked while
// the attempt cannot be recorded.
func TestCorrectionOutlivesAnOutage(t *testing.T) {
	enters := func(state string) func(*agent.ArtifactChange) bool {
		return func(c *agent.ArtifactChange) bool {
			return c != nil && c.Correction != nil && c.Correction.State == state
		}
	}
	reads := 0
	tests := []struct {
		name     string
		begins   func(*agent.ArtifactChange) bool
		programs []string
		requests int
	}{
		{"as it begins", func(c *agent.ArtifactChange) bool { return c == nil }, []string{"one", "two"}, 2},
		{"before the model is asked", enters(agent.CorrectionRunning), []string{"one", "two"}, 2},
		{"before it is adopted", func(c *agent.ArtifactChange) bool {
			if c == nil {
				reads++
			}
			return reads == 4
		}, []string{"one", "two"}, 3},
		{"as it is adopted", enters(agent.CorrectionAdopted), []string{"one", "two"}, 3},
		{"as it fails", enters(agent.CorrectionBackingOff), []string{"one", "one", "one", "two"}, 4},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, model, _ := wrongly(t, corrections(nil), tt.programs, "2", nil)
				kept := &outage{Namespace: r.env.Store, begins: tt.begins}
				r.env.Store = kept
				r.Corrections.Correct("r", "m", "ada")
				r.Corrections.Wait()
				r.env.Store = kept.Namespace
				a := artifactOf(t, r, "r", "m")
				if a.Correction.State != agent.CorrectionAdopted || a.Code != "two" || kept.until.IsZero() {
					t.Errorf("the correction is %s, %s serves", agent.Encoded(a.Correction), a.Code)
				}
				if n := model.Count("r.m", ""); n != tt.requests {
					t.Errorf("%d requests, want %d", n, tt.requests)
				}
			})
		})
	}
}

// A caller that repeats a verdict may wait for the requested attempt, even if that has not begun yet.
func TestCorrectingAtOnce(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			r, _, _ := wrongly(t, corrections(nil), []string{"one", "two"}, "2", nil)
			a := artifactOf(t, r, "r", "m")
			tried := r.Corrections.Correct("r", "m", "ada")
			if again := r.Corrections.Correcting(t.Context(), a); again != nil {
				<-again
			} else {
				select {
				case <-tried: // it has ended already
				default:
					t.Error("there is nothing to wait for")
				}
			}
			<-tried
			if c := artifactOf(t, r, "r", "m").Correction; c.State != agent.CorrectionAdopted {
				t.Errorf("the correction is %s after the wait", agent.Encoded(c))
			}
		})
	}
}

// A correction that waits for its next attempt ends with the daemon.
func TestCorrectionWaitsNoLongerThanTheDaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _, _ := wrongly(t, corrections(nil), []string{"one"}, "2", nil)
		<-r.Corrections.Correct("r", "m", "ada")
		synctest.Wait()
		began := time.Now()
		if err := r.Stop(t.Context()); err != nil || time.Since(began) != 0 {
			t.Errorf("the shutdown took %v: %v", time.Since(began), err)
		}
		if r.Corrections.Pending() {
			t.Error("it is still pending")
		}
	})
}

// Corrections with the next call: the call forges what a person wants, lists what it changed, and answers with the old
// program while that fails.
func TestCorrectionByNextCall(t *testing.T) {
	t.Parallel()
	r, model, _ := wrongly(t, corrections(nil), []string{"one", "two"}, "2", nil)
	patchPolicy(t, r, `{"correction": "next_call"}`)
	_, call := conversation(t, r, sessions.Request{Role: "r"})
	call("m", 9) // forged
	a := artifactOf(t, r, "r", "m")
	if a.Correction.State != agent.CorrectionAdopted || *a.Correction.Generation != "gen-2" ||
		a.Current().Trigger != correct.Trigger {
		t.Errorf("the correction is %s, the trigger %s", agent.Encoded(a.Correction), a.Current().Trigger)
	}
	for _, part := range []string{"a person called an answer wrong: args [7] kwargs {} were answered with 1",
		"the right answer is 2", "the person's note: too small"} {
		if text := lastUser(model.Requests()[1]); !strings.Contains(text, part) {
			t.Errorf("the request lacks %q:\n%s", part, text)
		}
	}
	r, _, _ = wrongly(t, corrections(nil), []string{"one"}, "2", nil)
	patchPolicy(t, r, `{"correction": "next_call"}`)
	_, call = conversation(t, r, sessions.Request{Role: "r"})
	got := call("m", 9)
	wantReply(t, "no program corrects it", got, "1 persisted")
	if !got.Program.Doubted {
		t.Error("the old program is not doubted")
	}
}
