package store

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
)

func evidenceEntry(i int, role string) *agent.LogEntry {
	return &agent.LogEntry{CallID: fmt.Sprintf("call_%07d", i), Timestamp: fmt.Sprintf("2026-11-21T00:00:00.%07dZ", i),
		Role: role, Method: "m", OutcomeStatus: agent.StatusOK,
		ProgramSource: agent.SourcePersisted}
}

// Evidence is bounded, by method and in all. The evidence of a method does not depend on the number of later calls of
// other methods.
func TestEvidenceIsBounded(t *testing.T) {
	t.Parallel()
	v := NewEvidence(nil)
	n := 0
	add := func(role string, weak bool) {
		e := evidenceEntry(n, role)
		if weak {
			e.WeakSuccess, e.WeakSuccessReasons = true, []string{"empty_array:/a"}
		}
		v.Add(e)
		n++
	}
	for range 5 {
		add("early", true)
		add("early", false)
	}
	for range 3000 {
		add("busy", n%2 == 0)
	}
	early, busy := v.Of("early", "m"), v.Of("busy", "m")
	if len(early.Notes) != 5 || early.Calls != 10 || early.After != 1 || early.Notes[4].Before != 1 {
		t.Errorf("what others did since changed %+v", early)
	}
	if len(busy.Notes) != agent.MaxNotes || busy.Calls != 3000 || len(busy.Plain) != 20 {
		t.Errorf("%d notes, %d plain of %d calls", len(busy.Notes), len(busy.Plain), busy.Calls)
	}
	for i := range 1000 {
		for range 150 {
			add(fmt.Sprintf("role %d", i), true)
		}
	}
	if v.size > MaxEvidence || v.Of("early", "m").Calls != 0 || len(v.Of("role 999", "m").Notes) != 150 {
		t.Errorf("size %d, early %+v", v.size, v.Of("early", "m"))
	}
	size := 0
	for _, m := range v.All() {
		size += weight(&m)
	}
	if size != v.size {
		t.Errorf("size %d is taken for %d", size, v.size)
	}
}

// A call that asks a root again corrects all calls of its tree, plain ones included, also after the evidence was stored
// and read again. Lists that were returned before do not change.
func TestEvidenceOfTrees(t *testing.T) {
	t.Parallel()
	v := NewEvidence(nil)
	leaf, plain, other, root, again := evidenceEntry(1, "leaf"), evidenceEntry(2, "plain"), evidenceEntry(3, "leaf"),
		evidenceEntry(4, "root"), evidenceEntry(5, "root")
	leaf.WeakSuccess, leaf.WeakSuccessReasons = true, []string{"empty_array:/a"}
	other.WeakSuccess, other.WeakSuccessReasons = true, []string{"empty_array:/a"}
	leaf.RootCallID, plain.RootCallID, other.RootCallID = root.CallID, root.CallID, "call_other"
	for _, e := range []*agent.LogEntry{leaf, plain, other, root} {
		v.Add(e)
	}
	before := v.Of("leaf", "m")
	v = NewEvidence(v.All())
	again.UserCorrectionDetected, again.UserCorrectionReferenceCallID = true, root.CallID
	v.Add(again)
	if before.Notes[0].CorrectedBy != "" {
		t.Error("a list that was handed out changed")
	}
	var got []string
	for _, m := range v.Remarkable() {
		for _, n := range m.Notes {
			got = append(got, m.Role+" "+n.CallID+" "+n.CorrectedBy)
		}
	}
	want := []string{"leaf " + leaf.CallID + " " + again.CallID, "leaf " + other.CallID + " ",
		"plain " + plain.CallID + " " + again.CallID, "root " + root.CallID + " " + again.CallID}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if m := v.Of("root", "m"); m.Calls != 2 || len(m.Plain) != 1 || m.After != 1 {
		t.Errorf("the root: %+v", m)
	}
}
