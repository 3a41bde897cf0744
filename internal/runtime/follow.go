package runtime

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/turns"
	"github.com/recurgentd/recurgentd/internal/store"
)

// maxFollowed bounds the calls queued for the readers of the event feed. Above it, readers catch up from the store.
const maxFollowed = 4096

// followSpending is the delay between a call that asked the model and reading the spending account. One read covers all
// calls within the delay.
const followSpending = 500 * time.Millisecond

// follower applies what the store reports, in the order of the log: committed calls of this process and of others that
// share the store, policies that others put into force, operations and corrections on artifacts, and spending.
type follower struct {
	r    *Runtime
	wake chan struct{} // capacity 1
	done chan struct{}

	mu     sync.Mutex
	policy bool           // the policy changed; guarded by mu, as are the fields below
	spent  bool           // a call asked the model
	calls  []store.Change // committed calls for the readers of the event feed
	busy   bool           // earlier calls are being announced
}

// follow starts following the store until the returned function is called, which waits for the follower's goroutine. A
// shared store is followed all the time, an unshared one only while the event feed has readers.
func (r *Runtime) follow() (stop func(), err error) {
	// the policy may have changed since New read it
	f := &follower{r: r, wake: make(chan struct{}, 1), done: make(chan struct{}), policy: r.env.Shared}
	// Fill wake before Watch, while there is surely room: run then starts with a check of the policy.
	f.wake <- struct{}{}
	end, err := r.env.Options.Store.Watch("", f.note)
	if err != nil {
		return nil, fmt.Errorf("follow the store: %w", err)
	}
	ctx, cancel := context.WithCancel(r.life)
	go f.run(ctx)
	return func() {
		end()
		cancel()
		<-f.done
	}, nil
}

// note receives a change from the store. It does not block.
func (f *follower) note(c store.Change) {
	if c.Namespace != f.r.env.Namespace && c.Kind != store.ChangedUnseen {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	// Changes were lost: assume that everything changed.
	case c.Kind == store.ChangedUnseen:
		f.policy = true
		f.r.feed.Lose()
		f.r.forges.ClearAll()
	case c.Kind == store.ChangedPolicy:
		f.policy = true
	case c.Kind == store.ChangedArtifact && c.Operated: // forget the failures of calls that did not see the operation
		f.r.forges.ClearBefore(turns.Method{Role: c.Role, Method: c.Method}, c.Revision)
		return
	case c.Kind == store.ChangedCall && f.called(c):
	default:
		return
	}
	select {
	case f.wake <- struct{}{}:
	default: // it is awake already
	}
}

// called records a call and reports whether it needs the follower's goroutine. The caller holds mu.
func (f *follower) called(c store.Change) bool {
	spent := f.r.env.Shared && c.Log != nil && c.Log.Usage.ModelRequests > 0
	f.spent = f.spent || spent
	if f.r.feed.Read() && len(f.calls) < maxFollowed {
		f.calls = append(f.calls, c)
		return true
	}
	// The feed's position must not overtake calls that are queued or being announced.
	if len(f.calls) == 0 && !f.busy {
		f.r.feed.Passed(c.CallID)
	}
	f.r.feed.Lose()
	return spent
}

// run works off what note recorded, until ctx ends.
func (f *follower) run(ctx context.Context) {
	defer close(f.done)
	var account <-chan time.Time // fires when the account is due; nil if nothing was spent since the last read
	for {
		select {
		case <-f.wake:
		case <-account:
			account = nil
			f.r.env.Spend.Follow(ctx)
			continue
		case <-ctx.Done():
			return
		}
		f.mu.Lock()
		policy, spent, calls := f.policy, f.spent, f.calls
		f.policy, f.spent, f.calls, f.busy = false, false, nil, len(f.calls) > 0
		f.mu.Unlock()
		if spent && account == nil {
			account = time.After(followSpending)
		}
		if policy && f.r.Policies.Follow(ctx) != nil {
			f.again()
		}
		if len(calls) > 0 {
			f.announce(ctx, calls)
			f.mu.Lock()
			f.busy = false
			f.mu.Unlock()
		}
	}
}

// again schedules another read of the policy.
func (f *follower) again() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.policy = true
	time.AfterFunc(time.Second, func() {
		select {
		case f.wake <- struct{}{}:
		default:
		}
	})
}

// announce shows calls to the readers of the event feed once they are durable.
func (f *follower) announce(ctx context.Context, calls []store.Change) {
	if err := f.r.env.Options.Store.Settled(); err != nil {
		f.r.feed.Lose() // readers catch up from the store, and see what was kept
		return
	}
	for _, c := range calls {
		if c.Log == nil {
			was, err := f.r.env.Store.Call(ctx, c.CallID)
			if err != nil {
				f.r.feed.Lose()
				continue
			}
			c.Log = &was.Log
		}
		f.r.feed.Announce(c.Log)
	}
}
