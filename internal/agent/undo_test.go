package agent

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// Undoing an operation before anything else happens restores the artifact to the byte, including its revision, also if
// the operation was stored as JSON in between. So does undoing the undo, unless a person installed the program.
func TestUndoIsByteIdentical(t *testing.T) {
	t.Parallel()
	yes, no, reason := true, false, "suspect"
	operations := []struct {
		name   string
		change func(a *Artifact) ArtifactChange
	}{
		{"quarantine", func(*Artifact) ArtifactChange { return ArtifactChange{Quarantine: &reason} }},
		{"release", func(*Artifact) ArtifactChange { return ArtifactChange{Release: true} }},
		{"pin", func(*Artifact) ArtifactChange { return ArtifactChange{Pin: &yes} }},
		{"unpin", func(*Artifact) ArtifactChange { return ArtifactChange{Pin: &no} }},
		{"approve", func(*Artifact) ArtifactChange { return ArtifactChange{Approve: &yes} }},
		{"regenerate", func(*Artifact) ArtifactChange {
			return ArtifactChange{ForceRegenerate: &reason,
				ResetRepairs: true}
		}},
		{"promote", func(*Artifact) ArtifactChange { return ArtifactChange{State: StateDurable, Bless: true} }},
		{"promote with reset", func(*Artifact) ArtifactChange {
			return ArtifactChange{State: StateDurable, Bless: true, ResetMetrics: true}
		}},
		{"effects", func(*Artifact) ArtifactChange {
			return ArtifactChange{Manifest: &Manifest{Effects: Effects{Hosts: []string{"*"}}, ApprovedBy: "op"}}
		}},
		{"rollback", func(a *Artifact) ArtifactChange {
			return ArtifactChange{Current: a.Generations[len(a.Generations)-1].ID}
		}},
		{"put", func(a *Artifact) ArtifactChange {
			return ArtifactChange{Generation: &Generation{ID: a.NextGenerationID(), Trigger: "operator:put",
				Code: "own"}, Approve: &yes}
		}},
	}
	random := rand.New(rand.NewPCG(6, 6))
	for round := range 100 {
		a := lived(random)
		before := text(t, a)
		for _, op := range operations {
			change := op.change(a)
			after := a.Apply(change)
			revert := stored(t, Revert{From: *after.Standing(), To: *a.Standing()})
			if why := revert.Hinders(after); why != "" {
				t.Fatalf("round %d, %s: %s", round, op.name, why)
			}
			undone := after.Apply(ArtifactChange{Revert: &revert})
			if got := text(t, undone); got != before {
				t.Fatalf("round %d, %s: undone %s", round, op.name, differ(got, before))
			}
			redo := stored(t, Revert{From: *undone.Standing(), To: *after.Standing()})
			if why := redo.Hinders(undone); (why == "") != (op.name != "put") {
				t.Fatalf("round %d, %s: undoing the undo: %q", round, op.name, why)
			}
			if op.name == "put" {
				continue
			}
			if got, want := text(t, undone.Apply(ArtifactChange{Revert: &redo})), text(t, after); got != want {
				t.Fatalf("round %d, %s: done again %s", round, op.name, differ(got, want))
			}
		}
		if text(t, a) != before {
			t.Fatal("the artifact itself changed")
		}
	}
}

// Calls between an operation and its undo stay counted: the totals are the sum of all calls, and the operation's
// changes are reverted.
func TestUndoKeepsWhatCallsCounted(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 7))
	for round := range 100 {
		a := lived(random)
		after := a.Apply(ArtifactChange{State: StateDurable, ResetMetrics: true})
		revert := Revert{From: *after.Standing(), To: *a.Standing()}
		now, want := after, a
		for _, class := range []Class{ClassOK, ClassIntrinsic, ClassExtrinsic, ClassOK, ClassAuthored} {
			c := ArtifactChange{Result: class, SessionID: "late", Reason: "late", Checked: true,
				CheckPassed: class == ClassOK}
			now, want = now.Apply(c), want.Apply(c)
		}
		got := now.Apply(ArtifactChange{Revert: &revert})
		g, w := got.Standing(), want.Standing()
		g.Revision, w.Revision, g.Adoptions, w.Adoptions, g.LifecycleState, w.LifecycleState, g.GenerationState, w.GenerationState = 0, 0, 0, 0, "", "", "", ""
		if x, y := text(t, g), text(t, w); x != y {
			t.Fatalf("round %d: undone late %s", round, differ(x, y))
		}
		if got.Revision != now.Revision+1 {
			t.Errorf("revision %d after %d", got.Revision, now.Revision)
		}
	}
}

// An undo does not overwrite changes of later operations.
func TestUndoIsHindered(t *testing.T) {
	t.Parallel()
	reason, yes := "suspect", true
	base := lived(rand.New(rand.NewPCG(8, 8))).Apply(ArtifactChange{Release: true})
	one := base.Apply(ArtifactChange{Quarantine: &reason})
	undoOne := Revert{From: *one.Standing(), To: *base.Standing()}
	if undoOne.Hinders(one.Apply(ArtifactChange{Release: true})) == "" {
		t.Error("a quarantine that was released is undone")
	}
	put := base.Apply(ArtifactChange{Generation: &Generation{ID: base.NextGenerationID(), Trigger: "operator:put",
		Code: "own"}, Approve: &yes})
	undoPut := Revert{From: *put.Standing(), To: *base.Standing()}
	repaired := put.Apply(ArtifactChange{Generation: &Generation{ID: put.NextGenerationID(),
		Trigger: "repair:execution", Code: "repaired"}})
	if undoPut.Hinders(repaired) == "" {
		t.Error("a program that was repaired since is put away")
	}
	called := put.Apply(ArtifactChange{Result: ClassOK, SessionID: "late"})
	if why := undoPut.Hinders(called); why != "" {
		t.Fatal(why)
	}
	if got := called.Apply(ArtifactChange{Revert: &undoPut}); got.CurrentID != base.CurrentID || got.Find(put.CurrentID) == nil || got.SuccessCount != base.SuccessCount+1 {
		t.Errorf("current %s, %d successes; want %s with %s kept", got.CurrentID, got.SuccessCount, base.CurrentID,
			put.CurrentID)
	}
}

// lived returns an artifact with a past.
func lived(random *rand.Rand) *Artifact {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var a *Artifact
	for n := range 2 + random.IntN(7) {
		trigger := []string{"initial_forge", "repair:execution", "regenerate:suspect",
			"operator:put"}[min(n, random.IntN(4))]
		id := "gen-1"
		if a != nil {
			id = a.NextGenerationID()
		}
		at = at.Add(time.Hour)
		a = a.Apply(ArtifactChange{Role: "r", MethodName: "m", At: at,
			Generation: &Generation{ID: id, Trigger: trigger, Code: id,
				CheckedFingerprint: fmt.Sprint("k", random.IntN(6))}})
		for range random.IntN(25) {
			class := []Class{ClassOK, ClassOK, ClassIntrinsic, ClassAdaptive, ClassExtrinsic,
				ClassAuthored}[random.IntN(6)]
			c := ArtifactChange{Role: "r", MethodName: "m", At: at, Result: class, Reason: "because",
				SessionID: fmt.Sprint("s", random.IntN(9)), Checked: true, CheckPassed: class == ClassOK}
			if class == ClassOK {
				c.Fixture = &Fixture{CallID: "c", SessionID: c.SessionID, Args: []json.RawMessage{},
					Kwargs: json.RawMessage("{}"), Value: json.RawMessage("1")}
				c.Effects, c.Grow = &Effects{Hosts: []string{fmt.Sprint("h", random.IntN(9))}}, random.IntN(2) == 0
			}
			a = a.Apply(c)
		}
		if random.IntN(5) == 0 {
			a = a.Apply(ArtifactChange{Current: a.Generations[random.IntN(len(a.Generations))].ID})
		}
		if reason := "held"; random.IntN(6) == 0 {
			a = a.Apply(ArtifactChange{Quarantine: &reason})
		}
	}
	return a
}

func text(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// stored returns the revert after a round trip through the JSON of the journal and the audit trail.
func stored(t *testing.T, r Revert) (back Revert) {
	t.Helper()
	if err := json.Unmarshal([]byte(text(t, r)), &back); err != nil {
		t.Fatal(err)
	}
	return back
}

// differ shows the first difference between two texts.
func differ(got, want string) string {
	i := 0
	for i < len(got) && i < len(want) && got[i] == want[i] {
		i++
	}
	around := func(s string) string { return s[max(0, i-80):min(len(s), i+80)] }
	return fmt.Sprintf("is\n%s\nwas\n%s", around(got), around(want))
}
