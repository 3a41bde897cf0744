package runtime

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/env"
	"github.com/recurgentd/recurgentd/internal/runtime/forge"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/runtimetest"
	"github.com/recurgentd/recurgentd/internal/runtime/sessions"
	"github.com/recurgentd/recurgentd/internal/runtime/spend"
	"github.com/recurgentd/recurgentd/internal/runtime/turns"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// A person's operation on one replica ends the delay after failures on the others, but not the delay of calls that saw
// the operation's result, however late the replica learns of it.
func TestOperationsElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := &runtimetest.Box{Programs: map[string]runtimetest.Run{"boom": runtimetest.Breaks(agent.ErrExecution,
			"boom")}}
		g := newSharedRig(t, 2, box, map[string][]string{"r.m": {"boom"}})
		a, b := g.all[0], g.all[1]
		g.all = g.all[1:]
		asks := func(what string, want bool) {
			t.Helper()
			before := g.requests("r.m")
			g.cold(1)()
			if asked := g.requests("r.m") > before; asked != want {
				t.Errorf("%s: the model was asked: %v, want %v", what, asked, want)
			}
			synctest.Wait()
		}
		asks("the first call", true)
		asks("after a failure", false)
		var last *agent.Artifact
		for _, what := range []string{"an operation", "another one"} {
			last = operate(t, a, agent.ArtifactChange{Role: "r", MethodName: "m",
				Examples: &[]agent.Example{{ID: "ex_1", State: agent.ExampleProposed}}})
			synctest.Wait()
			asks("after "+what, true)
			asks("after a failure since "+what, false)
		}
		late := store.Change{Namespace: agent.DefaultNamespace, Kind: store.ChangedArtifact, Role: "r", Method: "m",
			Revision: last.Revision, Operated: true}
		f := &follower{r: b}
		f.note(late)
		asks("after an operation that is heard of late", false)
		late.Revision, late.Operated = last.Revision+100, false
		f.note(late)
		asks("after a call changed the artifact", false)
		late.Method, late.Operated = "other", true
		f.note(late)
		asks("after an operation on another method", false)
		f.note(store.Change{Kind: store.ChangedUnseen})
		asks("after changes that it did not see", true)
	})
}

// A correction that is adopted at one replica ends the delay after failures at the others.
func TestCorrectionsElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewMemory(time.Now)
		shared := func(o *env.Options) { o.Store, o.Shared = s, true }
		a, _, _ := wrongly(t, corrections(nil), []string{"one", "two"}, "2", shared)
		b, _ := scripted(t, corrections(nil), nil, shared)
		for _, method := range []string{"m", "other"} {
			b.forges.Failed(forge.BackoffKey{Method: turns.Method{Role: "r", Method: method}},
				forge.Lapse{ErrorType: agent.ErrExecution, Message: "boom", Owner: "ann"}, nil, b.env.Now(),
				b.Policy().Backoff)
		}
		<-a.Corrections.Correct("r", "m", "ada")
		synctest.Wait()
		if c := artifactOf(t, b, "r", "m").Correction; c.State != agent.CorrectionAdopted {
			t.Fatalf("the correction is %s", agent.Encoded(c))
		}
		for method, want := range map[string]bool{"m": false, "other": true} {
			if _, waits := b.forges.Waiting(forge.BackoffKey{Method: turns.Method{Role: "r", Method: method}},
				b.env.Now()); waits != want {
				t.Errorf("%s waits: %v, want %v", method, waits, want)
			}
		}
	})
}

// The spending of calls on one replica is soon known on the others, even if they do not ask a model: they also warn of
// the cap.
func TestSpendingElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewMemory(time.Now)
		policy := agent.DefaultPolicy()
		policy.Spend.DayTokens = 1000
		var log bytes.Buffer // of the replica that asks no model
		replica := func(logger zerolog.Logger) (*Runtime, *spend.Account) {
			l, err := spend.New(t.Context(), spend.Options{Store: s, Replica: func() string { return "rep" },
				Logger: logger}, agent.DefaultNamespace)
			if err != nil {
				t.Fatal(err)
			}
			account, err := l.Account(t.Context(), agent.DefaultNamespace, func() *agent.Policy { return &policy })
			if err != nil {
				t.Fatal(err)
			}
			r, _ := scripted(t, &runtimetest.Box{Programs: scriptedPrograms()}, map[string][]string{"r.m": {"one"}},
				func(o *env.Options) { o.Store, o.Shared, o.Spend = s, true, account })
			return r, account
		}
		a, spends := replica(zerolog.Nop())
		_, follows := replica(zerolog.New(&log))
		settle, err := spends.Charge(spend.Request{Role: "r", Method: "m"})(t.Context(), provider.Estimate{Prompt: 850})
		if err != nil {
			t.Fatal(err)
		}
		settle(provider.Bill{Reported: true, Prompt: 850})
		_, call := conversation(t, a, sessions.Request{Role: "r"})
		for _, near := range []bool{false, true} {
			if _, got := follows.Nearly("", "r", "m", true); got != near ||
				strings.Contains(log.String(), "80 percent are used") != near {
				t.Errorf("nearly used: %v, want %v; the log: %s", got, near, log.String())
			}
			call("m", 1)
			<-time.After(time.Minute)
			synctest.Wait()
		}
	})
}
