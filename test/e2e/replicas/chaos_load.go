package replicas

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// A Call is one call as a client saw it.
type Call struct {
	Session, Method string
	Key             string // all its requests carry it; "" for a single request that is never repeated
	Want            any    // the value of a call that succeeds; nil where the context says which
	Sent            int    // requests
	Acked           bool   // a reply with an outcome came
	Refused         bool   // it was not acknowledged, and each answer said that nothing ran
	Reply
}

// A Reply is what a client reads of one.
type Reply struct {
	ID         string
	OK         bool
	Value      any
	Error      string // its type
	Generation string // of the program that answered
	Checksum   string // of that program
	Replica    string // that the reply names, "" where there is one daemon
}

// A Session is one that clients of a load call.
type Session struct {
	ID        string
	Namespace string // "": the default one
	Keyed     bool   // calls carry an Idempotency-Key, and are repeated until they are acknowledged
}

// A Load is a number of clients with sessions, whose calls are recorded. Its methods may be called concurrently.
type Load struct {
	Addresses []string      // of daemons, host and port; each request goes to one of them
	Patience  time.Duration // of one request
	Seed      uint64        // of what clients choose
	Journal   *Journal      // takes each request with its answer

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced with each entry
	calls    []*Call
	acked    int
	failures int // requests without a usable answer
	problems []string
	epoch    int // names the methods that are new at the moment
	flaky    int // calls of the epoch of the method whose first program fails for some
}

// Run has two clients call each session until ctx ends. Calls that are repeated are brought to their end first, so that
// daemons must be within reach then.
func (l *Load) Run(ctx context.Context, sessions []Session) {
	var clients sync.WaitGroup
	for i, s := range sessions {
		for j := range 2 {
			clients.Go(func() {
				c := l.client(s, uint64(2*i+j))
				defer c.http.CloseIdleConnections()
				for ctx.Err() == nil {
					c.call(ctx, c.next)
				}
			})
		}
	}
	clients.Wait()
}

// Begin makes one call in the session and returns its id.
func (l *Load) Begin(ctx context.Context, s Session) string {
	c := l.client(s, 1<<32)
	defer c.http.CloseIdleConnections()
	return c.call(ctx, func(call *Call) any { call.Method = counter(s.Namespace); return 1 }).ID
}

// client is one whose choices the load's seed and n decide.
func (l *Load) client(s Session, n uint64) *client {
	return &client{load: l, session: s, random: rand.New(rand.NewPCG(l.Seed, n)), http: newHTTP(l.Patience)}
}

// NextEpoch makes the methods that clients call now and then new ones, which must be forged.
func (l *Load) NextEpoch() { l.change(func() { l.epoch, l.flaky = l.epoch+1, 0 }) }

// fails says whether the next call of the method whose first program fails for some is one of those: every other one,
// so that the method is repaired in each epoch, in a few epochs before it has a first program.
func (l *Load) fails(epoch int) (so bool) {
	l.change(func() {
		so = (l.flaky%2 == 1) != (epoch%4 == 3)
		l.flaky++
	})
	return so
}

// Calls returns what was recorded, and what clients were answered that no daemon may answer.
func (l *Load) Calls() (calls []*Call, problems []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls, l.problems
}

// Acked waits until that many more calls have been acknowledged, and reports whether they were before ctx ended.
func (l *Load) Acked(ctx context.Context, more int) bool {
	l.mu.Lock()
	want := l.acked + more
	l.mu.Unlock()
	return l.await(ctx, func() bool { return l.acked >= want })
}

// Settled waits until that many more requests had no usable answer, or that many more calls have been acknowledged.
func (l *Load) Settled(ctx context.Context, failed, acked int) bool {
	l.mu.Lock()
	failed, acked = failed+l.failures, acked+l.acked
	l.mu.Unlock()
	return l.await(ctx, func() bool { return l.failures >= failed || l.acked >= acked })
}

// Failed waits until that many more requests had no usable answer.
func (l *Load) Failed(ctx context.Context, more int) bool {
	l.mu.Lock()
	want := l.failures + more
	l.mu.Unlock()
	return l.await(ctx, func() bool { return l.failures >= want })
}

// await waits until done, which is called with mu held.
func (l *Load) await(ctx context.Context, done func() bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !done() {
		if l.changed == nil {
			l.changed = make(chan struct{})
		}
		changed := l.changed
		l.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		l.mu.Lock()
		if ctx.Err() != nil {
			return false
		}
	}
	return true
}

func (l *Load) change(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

func (l *Load) problem(format string, args ...any) {
	l.change(func() { l.problems = append(l.problems, fmt.Sprintf(format, args...)) })
}
