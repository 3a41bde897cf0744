package forge

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/interrupt"
	"github.com/recurgentd/recurgentd/internal/runtime/proof"
	"github.com/recurgentd/recurgentd/internal/store"
)

// A Candidate is a program that a model wrote for one call, or for several that waited together. It has compiled.
type Candidate struct {
	*proof.Candidate

	leader   string          // ID of the call that requested it
	Existing *agent.Artifact // set if another call stored a program meanwhile; then the other fields are unset
	KeptAt   time.Time
	shared   bool   // shared with other replicas
	withdraw func() // stops offering it to them; nil if this replica does not offer it

	Unallowed atomic.Bool // a run failed because a person's approval was missing
	// the program reported that the task belongs to another tool; this is the answer, so no other program is requested
	Answers atomic.Bool

	Turn    sync.Mutex
	Adopted string      // ID of the generation it became; guarded by Turn
	Cost    agent.Usage // usage of an earlier call that requested the candidate without adopting it; guarded by Turn
}

// Charge adds the usage of a call that requested the candidate without adopting it.
func (c *Candidate) Charge(u agent.Usage) {
	c.Turn.Lock()
	defer c.Turn.Unlock()
	c.Cost.Add(u)
}

// A meter counts what the requests of a flight have cost so far. A request counts as soon as it is sent, because the
// call that started the flight may end before the answer arrives.
type meter struct {
	mu    sync.Mutex
	usage agent.Usage // guarded by mu
}

// sent counts a request. The returned function replaces the count with the request's actual usage.
func (m *meter) sent() (answered func(agent.Usage)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.usage.ModelRequests++
	return func(u agent.Usage) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.usage.ModelRequests--
		m.usage.Add(u)
	}
}

// read returns the usage so far.
func (m *meter) read() agent.Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.usage
}

// flightResult is the result of a flight: a candidate, or the reason why there is none.
type flightResult struct {
	Candidate  *Candidate
	Failure    *agent.Outcome // set if there is no candidate
	Class      agent.Class
	Attempts   []agent.AttemptFailure // programs that the gate refused before
	Last       string                 // checksum of the last refused program
	Usage      agent.Usage
	Requested  int // programs requested
	Guardrails int // retries used
	// programs requested after one with the same faults, which did not use a retry
	Repeated     int
	Built        time.Duration // time spent waiting for the compiler; part of Gated
	Gated        time.Duration // time spent parsing, checking and compiling
	System, User string        // the last prompt
	Tools        []string      // roles of the known tools in the last prompt
	Foreign      bool          // another replica requested the candidate
	lost         bool          // another replica has taken over, so there is no candidate
	Owner        string        // owner of the call that requested it
}

// Replacements for texts that quote a program written for another owner's call, and for a model server's message about
// that call's request.
const (
	refusedForAnother    = "a program that a call of another owner asked for was refused"
	unansweredForAnother = "the request for a program, which a call of another owner made, was not answered"
)

// seenBy returns the result as a call that waited for it may record it. The gate's message quotes the refused program,
// and with it the input of the call that requested it; a model server may quote the request. A call of another owner
// therefore gets only the types of the errors.
func (r flightResult) seenBy(owner, callID string) flightResult {
	if r.Owner == owner && !r.Foreign {
		return r
	}
	r.System, r.User, r.Tools = "", "", nil
	r.Attempts = slices.Clone(r.Attempts)
	for i := range r.Attempts {
		a := &r.Attempts[i]
		a.AttemptID, a.ErrorMessage, a.Metadata, a.Hint = callID+".v", refusedForAnother, nil, ""
	}
	if r.Failure == nil {
		return r
	}
	switch f := *r.Failure; {
	case r.Class == agent.ClassIntrinsic:
		f = agent.Failed(f.ErrorType, refusedForAnother)
		r.Failure = &f
	case f.ErrorType == agent.ErrProvider:
		f.ErrorMessage, f.Metadata = unansweredForAnother, nil
		r.Failure = &f
	}
	return r
}

// flights lets calls that need the same program request it once. A flight ends for its waiters when the candidate
// compiles, so recursion cannot wait for itself. It stays joinable until the last call that runs the candidate has
// finished, because until then the candidate may not be stored. The zero value is ready.
type flights struct {
	under sync.WaitGroup // counts forges

	mu  sync.Mutex
	all map[string]*flight // guarded by mu
}

// A flight is one request for a program, shared by all calls that need it.
type flight struct {
	spent  meter
	users  int // guarded by flights.mu
	done   chan struct{}
	result flightResult // set before done is closed
	cancel context.CancelCauseFunc
}

// underWay reports whether any flight has a user.
func (f *flights) underWay() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.all) > 0
}

// join finds the flight of that key, or starts one that runs forge in its own goroutine: canceling the leader must not
// end the flight for the others. leave must be called once the result is not needed any more. When the last user
// leaves, the flight's context ends.
func (f *flights) join(life context.Context, key string, forge func(context.Context,
	*meter) flightResult) (fl *flight, leader bool, leave func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil {
		f.all = map[string]*flight{}
	}
	fl = f.all[key]
	if fl == nil {
		// The flight's context is the Runtime's, not the leader's: joined calls must get their result even if the
		// leader is canceled.
		ctx, cancel := context.WithCancelCause(store.Patient(life))
		fl = &flight{done: make(chan struct{}), cancel: cancel}
		f.all[key] = fl
		leader = true
		f.under.Go(func() {
			defer close(fl.done)
			defer cancel(nil)
			fl.result = forge(ctx, &fl.spent)
		})
	}
	fl.users++
	return fl, leader, sync.OnceFunc(func() { f.leave(key, fl) })
}

// leave removes a user. The last one also withdraws the candidate, outside the lock, because that writes to the store.
func (f *flights) leave(key string, fl *flight) {
	if f.left(key, fl) {
		fl.withdraw()
	}
}

// left removes a user from the flight and reports whether it was the last.
func (f *flights) left(key string, fl *flight) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if fl.users--; fl.users > 0 {
		return false
	}
	fl.cancel(interrupt.ErrCanceled)
	if f.all[key] == fl {
		delete(f.all, key)
	}
	return true
}

// withdraw stops offering the flight's candidate to other replicas. By now the candidate is stored, or will not be: a
// later request wants another program.
func (fl *flight) withdraw() {
	select {
	case <-fl.done:
	default:
		return // it has no candidate yet
	}
	if c := fl.result.Candidate; c != nil && c.withdraw != nil {
		c.withdraw()
	}
}

// wait returns the flight's result, or false if ctx ends first.
func (fl *flight) wait(ctx context.Context) (flightResult, bool) {
	select {
	case <-fl.done:
		return fl.result, true
	case <-ctx.Done():
		return flightResult{}, false
	}
}
