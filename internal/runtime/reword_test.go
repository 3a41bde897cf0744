package runtime

import (
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/env"
	"github.com/recurgentd/recurgentd/internal/runtime/forge"
	"github.com/recurgentd/recurgentd/internal/runtime/selection"
	"github.com/recurgentd/recurgentd/internal/runtime/selection/selectiontest"
	"github.com/recurgentd/recurgentd/internal/runtime/turns"
)

// worded returns a generation that was made for these words.
func worded(g *agent.Generation, words agent.WordingDigest) *agent.Generation {
	g.MadeFor = &agent.MadeFor{Digest: words, ByPerson: words}
	return g
}

// After a changed purpose, a program that would run is reviewed first. Anything that stops it, waits for a person, or
// demands another program anyway takes precedence.
func TestSelectByWords(t *testing.T) {
	t.Parallel()
	const k, other = "sha256:k", "sha256:other"
	one := func() *agent.Generation { return worded(selectiontest.Generation("gen-1", k, "ooo", nil), "a..") }
	two := func() *agent.Generation {
		g := worded(selectiontest.Generation("gen-2", k, "ooo", nil), "b..")
		parent := "gen-1"
		g.ParentID = &parent
		return g
	}
	waiting := func(a *agent.Artifact) {
		a.Examples = []agent.Example{{ID: "ex_1", State: agent.ExampleActive}}
		a.Find("gen-2").Breaks = []string{"ex_1"}
	}
	for _, x := range []struct {
		name     string
		artifact *agent.Artifact
		words    agent.WordingDigest
		checked  string
		change   func(*agent.Policy)
		want     string // decision, reason, generation, fallback, and whether it is for other words
	}{
		{"as it was made", selectiontest.Artifact(nil, one()), "a..", k, nil, "run healthy gen-1 - false"},
		{"changed", selectiontest.Artifact(nil, one()), "b..", k, nil, "forge purpose_changed gen-1 gen-1 true"},
		{"changed, and the call has its own", selectiontest.Artifact(nil, one()), "", k, nil,
			"run healthy gen-1 - false"},
		{"changed, without repairs", selectiontest.Artifact(nil, one()), "b..", k,
			func(p *agent.Policy) { p.RepairEnabled = false },
			"forge purpose_changed gen-1 gen-1 true"},
		{"changed, and degraded", selectiontest.Artifact(nil, worded(selectiontest.Generation("gen-1", k, "oiiii",
			nil), "a..")), "b..", k, nil,
			"forge purpose_changed gen-1 gen-1 true"},
		{"changed, and pinned", selectiontest.Artifact(func(a *agent.Artifact) { a.Pinned = true }, one()), "b..", k,
			nil,
			"run pinned gen-1 - false"},
		{"changed, and quarantined", selectiontest.Artifact(func(a *agent.Artifact) { a.Quarantined = true }, one()),
			"b..", k, nil,
			"forge quarantined gen-1 - true"},
		{"changed, and forced", selectiontest.Artifact(nil, one()), "b..", k,
			func(p *agent.Policy) { p.ForceGeneration = true },
			"forge force_generation gen-1 - true"},
		{"changed with the deliverable", selectiontest.Artifact(nil, one()), "b..", other, nil,
			"repair contract_changed gen-1 gen-1 true"},
		{"set back", selectiontest.Artifact(nil, two(), one()), "a..", k, nil, "run healthy gen-1 - false"},
		{"set back, the older one is degraded", selectiontest.Artifact(nil, two(),
			worded(selectiontest.Generation("gen-1", k, "oiiii", nil), "a..")), "a..", k, nil,
			"forge purpose_changed gen-2 gen-2 true"},
		{"taken back", selectiontest.Artifact(nil, one()), "..", k, nil, "run healthy gen-1 - false"},
		{"taken back, and an older one was made without", selectiontest.Artifact(nil, two(),
			worded(selectiontest.Generation("gen-1", k, "ooo", nil), "..")), "..", k, nil, "run healthy gen-1 - false"},
		{"taken back while the new one waits", selectiontest.Artifact(waiting, two(), one()), "..", k, nil,
			"run breaks_examples gen-1 - false"},
		{"the new one waits", selectiontest.Artifact(waiting, two(), one()), "b..", k, nil,
			"run breaks_examples gen-1 - false"},
		{"the new one waits, and they change again", selectiontest.Artifact(waiting, two(), one()), "c..", k, nil,
			"forge purpose_changed gen-1 gen-1 true"},
		{"the new one waits, pinned", selectiontest.Artifact(func(a *agent.Artifact) { waiting(a); a.Pinned = true },
			two(), one()),
			"c..", k, nil, "run breaks_examples gen-1 - false"},
		{"a durable one of before does not come first",
			selectiontest.Artifact(func(a *agent.Artifact) { a.Find("gen-1").State = agent.StateDurable }, two(),
				one()), "b..", k,
			func(p *agent.Policy) { p.Promotion.Enforce = true }, "run healthy gen-2 - false"},
		{"nothing is kept of what it was made for", selectiontest.Artifact(nil, selectiontest.Generation("gen-1", k,
			"ooo", nil)), "b..", k, nil,
			"run healthy gen-1 - false"},
	} {
		p := agent.DefaultPolicy()
		if x.change != nil {
			x.change(&p)
		}
		r := &Runtime{env: &env.Env{}}
		d := selection.Select(selection.Input{Role: "calculator", Method: "add", Artifact: x.artifact,
			CheckedFingerprint: x.checked,
			Words:              x.words, Policy: &p, Now: time.Unix(0, 0),
			ImportAllowed: func(string) bool { return true }, IgnoresArgs: r.env.Facts.IgnoresArgs})
		slim := selection.Select(selection.Input{Role: "calculator", Method: "add", Artifact: x.artifact.Selectable(),
			CheckedFingerprint: x.checked, Words: x.words, Policy: &p, Now: time.Unix(0, 0),
			ImportAllowed: func(string) bool { return true }, IgnoresArgs: r.env.Facts.IgnoresArgs})
		id := func(g *agent.Generation) string {
			if g == nil {
				return "-"
			}
			return g.ID
		}
		reworded := "false"
		if d.Reworded {
			reworded = "true"
		}
		if got := strings.Join([]string{d.Decision, d.Reason, id(d.Generation), id(d.Fallback), reworded},
			" "); got != x.want {
			t.Errorf("%s: got %s, want %s", x.name, got, x.want)
		}
		if got := strings.Join([]string{slim.Decision, slim.Reason, id(slim.Generation), id(slim.Fallback)},
			" "); !strings.HasPrefix(x.want, got+" ") {
			t.Errorf("%s: got %s of what is selectable, want %s", x.name, got, x.want)
		}
	}
}

// After a model was too slow for one call, similar calls wait out the same delay. The delay neither hides nor replaces
// a failure.
func TestPausedForASlowModel(t *testing.T) {
	t.Parallel()
	var b forge.Backoffs
	p, now := agent.BackoffPolicy{BaseSeconds: 10, MaxSeconds: 3600}, time.Unix(1000, 0)
	k := forge.BackoffKey{Method: turns.Method{Role: "r", Method: "m"}, Checked: "none"}
	slow := func(waited, since time.Duration) {
		b.Pause(k, forge.Lapse{ErrorType: agent.ErrTimeout, Waited: waited}, now.Add(since), p)
	}
	want := func(waited, until time.Duration, failures int) {
		t.Helper()
		if f, waits := b.Waiting(k, now); !waits || f.Waited != waited || !f.Until.Equal(now.Add(until)) ||
			f.Failures != failures {
			t.Errorf("waits %t until %v after %v and %d failures", waits, f.Until, f.Waited, f.Failures)
		}
	}
	slow(time.Second, 0)
	slow(time.Second, 2*time.Second)
	want(time.Second, 10*time.Second, 0)
	slow(time.Minute, 3*time.Second) // with more time it failed, too
	want(time.Minute, 13*time.Second, 0)
	b.Failed(k, forge.Lapse{ErrorType: agent.ErrExecution}, nil, now, p)
	want(0, 10*time.Second, 1)
	slow(time.Hour, 5*time.Second)
	want(0, 10*time.Second, 1)
}

// An outage delays the next request by the first delay, however often it occurs. It does not delay requests for other
// wordings or repairs.
func TestPausedRechecks(t *testing.T) {
	t.Parallel()
	var b forge.Backoffs
	p, now := agent.BackoffPolicy{BaseSeconds: 10, MaxSeconds: 3600}, time.Unix(1000, 0)
	k := forge.BackoffKey{Method: turns.Method{Role: "r", Method: "m"}, Checked: "none", Words: "b.."}
	for range 5 {
		b.Pause(k, forge.Lapse{ErrorType: agent.ErrProvider}, now, p)
		b.Pause(k, forge.Lapse{ErrorType: agent.ErrProvider}, now, p)
		if f, waits := b.Waiting(k, now); !waits || !f.Until.Equal(now.Add(10*time.Second)) || f.Failures != 0 {
			t.Errorf("waits %t until %v after %d failures", waits, f.Until, f.Failures)
		}
		now = now.Add(10 * time.Second)
		if _, waits := b.Waiting(k, now); waits {
			t.Error("it is not tried again")
		}
	}
	b.Pause(k, forge.Lapse{}, now, p)
	for _, other := range []forge.BackoffKey{{Method: k.Method, Checked: "none"},
		{Method: k.Method, Checked: "none", Words: "c.."}} {
		if _, waits := b.Waiting(other, now); waits {
			t.Errorf("%+v waits", other)
		}
	}
}
