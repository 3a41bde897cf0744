package replicas

import (
	"strings"
	"testing"
)

// sound is a state, and calls that fit it.
func sound() ([]*Call, State) {
	ok := func(id string, value any) Reply {
		return Reply{ID: id, OK: true, Value: value, Generation: "gen-1", Checksum: "p1"}
	}
	calls := []*Call{
		{Session: "a", Method: "inc", Key: "1", Sent: 2, Acked: true, Reply: ok("c1", 1.0)},
		{Session: "a", Method: "inc", Key: "2", Sent: 1, Acked: true, Reply: ok("c2", 2.0)},
		{Session: "b", Method: "inc", Sent: 1, Acked: true, Reply: ok("c3", 1.0)},
		{Session: "b", Method: "inc", Sent: 1},                // it ran
		{Session: "b", Method: "flaky1", Sent: 1},             // it did not
		{Session: "b", Method: "inc", Sent: 1, Refused: true}, // it did not
		{Session: "b", Method: "make1", Want: "x", Sent: 1, Acked: true, Reply: ok("c5", "x")},
		{Session: "c", Method: "cost1_0", Want: "y", Sent: 1, Acked: true,
			Reply: Reply{ID: "c6", Error: "budget_exceeded"}},
	}
	return calls, State{
		Sessions: []Session{{ID: "a", Keyed: true}, {ID: "b"}, {ID: "c", Namespace: capped}},
		History: map[string][]Record{"a": {{"c1", "inc", 1, true}, {"c2", "inc", 2, true}},
			"b": {{"c3", "inc", 1, true}, {"c4", "inc", 2, true}, {"c5", "make1", 3, true}},
			"c": {{"c6", "cost1_0", 1, false}}},
		Counter: map[string]int{"a": 2, "b": 2},
		Namespaces: map[string]Namespace{
			"": {Methods: map[string]Method{"inc": {Successes: 4, Forges: 1,
				Generations: []Generation{{"gen-1", "p1", 4}}}},
				Usage:  Usage{Calls: map[string]int{"counter.inc": 4, "counter.make1": 1}},
				Events: []string{"c1", "c3", "c2", "c5", "c4"}},
			capped: {Usage: Usage{Calls: map[string]int{"counter.cost1_0": 1}, Tokens: 9, Estimated: 3}, Asked: 6,
				Cap: 9},
		},
	}
}

// The checks can fail: each of these has one fault, and the words say which check must notice.
func TestCheckNotices(t *testing.T) {
	t.Parallel()
	if calls, state := sound(); len(Check(calls, state)) > 0 {
		t.Fatalf("a sound state: %q", Check(calls, state))
	}
	for want, damage := range map[string]func([]*Call, *State){
		"lost the call":           func(c []*Call, _ *State) { c[1].ID = "c9" },
		"c1 again at place 2":     func(_ []*Call, s *State) { s.History["a"][1].CallID = "c1" },
		"number 3 at place 2":     func(_ []*Call, s *State) { s.History["a"][1].Seq = 3 },
		"answered with the id":    func(c []*Call, _ *State) { c[1].ID = "c1" },
		"never acknowledged":      func(c []*Call, _ *State) { c[0].Acked = false },
		"may have run besides":    func(c []*Call, _ *State) { c[3].Refused, c[4].Refused = true, true },
		"as make1, ok true, and":  func(_ []*Call, s *State) { s.History["a"][1].Method = "make1" },
		"as inc, ok false, and":   func(_ []*Call, s *State) { s.History["a"][1].OK = false },
		"counted to 1 in 2":       func(_ []*Call, s *State) { s.Counter["a"] = 1 },
		"was answered 1":          func(c []*Call, _ *State) { c[1].Value = 1.0 },
		"was answered z, want x":  func(c []*Call, _ *State) { c[6].Value = "z" },
		"failed: runner_crash":    func(c []*Call, _ *State) { c[7].Error = "runner_crash" },
		"failed: budget_exceeded": func(_ []*Call, s *State) { s.Sessions[2].Namespace = "" },
		"counts 3 successes":      func(_ []*Call, s *State) { change(s, "inc", func(m *Method) { m.Successes = 3 }) },
		"and its generations 3": func(_ []*Call, s *State) {
			change(s, "inc",
				func(m *Method) { m.Generations[0].Successes = 3 })
		},
		"1 of no generation, and": func(_ []*Call, s *State) { change(s, "inc", func(m *Method) { m.Unkept = 1 }) },
		"two generations gen-1": func(_ []*Call, s *State) {
			change(s, "inc", func(m *Method) { m.Generations = append(m.Generations, Generation{"gen-1", "p1", 0}) })
		},
		"p1, and p2 in the reply of c3": func(c []*Call, _ *State) { c[2].Checksum = "p2" },
		"forged 5 times": func(_ []*Call, s *State) {
			change(s, "inc",
				func(m *Method) { m.Forges = 5; m.Lost = 1 })
		},
		"counts the calls": func(_ []*Call, s *State) { s.Namespaces[""].Usage.Calls["counter.inc"] = 5 },
		"9 tokens, and the model": func(_ []*Call, s *State) {
			changeCapped(s,
				func(n *Namespace) { n.Asked, n.Cap = 10, 10 })
		},
		"no more than 8 may be": func(_ []*Call, s *State) {
			changeCapped(s,
				func(n *Namespace) { n.Cap = 8 })
		},
		"1 did not come, such as c5":     func(_ []*Call, s *State) { s.Namespaces[""].Events[3] = "c4" },
		"1 came again, such as c4":       func(_ []*Call, s *State) { s.Namespaces[""].Events[3] = "c4" },
		"1 are in no history, such as x": func(_ []*Call, s *State) { s.Namespaces[""].Events[3] = "x" },
	} {
		calls, state := sound()
		damage(calls, &state)
		if got := strings.Join(Check(calls, state), "\n"); !strings.Contains(got, want) {
			t.Errorf("the damage of %q is noticed as %q", want, got)
		}
	}
}

func change(s *State, method string, f func(*Method)) {
	m := s.Namespaces[""].Methods[method]
	f(&m)
	s.Namespaces[""].Methods[method] = m
}

func changeCapped(s *State, f func(*Namespace)) {
	n := s.Namespaces[capped]
	f(&n)
	s.Namespaces[capped] = n
}
