package chaos

import (
	"fmt"
	"maps"
	"slices"
)

// A Record is one entry of a session's history.
type Record struct {
	CallID, Method string
	Seq            int
	OK             bool
}

// A Method is what the registry says of one.
type Method struct {
	Successes   int
	Generations []Generation // those that are kept, newest first
	Forges      int          // requests for its first program that the model received; repairs are not counted
	Faults      int          // that may each have cost a flight
}

// A Generation is one program of a method.
type Generation struct {
	Name      string
	Successes int
}

// A State is what daemons hold once nothing runs any more.
type State struct {
	Sessions []Session
	History  map[string][]Record // by session, oldest first
	Counter  map[string]int      // the counter in a session's context
	Methods  map[string]Method   // by name
}

// Check says where the state contradicts what clients saw, in any order. Nothing to say is none.
func Check(calls []*Call, s State) (problems []string) {
	say := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	bySession := map[string][]*Call{}
	for _, c := range calls {
		bySession[c.Session] = append(bySession[c.Session], c)
	}
	oks := map[string]int{} // by method
	for _, session := range s.Sessions {
		history := s.History[session.ID]
		for _, r := range history {
			if r.OK {
				oks[r.Method]++
			}
		}
		checkHistory(say, session, history, bySession[session.ID])
		checkContext(say, session, s, bySession[session.ID])
	}
	for _, name := range slices.Sorted(maps.Keys(s.Methods)) {
		m, named, sum := s.Methods[name], map[string]bool{}, 0
		for _, g := range m.Generations {
			if named[g.Name] {
				say("%s has two generations %s", name, g.Name)
			}
			named[g.Name] = true
			sum += g.Successes
		}
		if m.Successes != oks[name] {
			say("%s counts %d successes, and histories have %d", name, m.Successes, oks[name])
		}
		if len(m.Generations) < 3 && sum != m.Successes { // a fourth drops the first one's
			say("%s counts %d successes, and its generations %d", name, m.Successes, sum)
		}
		if m.Forges > 1+m.Faults {
			say("%s was forged %d times, with %d faults", name, m.Forges, m.Faults)
		}
	}
	return problems
}

// checkHistory: every acknowledged call is there once, no other is there more often than it was sent, and numbers are gapless.
func checkHistory(say func(string, ...any), session Session, history []Record, calls []*Call) {
	there := map[string]int{}
	for i, r := range history {
		if r.Seq != i+1 {
			say("%s has the number %d at place %d", session.ID, r.Seq, i+1)
		}
		there[r.CallID]++
	}
	for id, n := range there {
		if n != 1 {
			say("%s has the call %s %d times", session.ID, id, n)
		}
	}
	known, acked, unsure := map[string]bool{}, 0, 0
	for _, c := range calls {
		switch {
		case c.Acked:
			acked++
			if known[c.ID] {
				say("%s: two calls were answered with the id %s", session.ID, c.ID)
			}
			known[c.ID] = true
			if there[c.ID] == 0 {
				say("%s has lost the call %s of %s", session.ID, c.ID, c.Method)
			}
		case !c.Refused:
			unsure++
		}
		if c.Key != "" && !c.Acked {
			say("%s: the call with the key %s was never acknowledged, in %d requests", session.ID, c.Key, c.Sent)
		}
	}
	// A key stands for one call however often it was sent. Without one, a request that nobody answered may have run.
	if n := len(history); n < acked || n > acked+unsure {
		say("%s has %d calls: %d were acknowledged, and %d may have run besides", session.ID, n, acked, unsure)
	}
}

// checkContext: each call of the counter saw what the one before it left.
func checkContext(say func(string, ...any), session Session, s State, calls []*Call) {
	rank, n := map[string]int{}, 0 // by call
	for _, r := range s.History[session.ID] {
		if r.Method == "inc" && r.OK {
			n++
			rank[r.CallID] = n
		}
	}
	if s.Counter[session.ID] != n {
		say("%s counted to %d in %d calls", session.ID, s.Counter[session.ID], n)
	}
	for _, c := range calls {
		if c.Acked && c.OK && c.Method == "inc" && c.Value != float64(rank[c.ID]) {
			say("%s: call %s was answered %v, and is the %d. of its session", session.ID, c.ID, c.Value, rank[c.ID])
		}
	}
}
