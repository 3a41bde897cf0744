package runtime

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/interrupt"
	"github.com/recurgentd/recurgentd/internal/store"
)

// A candidate is a program that a model wrote for one call or for several that waited together. It compiled.
type candidate struct {
	generation  agent.Generation // without an ID: that comes with adoption
	predecessor *agent.Generation
	leader      string          // the call that asked for it
	existing    *agent.Artifact // instead of all this, when another call had stored one meanwhile
	proof       proof
	reach       *reach // of its predecessor, beyond which a person is asked; nil: nobody is
	keeps       bool   // the model says that the predecessor does what the method is for now: there is no new program
	keptAt      time.Time
	shared      bool   // with other replicas
	withdraw    func() // stops showing it to them; nil where this one does not

	unallowed atomic.Bool // a run failed for want of a person's approval
	// it said that the task is another tool's, which is the answer: no other program is asked for because of it
	answers atomic.Bool
	// what of its reach a person has to approve before it serves; nil for nothing
	beyond atomic.Pointer[agent.Effects]

	mu      sync.Mutex
	adopted string      // the ID of the generation it became; guarded by mu
	cost    agent.Usage // of the earlier call that requested the candidate and did not adopt it; guarded by mu
}

// charge adds the usage of a call that requested the candidate and does not adopt it.
func (c *candidate) charge(u agent.Usage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cost.Add(u)
}

// A meter counts what the requests of a flight have cost so far. One that was sent counts before it is answered: the call
// that started the flight may end before it.
type meter struct {
	mu    sync.Mutex
	usage agent.Usage // guarded by mu
}

// sent counts a request; the returned function puts what it cost in its place.
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

func (m *meter) read() agent.Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.usage
}

// forgeResult is how a flight ended: a candidate, or why there is none.
type forgeResult struct {
	candidate  *candidate
	failure    *agent.Outcome // set when there is no candidate
	class      agent.Class
	attempts   []agent.AttemptFailure // programs that were refused meanwhile
	last       string                 // checksum of the last refused program
	usage      agent.Usage
	requested  int // programs asked for
	guardrails int // recoveries used
	// programs that were asked for after another one with the same faults, for which no recovery was used
	repeated     int
	built        time.Duration // of these, the wait for the compiler
	gated        time.Duration // parsing, checking and compiling what was written
	system, user string        // the last prompt
	tools        []string      // roles of the known tools that it shows
	foreign      bool          // another replica asked for the candidate
	lost         bool          // another replica has taken over, so there is none
	owner        string        // whose call asked
}

// What stands for texts that quote a program written for another owner's call, and for what a model server said of its request.
const (
	refusedForAnother    = "a program that a call of another owner asked for was refused"
	unansweredForAnother = "the request for a program, which a call of another owner made, was not answered"
)

// seenBy returns the result as a call that waited for it may keep it. What the gate says of a refused program quotes it, and so what the call
// that asked was sent, and a model server may quote the request: another owner's call keeps the types of the errors only.
func (r forgeResult) seenBy(owner, callID string) forgeResult {
	if r.owner == owner && !r.foreign {
		return r
	}
	r.system, r.user, r.tools = "", "", nil
	r.attempts = slices.Clone(r.attempts)
	for i := range r.attempts {
		a := &r.attempts[i]
		a.AttemptID, a.ErrorMessage, a.Metadata, a.Hint = callID+".v", refusedForAnother, nil, ""
	}
	if r.failure == nil {
		return r
	}
	switch f := *r.failure; {
	case r.class == agent.ClassIntrinsic:
		f = agent.Failed(f.ErrorType, refusedForAnother)
		r.failure = &f
	case f.ErrorType == agent.ErrProvider:
		f.ErrorMessage, f.Metadata = unansweredForAnother, nil
		r.failure = &f
	}
	return r
}

// flights sees to it that calls which need the same program ask for it once. A flight ends for its waiters when the
// candidate compiles, so that recursion cannot wait for itself; it stays joinable until the last of those who run the
// candidate has finished, since until then it may not be stored yet. The zero value is ready.
type flights struct {
	under sync.WaitGroup // forges

	mu  sync.Mutex
	all map[string]*flight // guarded by mu
}

type flight struct {
	spent  meter
	users  int // guarded by flights.mu
	done   chan struct{}
	result forgeResult // set before done is closed
	cancel context.CancelCauseFunc
}

// underWay reports whether somebody uses a flight.
func (f *flights) underWay() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.all) > 0
}

// join finds the flight of that key or starts one with forge, in a goroutine of its own: a leader that is canceled
// does not end it for the others. leave must be called when the result is not needed any more; when the last user
// leaves a flight that is still under way, its context ends.
func (f *flights) join(life context.Context, key string, forge func(context.Context,
	*meter) forgeResult) (fl *flight, leader bool, leave func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil {
		f.all = map[string]*flight{}
	}
	fl = f.all[key]
	if fl == nil {
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

func (f *flights) leave(key string, fl *flight) {
	if f.left(key, fl) {
		fl.withdraw()
	}
}

// left counts a user of the flight less, and reports whether it was the last.
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

// withdraw stops showing the flight's candidate to other replicas. It is stored by now, or will not be: who asks for a program from now on
// wants another one.
func (fl *flight) withdraw() {
	select {
	case <-fl.done:
	default:
		return // it has none yet
	}
	if c := fl.result.candidate; c != nil && c.withdraw != nil {
		c.withdraw()
	}
}

// wait returns the flight's result, or false when ctx ends first.
func (fl *flight) wait(ctx context.Context) (forgeResult, bool) {
	select {
	case <-fl.done:
		return fl.result, true
	case <-ctx.Done():
		return forgeResult{}, false
	}
}
