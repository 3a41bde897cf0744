package agent_test

import (
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// A program is outdated only if people have changed the wording since.
func TestReworded(t *testing.T) {
	t.Parallel()
	made := func(digest, byPerson agent.WordingDigest, before ...agent.WordingDigest) *agent.Generation {
		return &agent.Generation{MadeFor: &agent.MadeFor{Digest: digest, ByPerson: byPerson, Before: before}}
	}
	confirmed := made("a..", "a..")
	confirmed.Confirmed = "b.."
	for name, x := range map[string]struct {
		g    *agent.Generation
		now  agent.WordingDigest
		want bool
	}{
		"the same":           {made("a..", "a.."), "a..", false},
		"another purpose":    {made("a..", "a.."), "b..", true},
		"an acceptance more": {made("a..", "a.."), "a.b.", true},
		"an acceptance that it was asked with anyway": {made("a.b.", "a.."), "a.b.", false},
		"registered for the first time":               {made("..", ".."), "a..", true},
		"registered as it was asked with":             {made("a.b.", ".."), "a..", false},
		"taken back":                                  {made("a..", "a.."), "..", true},
		"a call's words are gone":                     {made("a.b.c", ".."), "..", false},
		"checked before":                              {made("a..", "a..", "b..", "c.."), "c..", false},
		"a person stood by it":                        {confirmed, "b..", false},
		"changed after that":                          {confirmed, "c..", true},
		"words do not count":                          {made("a..", "a.."), "", false},
		"it is not kept":                              {&agent.Generation{}, "a..", false},
	} {
		if got := x.g.Reworded(x.now); got != x.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// The earlier wordings that a program was made or checked for are kept, up to eight. Older programs get their wording
// once.
func TestRewordings(t *testing.T) {
	t.Parallel()
	var a *agent.Artifact
	a = a.Apply(adopt("gen-1", "initial_forge", "none"))
	for _, digest := range []agent.WordingDigest{"a..", "x.."} {
		a = a.Apply(agent.ArtifactChange{Reworded: &agent.Rewording{For: agent.MadeFor{Digest: digest,
			ByPerson: digest}}})
	}
	if got := a.Current().MadeFor; got.ByPerson != "a.." || len(got.Before) != 0 {
		t.Fatalf("noted twice: %+v", got)
	}
	at := time.Unix(1, 0)
	was := a.Current().MadeFor
	for i := range 12 {
		digest := agent.WordingDigest(string(rune('b'+i)) + "..")
		a = a.Apply(agent.ArtifactChange{Reworded: &agent.Rewording{Of: "gen-1",
			For: agent.MadeFor{Digest: digest, ByPerson: digest, Checked: &at}}})
	}
	m := a.Current().MadeFor
	if m.ByPerson != "m.." || len(m.Before) != 8 || m.Before[0] != "l.." || m.Checked == nil || was.ByPerson != "a.." {
		t.Errorf("got %+v, and what was is %+v", m, was)
	}
	if a.Current().Reworded("f..") || !a.Current().Reworded("a..") {
		t.Error("the last eight wordings count")
	}
	if next := a.Apply(agent.ArtifactChange{Reworded: &agent.Rewording{Of: "gen-9",
		For: *m}}); next.Current().MadeFor != m {
		t.Error("a generation that is not kept changes another")
	}
}

// Undoing an operation also undoes the confirmation of the program, to the byte.
func TestUndoneConfirmation(t *testing.T) {
	t.Parallel()
	var a *agent.Artifact
	a = a.Apply(adopt("gen-1", "initial_forge", "none"))
	before := a.Standing()
	said := a.Apply(agent.ArtifactChange{State: agent.StateDurable, Confirm: "a.."})
	if said.Current().Confirmed != "a.." || a.Current().Confirmed != "" {
		t.Fatalf("confirmed: %q, %q", said.Current().Confirmed, a.Current().Confirmed)
	}
	undone := said.Apply(agent.ArtifactChange{Revert: &agent.Revert{From: *said.Standing(), To: *before}})
	if string(agent.Encoded(undone)) != string(agent.Encoded(a)) {
		t.Errorf("undone: %s\nwant %s", agent.Encoded(undone), agent.Encoded(a))
	}
}
