package replicas

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
	Unkept      int          // of them: a program answered that became no generation
	Generations []Generation // those that are kept, newest first
	Forges      int          // requests for its first program that the model received; repairs are not counted
	Lost        int          // faults that may each have cost a flight
}

// A Generation is one program of a method.
type Generation struct {
	Name, Checksum string
	Successes      int
}

// Usage is what a namespace's report says in sum.
type Usage struct {
	Calls     map[string]int // by role and method
	Tokens    int
	Estimated int // of Tokens: where nobody said what a request had cost
}

// A Namespace is what daemons hold of one.
type Namespace struct {
	Methods map[string]Method // by name
	Usage   Usage
	Events  []string // ids of the calls of its event stream; nil: nobody read it
	Streams int      // that this took
	Asked   int      // tokens of the model's own count, where they are counted
	Cap     int      // of tokens; 0: none
}

// A State is what daemons hold once nothing runs any more.
type State struct {
	Sessions   []Session
	History    map[string][]Record // by session, oldest first
	Counter    map[string]int      // the counter in a session's context
	Namespaces map[string]Namespace
}

// of is the histories of all sessions of a namespace.
func (s State) of(namespace string) (all []Record) {
	for _, session := range s.Sessions {
		if session.Namespace == namespace {
			all = append(all, s.History[session.ID]...)
		}
	}
	return all
}

// say reports a contradiction.
type say func(format string, args ...any)

// Check says where the state contradicts what clients saw, in any order. Nothing to say is none.
func Check(calls []*Call, s State) (problems []string) {
	say := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	bySession, byNamespace := map[string][]*Call{}, map[string][]*Call{}
	for _, c := range calls {
		bySession[c.Session] = append(bySession[c.Session], c)
	}
	for _, session := range s.Sessions {
		mine := bySession[session.ID]
		byNamespace[session.Namespace] = append(byNamespace[session.Namespace], mine...)
		checkHistory(say, session, s.History[session.ID], mine)
		checkContext(say, session, s, mine)
		for _, c := range mine {
			checkOutcome(say, c, session.Namespace)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Namespaces)) {
		space, records := s.Namespaces[name], s.of(name)
		checkMethods(say, space, records, byNamespace[name])
		checkPrograms(say, space, byNamespace[name])
		checkUsage(say, name, space, records)
		if space.Events != nil {
			checkEvents(say, name, space.Events, records)
		}
	}
	return problems
}

// checkHistory: every acknowledged call is there once as it was answered, no other is there more often than it was
// sent, and numbers are gapless.
func checkHistory(say say, session Session, history []Record, calls []*Call) {
	there := map[string]Record{}
	for i, r := range history {
		if r.Seq != i+1 {
			say("%s has the number %d at place %d", session.ID, r.Seq, i+1)
		}
		if _, twice := there[r.CallID]; twice {
			say("%s has the call %s again at place %d", session.ID, r.CallID, i+1)
		}
		there[r.CallID] = r
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
			if r, found := there[c.ID]; !found {
				say("%s has lost the call %s of %s", session.ID, c.ID, c.Method)
			} else if r.Method != c.Method || r.OK != c.OK {
				say("%s has the call %s as %s, ok %t, and it was answered as %s, ok %t", session.ID, c.ID, r.Method,
					r.OK, c.Method, c.OK)
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
func checkContext(say say, session Session, s State, calls []*Call) {
	rank, n, counts := map[string]int{}, 0, counter(session.Namespace) // rank by call
	for _, r := range s.History[session.ID] {
		if r.Method == counts && r.OK {
			n++
			rank[r.CallID] = n
		}
	}
	if s.Counter[session.ID] != n {
		say("%s counted to %d in %d calls", session.ID, s.Counter[session.ID], n)
	}
	for _, c := range calls {
		if c.Acked && c.OK && c.Method == counts && c.Value != float64(rank[c.ID]) {
			say("%s: call %s was answered %v, and is the %d. of its session", session.ID, c.ID, c.Value, rank[c.ID])
		}
	}
}

// checkOutcome: a call that succeeded brought its value, and one that did not was interrupted, or over the cap.
func checkOutcome(say say, c *Call, namespace string) {
	switch {
	case !c.Acked:
	case c.OK && c.Want != nil && c.Value != c.Want:
		say("call %s of %s was answered %v, want %v", c.ID, c.Method, c.Value, c.Want)
	case !c.OK && !mayFail[c.Error] && !(namespace == capped && c.Error == "budget_exceeded"):
		say("call %s of %s failed: %s", c.ID, c.Method, c.Error)
	}
}

// mayFail are types of errors that faults bring: a daemon ended its calls when it stopped, or a client had hung up.
var mayFail = map[string]bool{"canceled": true}

// checkMethods: counters are the sums of histories, a generation's name is there once, and one flight forged.
func checkMethods(say say, space Namespace, records []Record, calls []*Call) {
	oks, interrupted := map[string]int{}, map[string]int{} // by method
	for _, c := range calls {
		if !c.Acked && !c.Refused || c.Sent > 1 || c.Error == "canceled" {
			// a fault that meets several costs each of them its flight, where they come one after the other
			interrupted[c.Method]++
		}
	}
	for _, r := range records {
		if r.OK {
			oks[r.Method]++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(space.Methods)) {
		m, named, sum := space.Methods[name], map[string]bool{}, 0
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
		if len(m.Generations) < 3 && sum != m.Successes-m.Unkept { // a fourth drops the first one's
			say("%s counts %d successes, %d of no generation, and its generations %d", name, m.Successes, m.Unkept, sum)
		}
		if m.Forges > 1+m.Lost+interrupted[name] {
			say("%s was forged %d times, and %d faults and %d calls that were interrupted may have cost a flight", name,
				m.Forges, m.Lost, interrupted[name])
		}
	}
}

// checkPrograms: a generation is one program, whoever answered with it and whenever. No two that the model writes are
// the same.
func checkPrograms(say say, space Namespace, calls []*Call) {
	programs := map[[2]string]string{} // checksum by method and generation
	same := func(method, generation, checksum, where string) {
		key := [2]string{method, generation}
		if is := programs[key]; is != "" && is != checksum {
			say("%s of %s is %s, and %s in %s", generation, method, is, checksum, where)
		}
		programs[key] = checksum
	}
	for _, name := range slices.Sorted(maps.Keys(space.Methods)) {
		for _, g := range space.Methods[name].Generations {
			same(name, g.Name, g.Checksum, "the registry")
		}
	}
	for _, c := range calls {
		if c.Acked && c.OK && c.Generation != "" {
			same(c.Method, c.Generation, c.Checksum, "the reply of "+c.ID)
		}
	}
}

// checkUsage: the report counts each call, nothing that the model was asked is missing, and the cap was not passed.
func checkUsage(say say, name string, space Namespace, records []Record) {
	calls := map[string]int{}
	for _, r := range records {
		calls[role+"."+r.Method]++
	}
	if !maps.Equal(calls, space.Usage.Calls) {
		say("the report of namespace %q counts the calls %v, and histories have %v", name, space.Usage.Calls, calls)
	}
	if space.Usage.Tokens < space.Asked {
		say("the report of namespace %q has %d tokens, and the model counted %d", name, space.Usage.Tokens, space.Asked)
	}
	if most := max(space.Usage.Tokens, space.Asked); space.Cap > 0 && most > space.Cap {
		say("the cap of namespace %q was passed: %d tokens, the model counted %d, and no more than %d may be", name,
			space.Usage.Tokens, space.Asked, space.Cap)
	}
}

// checkEvents: the stream brought each call once, and nothing else.
func checkEvents(say say, name string, ids []string, records []Record) {
	times := map[string]int{}
	for _, id := range ids {
		times[id]++
	}
	lost, again := []string{}, []string{}
	for _, r := range records {
		switch n := times[r.CallID]; {
		case n == 0:
			lost = append(lost, r.CallID)
		case n > 1:
			again = append(again, r.CallID)
		}
		delete(times, r.CallID)
	}
	for what, list := range map[string][]string{"did not come": lost, "came again": again,
		"are in no history": slices.Sorted(maps.Keys(times))} {
		if len(list) > 0 {
			say("the events of namespace %q: %d %s, such as %s", name, len(list), what, list[0])
		}
	}
}
