package agent

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// archivedOf returns an artifact with a history, whose current program is unique.
func archivedOf(random *rand.Rand) *Artifact {
	a := *lived(random)
	a.Generations = slices.Clone(a.Generations)
	g := a.change("")
	g.Code, g.CodeChecksum = "restored", Checksum("restored")
	g.Approved, a.Quarantined = true, false // it does not wait
	return &a
}

// restoring returns the change that restores an archived artifact, after a round trip through JSON.
func restoring(t *testing.T, a, old *Artifact, by string) (c ArtifactChange) {
	t.Helper()
	made, err := a.RestoreBelow(old, by, "away", time.Unix(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(text(t, made)), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// A program restored below any artifact does not change what answers, and comes after every newer one. Undoing it
// restores the artifact to the byte.
func TestRestoredBelow(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(9, 9))
	for round := range 200 {
		a, old := lived(random), archivedOf(random)
		before, archived := text(t, a), text(t, old)
		after := a.Apply(restoring(t, a, old, "back"))
		g := after.RestoredBy("back")
		if g == nil || g.Code != "restored" || g != after.Generations[len(after.Generations)-1] ||
			a.Find(g.ID) != nil || g.ParentID != nil {
			t.Fatalf("round %d: restored %+v", round, g)
		}
		if got, want := text(t, after.Current()), text(t,
			a.Current()); got != want || after.SuccessCount != a.SuccessCount ||
			after.LifecycleState != a.LifecycleState {
			t.Fatalf("round %d: what answers changed: %s", round, differ(got, want))
		}
		if undone := text(t, after.Apply(ArtifactChange{Unrestore: "back"})); undone != before {
			t.Fatalf("round %d: undone %s", round, differ(undone, before))
		}
		twice := after.Apply(restoring(t, after, archivedWith(old, "another"), "again"))
		if undone := text(t, twice.Apply(ArtifactChange{Unrestore: "again"})); undone != text(t, after) {
			t.Fatalf("round %d: the second one undone %s", round, differ(undone, text(t, after)))
		}
		picked := after.Apply(ArtifactChange{Current: g.ID})
		if picked.Code != "restored" || text(t, picked.Apply(ArtifactChange{Unrestore: "back"}).Generations) != text(t,
			picked.Generations) {
			t.Fatalf("round %d: a program that answers was taken away", round)
		}
		if text(t, a) != before || text(t, old) != archived {
			t.Fatal("the artifacts themselves changed")
		}
	}
}

func archivedWith(old *Artifact, code string) *Artifact {
	a := *old
	a.Generations = slices.Clone(old.Generations)
	g := a.change("")
	g.Code, g.CodeChecksum = code, Checksum(code)
	return &a
}

// The bound on generations holds, however many are restored. Calls counted in between survive the undo of a restore.
func TestRestoredAreBounded(t *testing.T) {
	t.Parallel()
	var a *Artifact
	for n := range 3 {
		a = a.Apply(ArtifactChange{Role: "r", MethodName: "m", Generation: &Generation{ID: fmt.Sprint("gen-", n+1),
			Trigger: "repair:execution", CodeChecksum: fmt.Sprint(n)}})
	}
	old := archivedOf(rand.New(rand.NewPCG(10, 10)))
	old.Current().CheckedFingerprint = "" // with the same contract as the newer ones
	for n := range 12 {
		a = a.Apply(restoring(t, a, archivedWith(old, fmt.Sprint("old ", n)), fmt.Sprint("back ", n)))
		if g := a.Generations; len(g) != 3 || g[0].ID != "gen-3" || g[1].ID != "gen-2" ||
			g[2].ID != fmt.Sprint("gen-", n+4) || len(a.Displaced) > 8 {
			t.Fatalf("after %d: %s", n+1, text(t, a))
		}
	}
	called := a.Apply(ArtifactChange{Result: ClassOK, SessionID: "late"}).Apply(ArtifactChange{Unrestore: "back 11"})
	if len(called.Generations) != 2 || called.SuccessCount != a.SuccessCount+1 || called.Sequence != a.Sequence {
		t.Errorf("after a call: %s", text(t, called))
	}
	if next := a.Apply(ArtifactChange{Generation: &Generation{ID: a.NextGenerationID(),
		Trigger: "repair:execution"}}); len(next.Generations) != 3 || next.RestoredBy("back 11") != nil {
		t.Errorf("the next program does not displace the oldest: %s", text(t, next))
	}
}

// A restore that is impossible is refused with a reason.
func TestRestoredBelowIsRefused(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(11, 11))
	a, old := lived(random), archivedOf(random)
	quarantined, empty := *old, Artifact{Examples: []Example{{ID: "ex_1"}}}
	quarantined.Quarantined = true
	waiting := &Artifact{Examples: []Example{{ID: "ex_1", State: ExampleActive}}, CurrentID: "gen-1",
		Generations: []*Generation{{ID: "gen-1", CodeChecksum: "waits", Breaks: []string{"ex_1"}}}}
	there := a.Apply(restoring(t, a, old, "back"))
	for name, c := range map[string]struct{ now, old *Artifact }{
		"quarantined": {a, &quarantined}, "no program in the archive": {a, &empty}, "it waits": {a, waiting},
		"no newer program": {&empty, old}, "it is there": {there, old},
	} {
		if _, err := c.now.RestoreBelow(c.old, "back", "away", time.Time{}); err == nil {
			t.Errorf("%s: it came back", name)
		}
	}
}

// If the newest program of an archived artifact waits for a person, for whatever reason, the restore brings back the
// one that served meanwhile.
func TestRestoredBelowServed(t *testing.T) {
	t.Parallel()
	first := "gen-1"
	waits := func(change func(a *Artifact, newest *Generation)) *Artifact {
		a := &Artifact{Role: "r", MethodName: "m", CurrentID: "gen-2", Generations: []*Generation{
			{ID: "gen-2", ParentID: &first, CodeChecksum: "newest"},
			{ID: first, CodeChecksum: "served", SuccessCount: 1}}}
		change(a, a.Generations[0])
		return a
	}
	now := (*Artifact)(nil).Apply(ArtifactChange{Role: "r", MethodName: "m",
		Generation: &Generation{ID: "gen-1", CodeChecksum: "newer"}})
	example := []Example{{ID: "ex_1", State: ExampleActive}}
	for name, c := range map[string]struct {
		old  *Artifact
		want string
	}{
		"for examples": {waits(func(a *Artifact, g *Generation) {
			a.Examples, g.Breaks, g.SuccessCount = example,
				[]string{"ex_1"}, 1
		}), "served"},
		"for reach": {waits(func(_ *Artifact, g *Generation) { g.Beyond, g.SuccessCount = &Effects{}, 1 }),
			"served"},
		"for approval": {waits(func(a *Artifact, _ *Generation) { a.Generations[1].Approved = true }), "served"},
		"it is approved": {waits(func(a *Artifact, g *Generation) {
			a.Examples, g.Breaks, g.Approved = example,
				[]string{"ex_1"}, true
		}), "newest"},
		"it has run": {waits(func(a *Artifact, g *Generation) {
			a.Generations[1].Approved,
				g.AuthoredErrorCount = true, 1
		}), "newest"},
		"put in unrun": {waits(func(*Artifact, *Generation) {}), "newest"},
	} {
		made, err := now.RestoreBelow(c.old, "back", "away", time.Unix(1, 0))
		if err != nil || made.Restore.CodeChecksum != c.want || made.Restore.Breaks != nil {
			t.Errorf("%s: %s came back, %v; want %s", name, text(t, made), err, c.want)
		}
	}
}

// A restored program answers while it is current, and while its successor waits for a person.
func TestRestoredAnswers(t *testing.T) {
	t.Parallel()
	back := &Generation{ID: "gen-2", SuccessCount: 1, Restored: &Restored{By: "back"}}
	newest := &Generation{ID: "gen-3", ParentID: &back.ID, SuccessCount: 1}
	a := &Artifact{CurrentID: "gen-2", Generations: []*Generation{newest, back}}
	wants := func(when string, want bool) {
		t.Helper()
		if got := a.Answers(back); got != want {
			t.Errorf("%s: %v", when, got)
		}
	}
	wants("it is the current one", true)
	a.CurrentID = "gen-3"
	wants("another one was made of it", false)
	newest.Beyond = &Effects{}
	wants("which waits", true)
	newest.Approved = true
	wants("and was approved", false)
	newest.ParentID, newest.Approved = nil, false
	wants("what waits was not made of it", false)
}
