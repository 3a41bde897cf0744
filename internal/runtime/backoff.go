package runtime

import (
	"sync"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// backoffs bound what failed forging costs: after a failure the same method is not forged again for the same contract
// until a delay is over, which doubles with each further failure. A method whose programs replace each other one after the
// other, none of which lasts, waits just so after a few of them. Provider outages and interruptions do not count. The
// delays live in memory: a restart costs one more attempt. The zero value is ready.
type backoffs struct {
	mu  sync.Mutex
	all map[backoffKey]backoff // guarded by mu
}

type backoffKey struct {
	methodKey
	checked string // fingerprint of the contract's machine-checked parts
}

type backoff struct {
	failures  int
	patches   int // adopted programs in a row, each in the place of one that failed before long
	until     time.Time
	errorType string // of the last failure
	message   string // of it; never shown to callers, since it may hold another caller's text

	candidate *candidate // that gave an honest error and runs until the delay is over; nil when none may
}

// maxBackoffs bounds the methods that are remembered; beyond it the ones whose delay is over go. maxHeld bounds the
// candidates among them, which have up to 64 KiB of code each.
const (
	maxBackoffs = 4096
	maxHeld     = 256
)

// failed records that forging failed, and returns when it may be tried again. Calls that shared one failed forge count it
// once. cand is a program that may run meanwhile, or nil.
func (b *backoffs) failed(k backoffKey, o agent.Outcome, cand *candidate, now time.Time, p agent.BackoffPolicy) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all == nil {
		b.all = map[backoffKey]backoff{}
	}
	if len(b.all) >= maxBackoffs {
		for old, f := range b.all {
			if now.After(f.until) {
				delete(b.all, old)
			}
		}
	}
	f := b.all[k]
	if now.Before(f.until) && (f.candidate == nil || f.candidate == cand) {
		return f.until
	}
	if cand != nil && b.holding(now) >= maxHeld {
		return now // each call has one forged, rather than get the error of another input
	}
	f.candidate = cand
	f.until, f.errorType, f.message = now.Add(delayOf(f.failures, p)), o.ErrorType, o.ErrorMessage
	f.failures++
	if len(b.all) < maxBackoffs || f.failures > 1 {
		b.all[k] = f
	}
	return f.until
}

// patched records that a program took the place of one that failed. It ends the failures before it; but the first few of
// a row are free, and each further one delays the next. lasted says that the replaced program had served long enough to
// begin a new row.
func (b *backoffs) patched(k backoffKey, errorType string, lasted bool, now time.Time, p *agent.Policy) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all == nil {
		b.all = map[backoffKey]backoff{}
	}
	f := backoff{patches: b.all[k].patches + 1, errorType: errorType}
	if lasted {
		f.patches = 1
	}
	free := p.MaxRepairsBeforeRegen + 1 // a round of repairs and the new program after it
	if over := f.patches - free - 1; over >= 0 {
		f.until = now.Add(delayOf(over, p.Backoff))
	}
	if _, known := b.all[k]; known || len(b.all) < maxBackoffs {
		b.all[k] = f
	}
}

// holding counts the candidates that are held, and lets go of those whose delay is over.
func (b *backoffs) holding(now time.Time) (n int) {
	for k, f := range b.all {
		switch {
		case f.candidate == nil:
		case now.Before(f.until):
			n++
		default:
			f.candidate = nil
			b.all[k] = f
		}
	}
	return n
}

// held returns the candidate that runs until the delay is over, or nil.
func (b *backoffs) held(k backoffKey, now time.Time) *candidate {
	if f, waiting := b.waiting(k, now); waiting {
		return f.candidate
	}
	return nil
}

// delayOf is the delay after that many earlier failures.
func delayOf(failures int, p agent.BackoffPolicy) time.Duration {
	most := time.Duration(p.MaxSeconds) * time.Second
	return min(time.Duration(p.BaseSeconds)*time.Second<<min(failures, 16), most)
}

// waiting returns the failure whose delay is not over yet.
func (b *backoffs) waiting(k backoffKey, now time.Time) (backoff, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f, known := b.all[k]
	return f, known && now.Before(f.until)
}

// last returns the last failure, whether its delay is over or not.
func (b *backoffs) last(k backoffKey) (backoff, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f, known := b.all[k]
	return f, known
}

// clear forgets the failures of the contract, or of all contracts of the method.
func (b *backoffs) clear(k backoffKey) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.all, k)
}

func (b *backoffs) clearMethod(m methodKey) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for k := range b.all {
		if k.methodKey == m {
			delete(b.all, k)
		}
	}
}

// ForgetFailures lets the method be forged again at once: a person's operation on it is a new beginning.
func (r *Runtime) ForgetFailures(role, method string) {
	r.backoffs.clearMethod(methodKey{role, method})
}
