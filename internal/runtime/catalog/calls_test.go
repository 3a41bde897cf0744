package catalog

import (
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Counting a call does not describe the method again: agents look up a tool by name before each call.
func TestCallsDescribeNothing(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.put("calculator", "add", &agent.Interface{Summary: "Add two numbers.", Parameters: []agent.Parameter{}})
	before, err := s.Find(t.Context(), anybody, "calculator__add")
	if err != nil {
		t.Fatal(err)
	}
	m := Method{"calculator", "add"}
	was := s.known[m]
	s.change("calculator", "add", agent.ArtifactChange{Result: agent.ClassOK, Caller: "ann"})
	s.change("calculator", "add", agent.ArtifactChange{Result: agent.ClassOK, Caller: "ben"})
	if now, err := s.Find(t.Context(), anybody, "calculator__add"); err != nil || now != before || s.known[m] != was {
		t.Errorf("after two calls: %+v, %v", now, err)
	}
	yes := true
	s.change("calculator", "add", agent.ArtifactChange{Approve: &yes})
	if _, err := s.Find(t.Context(), agent.Reader{Owner: "ann"}, "calculator__add"); err != nil || s.known[m] == was {
		t.Errorf("after it was approved: %v", err)
	}
}
