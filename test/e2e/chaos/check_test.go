package chaos

import (
	"strings"
	"testing"
)

// sound is a state, and calls that fit it.
func sound() ([]*Call, State) {
	calls := []*Call{
		{Session: "a", Method: "inc", Key: "1", Sent: 2, Acked: true, ID: "c1", OK: true, Value: 1.0},
		{Session: "a", Method: "inc", Key: "2", Sent: 1, Acked: true, ID: "c2", OK: true, Value: 2.0},
		{Session: "b", Method: "inc", Sent: 1, Acked: true, ID: "c3", OK: true, Value: 1.0},
		{Session: "b", Method: "inc", Sent: 1},                // it ran
		{Session: "b", Method: "flaky1", Sent: 1},             // it did not
		{Session: "b", Method: "inc", Sent: 1, Refused: true}, // it did not
	}
	return calls, State{
		Sessions: []Session{{ID: "a", Keyed: true}, {ID: "b"}},
		History:  map[string][]Record{"a": {{"c1", "inc", 1, true}, {"c2", "inc", 2, true}}, "b": {{"c3", "inc", 1, true}, {"c4", "inc", 2, true}}},
		Counter:  map[string]int{"a": 2, "b": 2},
		Methods:  map[string]Method{"inc": {Successes: 4, Forges: 1, Generations: []Generation{{"gen-1", 4}}}},
	}
}

// The checks can fail: each of these has one fault, and the word says which check must notice.
func TestCheckNotices(t *testing.T) {
	t.Parallel()
	if calls, state := sound(); len(Check(calls, state)) > 0 {
		t.Fatalf("a sound state: %q", Check(calls, state))
	}
	for want, damage := range map[string]func([]*Call, *State){
		"lost the call":         func(c []*Call, _ *State) { c[1].ID = "c9" },
		"c1 2 times":            func(_ []*Call, s *State) { s.History["a"][1].CallID = "c1" },
		"number 3 at place 2":   func(_ []*Call, s *State) { s.History["a"][1].Seq = 3 },
		"answered with the id":  func(c []*Call, _ *State) { c[1].ID = "c1" },
		"never acknowledged":    func(c []*Call, _ *State) { c[0].Acked = false },
		"may have run besides":  func(c []*Call, _ *State) { c[3].Refused, c[4].Refused = true, true },
		"counted to 1 in 2":     func(_ []*Call, s *State) { s.Counter["a"] = 1 },
		"was answered 1":        func(c []*Call, _ *State) { c[1].Value = 1.0 },
		"counts 3 successes":    func(_ []*Call, s *State) { change(s, func(m *Method) { m.Successes = 3 }) },
		"and its generations 3": func(_ []*Call, s *State) { change(s, func(m *Method) { m.Generations[0].Successes = 3 }) },
		"two generations gen-1": func(_ []*Call, s *State) {
			change(s, func(m *Method) { m.Generations = append(m.Generations, Generation{"gen-1", 0}) })
		},
		"was forged 3 times": func(_ []*Call, s *State) { change(s, func(m *Method) { m.Forges = 3; m.Faults = 1 }) },
	} {
		calls, state := sound()
		damage(calls, &state)
		if got := strings.Join(Check(calls, state), "\n"); !strings.Contains(got, want) {
			t.Errorf("the damage of %q is noticed as %q", want, got)
		}
	}
}

func change(s *State, f func(*Method)) {
	m := s.Methods["inc"]
	f(&m)
	s.Methods["inc"] = m
}
