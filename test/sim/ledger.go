package sim

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// A fact is a value that a client knows from acknowledged changes. Until the value is read again, changes that were
// sent and not acknowledged may have happened or not.
type fact struct {
	want  string
	maybe []string
}

// set records an acknowledged value.
func (f *fact) set(v string) { f.want, f.maybe = v, nil }

// doubt records a value that may have been set.
func (f *fact) doubt(v string) { f.maybe = append(f.maybe, v) }

// sure reports whether nothing is in doubt.
func (f *fact) sure() bool { return len(f.maybe) == 0 }

// read compares the value that the daemon has. That value is certain from then on.
func (f *fact) read(got string) error {
	if got != f.want && !slices.Contains(f.maybe, got) {
		return fmt.Errorf("got %s, want %s%s", got, f.want, either(f.maybe))
	}
	f.set(got)
	return nil
}

func either(maybe []string) string {
	if len(maybe) == 0 {
		return ""
	}
	return ", or not acknowledged: " + strings.Join(maybe, " | ")
}

// gone is the value of something that does not exist.
const gone = "gone"

// called is one call of a client.
type called struct {
	id     string // "" while it is in doubt
	method string
	args   []any
	ok     bool
}

// A session holds what its client knows about it.
type session struct {
	id      string
	there   fact // "there" or gone
	calls   []called
	doubts  []called // calls that were sent since the last of calls, and not acknowledged
	memory  memory
	patched fact           // the key "patched" of the context
	recalls map[string]int // number of records before each call, by call
	known   int            // records of the history that were compared
	settled int            // calls that have records among these
}

// memory holds the keys of a context that programs write.
type memory struct {
	count int
	notes []string
}

// apply changes the context as a successful call does.
func (s *session) apply(c called) {
	if !c.ok {
		return
	}
	switch c.method {
	case count:
		s.memory.count += c.args[0].(int)
	case note:
		s.memory.notes = append(s.memory.notes, c.args[0].(string))
	}
}

// answered records an acknowledged call.
func (s *session) answered(c called) {
	s.calls = append(s.calls, c)
	s.apply(c)
}

// A record is a line of a history.
type record struct {
	ID      string          `json:"call_id"`
	Seq     int             `json:"seq"`
	Method  string          `json:"method_name"`
	Args    json.RawMessage `json:"args"`
	Depth   int             `json:"depth"`
	Parent  string          `json:"parent_call_id"`
	Outcome struct {
		OK   bool   `json:"ok"`
		Type string `json:"error_type"`
	} `json:"outcome_summary"`
}

// settle compares the records after the first ones, whose number is given, with the calls.
// Calls in doubt are certain from then on.
func (s *session) settle(records []record, after int) error {
	calls := s.calls
	if after > 0 {
		calls = calls[s.settled:]
	}
	var top []record
	for i, r := range records {
		if r.Seq != after+i+1 {
			return fmt.Errorf("record %d of the history has the number %d", after+i+1, r.Seq)
		}
		if r.Depth == 0 {
			top = append(top, r)
		} else if r.Method != add {
			return fmt.Errorf("a nested call of %s, which nobody makes", r.Method)
		}
	}
	for i, c := range calls {
		if i >= len(top) || top[i].ID != c.id {
			return fmt.Errorf("call %d of %d was acknowledged as %s (%s), and the history has %s there", i+1,
				len(calls), c.id, c.method, idAt(top, i))
		}
		if top[i].Outcome.OK != c.ok {
			return fmt.Errorf("call %s was answered with ok %t, and its record says %t", c.id, c.ok, top[i].Outcome.OK)
		}
	}
	doubts := s.doubts
	for _, r := range top[len(calls):] {
		i := slices.IndexFunc(doubts, func(c called) bool { return c.method == r.Method && same(c.args, r.Args) })
		if i < 0 {
			return fmt.Errorf("the history has the call %s (%s), which no client made, or made once", r.ID, r.Method)
		}
		c := doubts[i]
		c.id, c.ok = r.ID, r.Outcome.OK
		doubts = doubts[i+1:]
		s.answered(c)
	}
	s.doubts, s.settled, s.known = nil, len(s.calls), after+len(records)
	return nil
}

func idAt(top []record, i int) string {
	if i < len(top) {
		return top[i].ID + " (" + top[i].Method + ")"
	}
	return "nothing"
}

// same reports whether the text is the JSON of the arguments.
func same(args []any, text json.RawMessage) bool {
	want, _ := json.Marshal(args) // numbers and texts: cannot fail
	return string(want) == string(text)
}

// contextText returns the expected context as text.
func (s *session) contextText() string {
	notes, _ := json.Marshal(s.memory.notes) // texts: cannot fail
	return fmt.Sprintf("count %d, notes %s", s.memory.count, notes)
}

// An example is an answer that a person expects from the generations of add after a certain one.
type example struct {
	args    []any
	want    int
	from    int    // programs of later generations must answer so
	session string // the example is deleted with it; "" if a person gave the example
}

// A space holds what is known about a namespace.
type space struct {
	name   string
	policy map[string]*fact // by field

	mu        sync.Mutex
	examples  []example       // of add, if sure; guarded by mu, as are the fields below
	unsure    bool            // examples were sent and not acknowledged
	audits    map[string]bool // acknowledged entries that have not been seen yet
	head      entry           // the newest entry of the trail that was compared
	undo      undoable
	seen      map[string]bool // calls in histories
	answers   map[string]int  // number of those that succeeded, by method
	sequences map[string]int  // the newest acknowledged generation, by method
	dropped   map[string]bool // sessions that were deleted, or may have been
	sum       *sum
}

// A sum is an answered call of add, for a person to judge.
type sum struct {
	call, session string
	args          []any
	got           int
}

// An entry is an entry of the audit trail.
type entry struct {
	ID   string
	Seq  int64
	Prev string `json:"prev_hash"`
	Hash string
}

// An undoable is the last acknowledged change of the policy.
type undoable struct{ audit, field, before string }

// kept is a file of a client.
type kept struct {
	id      string
	text    string
	there   fact
	expires time.Time
}

// expired reports whether the file may have been deleted because of its age.
func (f *kept) expired() bool { return time.Now().After(f.expires) }
