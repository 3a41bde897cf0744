package agent_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

func change(result agent.Class) agent.ArtifactChange {
	return agent.ArtifactChange{Role: "r", MethodName: "m", At: time.Unix(100, 0), Result: result}
}

func adopt(id, trigger, checked string) agent.ArtifactChange {
	c := change(agent.ClassOK)
	c.Generation = &agent.Generation{ID: id, Trigger: trigger, Code: id, CodeChecksum: agent.Checksum(id),
		CheckedFingerprint: checked, Cacheable: true}
	return c
}

// Failures are always the sum of their classes. Extrinsic and authored failures never affect health.
func TestCounters(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	classes := []agent.Class{agent.ClassOK, agent.ClassAuthored, agent.ClassIntrinsic, agent.ClassAdaptive,
		agent.ClassExtrinsic, agent.ClassNone}
	var a *agent.Artifact
	a = a.Apply(adopt("gen-1", "initial_forge", "none"))
	want := map[agent.Class]int64{agent.ClassOK: 1}
	for range 1000 {
		class := classes[rnd.IntN(len(classes))]
		before := *a
		next := a.Apply(change(class))
		if !reflect.DeepEqual(*a, before) {
			t.Fatal("Apply changed its receiver")
		}
		rate := a.RecentFailureRate
		if a = next; (class == agent.ClassExtrinsic || class == agent.ClassAuthored) && a.RecentFailureRate != rate {
			t.Fatalf("%s moved the failure rate from %v to %v", class, rate, a.RecentFailureRate)
		}
		want[class]++
	}
	got := map[agent.Class]int64{agent.ClassOK: a.SuccessCount, agent.ClassAuthored: a.AuthoredErrorCount,
		agent.ClassIntrinsic: a.IntrinsicFailureCount,
		agent.ClassAdaptive:  a.AdaptiveFailureCount, agent.ClassExtrinsic: a.ExtrinsicFailureCount,
		agent.ClassNone: want[agent.ClassNone]}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if a.FailureCount != a.IntrinsicFailureCount+a.AdaptiveFailureCount+a.ExtrinsicFailureCount {
		t.Errorf("failure_count %d is not the sum of its classes", a.FailureCount)
	}
	if n := len(a.Current().Window); n != agent.Window {
		t.Errorf("the window holds %d results, want %d", n, agent.Window)
	}
}

// Repairs count up and a regeneration resets the count. Three generations are kept with their parents.
func TestGenerations(t *testing.T) {
	t.Parallel()
	var a *agent.Artifact
	for i, trigger := range []string{"initial_forge", "repair:execution", "repair:execution",
		"regenerate:budget_exhausted", "repair:execution"} {
		a = a.Apply(adopt(nextID(a), trigger, "none"))
		wantRepairs := []int{0, 1, 2, 0, 1}[i]
		if a.RepairCountSinceRegen != wantRepairs {
			t.Errorf("after %s: %d repairs, want %d", trigger, a.RepairCountSinceRegen, wantRepairs)
		}
	}
	var ids []string
	for _, g := range a.Generations {
		ids = append(ids, g.ID)
	}
	if got := strings.Join(ids, " "); got != "gen-5 gen-4 gen-3" {
		t.Errorf("kept %s, want gen-5 gen-4 gen-3", got)
	}
	if p := a.Generations[0].ParentID; p == nil || *p != "gen-4" {
		t.Errorf("the parent of gen-5 is %v, want gen-4", p)
	}
	if a.CodeChecksum != agent.Checksum("gen-5") {
		t.Error("the current generation does not stand at the top")
	}
}

// In addition to the latest three, the newest good generation of each recent contract is kept.
func TestGenerationsOfContracts(t *testing.T) {
	t.Parallel()
	var a *agent.Artifact
	for _, k := range []string{"k1", "k2", "k3", "k3", "k3"} {
		a = a.Apply(adopt(nextID(a), "repair:contract_changed", k))
	}
	var kept []string
	for _, g := range a.Generations {
		kept = append(kept, g.CheckedFingerprint)
	}
	if got := strings.Join(kept, " "); got != "k3 k3 k3 k2 k1" {
		t.Errorf("kept generations of %s, want k3 k3 k3 k2 k1", got)
	}
}

// The newest generation made for the current wording is kept, because it serves, however many newer ones were made for
// other wordings.
func TestGenerationOfTheWordsIsKept(t *testing.T) {
	t.Parallel()
	var a *agent.Artifact
	put := func(madeFor, now agent.WordingDigest) {
		c := adopt(nextID(a), "regenerate:purpose_changed", "none")
		c.Generation.MadeFor, c.Words = &agent.MadeFor{Digest: madeFor, ByPerson: madeFor}, now
		c.Result = agent.ClassOK
		a = a.Apply(c)
	}
	kept := func() string {
		var ids []string
		for _, g := range a.Generations {
			ids = append(ids, g.ID)
		}
		return strings.Join(ids, " ")
	}
	put("a..", "a..")
	put("b..", "b..")
	for range 4 {
		put("c..", "a..") // they were set back while others were written
	}
	if got := kept(); got != "gen-6 gen-5 gen-4 gen-1" {
		t.Errorf("kept %s, want gen-1 beside the latest three", got)
	}
	put("a..", "a..")
	put("c..", "a..")
	put("c..", "a..")
	put("c..", "a..")
	if got := kept(); got != "gen-10 gen-9 gen-8 gen-7" {
		t.Errorf("kept %s, want the newest of those that were made for the words", got)
	}
}

// A generation forged under a switch has its own counts and does not displace the serving one.
func TestGenerationsUnderSwitches(t *testing.T) {
	t.Parallel()
	var a *agent.Artifact
	for range 3 {
		a = a.Apply(adopt(nextID(a), "repair:execution", "none"))
	}
	for range 4 {
		c := adopt(nextID(a), "regenerate:force_generation", "none")
		c.Aside = true
		a = a.Apply(c)
	}
	var kept []string
	for _, g := range a.Generations {
		kept = append(kept, fmt.Sprint(g.ID, g.SuccessCount))
	}
	if got := strings.Join(kept, " "); got != "gen-71 gen-31 gen-21 gen-11" || a.CurrentID != "gen-3" ||
		a.SuccessCount != 7 {
		t.Errorf("kept %s (id and successes), %s is current, %d successes", got, a.CurrentID, a.SuccessCount)
	}
	a = a.Apply(adopt(nextID(a), "repair:execution", "none"))
	kept = nil
	for _, g := range a.Generations {
		kept = append(kept, g.ID)
	}
	if got := strings.Join(kept, " "); got != "gen-8 gen-3 gen-2" {
		t.Errorf("kept %s after the next program", got)
	}
}

func nextID(a *agent.Artifact) string {
	if a == nil {
		return "gen-1"
	}
	return a.NextGenerationID()
}

// Operations of people.
func TestOperators(t *testing.T) {
	t.Parallel()
	var a *agent.Artifact
	a = a.Apply(adopt("gen-1", "initial_forge", "none"))
	a = a.Apply(adopt("gen-2", "repair:execution", "none"))
	back := agent.ArtifactChange{Role: "r", MethodName: "m", Current: "gen-1"}
	if b := a.Apply(back); b.Code != "gen-1" || b.CurrentID != "gen-1" || len(b.Generations) != 2 {
		t.Errorf("rollback runs %q of %d generations, want gen-1 of 2", b.Code, len(b.Generations))
	}
	reason := "suspect"
	q := a.Apply(agent.ArtifactChange{Quarantine: &reason})
	if !q.Quarantined || q.QuarantineReason != reason || a.Quarantined {
		t.Error("quarantine does not hold, or holds for the receiver too")
	}
	if q = q.Apply(agent.ArtifactChange{Release: true}); q.Quarantined {
		t.Error("release does not end the quarantine")
	}
	if m := a.Apply(agent.ArtifactChange{ResetMetrics: true}); m.SuccessCount != 0 || m.Current().Window != "" {
		t.Error("reset_metrics leaves counters")
	}
	if m := a.Apply(agent.ArtifactChange{State: agent.StateDurable}); m.SuccessCount != a.SuccessCount || m.LifecycleState != agent.StateDurable {
		t.Error("a promotion without the reset must keep the counters")
	}
}
