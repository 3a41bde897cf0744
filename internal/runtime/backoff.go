package runtime

import (
	"math"
	"sync"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// backoffs bound the cost of failed forging. After a failure the same method is not forged again for the same contract until
// a delay is over, which doubles with each further failure. The same applies to patches: after a few programs in a row that
// replaced a failed one and did not last, each further one delays the next. Provider outages and interruptions do not count.
// The delays are only in memory, so a restart costs one more attempt. The zero value is ready.
type backoffs struct {
	mu  sync.Mutex
	all map[backoffKey]backoff // guarded by mu
}

type backoffKey struct {
	methodKey
	checked string // fingerprint of the contract's machine-checked parts
	// of what people have registered, where a program is looked at anew because they changed it; "" else
	words agent.WordingDigest
}

type backoff struct {
	failures int
	// the newest revision of the artifact that a call saw which failed or replaced the program; 0: there was none
	seen    int64
	patches int // adopted programs in a row that each replaced one that soon failed
	until   time.Time
	lapse   // the last failure

	// gave only an honest error, or met an outage, and runs until the delay is over; nil if there is none
	candidate *candidate
	// the candidate said that the task is another tool's: that is the answer, and it runs after the delay, too, as long as there is room
	answers bool
	// the candidate needs a person's approval: it runs, and nothing is forged, until it serves or a person operates on the method
	waits bool
}

// A lapse is what forging failed with.
type lapse struct {
	errorType string
	message   string        // never shown to callers, since it may contain another caller's text
	owner     string        // of the call that failed
	waited    time.Duration // for a model that gave nothing in that time; 0 for every other end
}

// maxBackoffs bounds the remembered methods; beyond it those whose delay is over are dropped. maxHeld bounds the held
// candidates, which have up to 64 KiB of code each.
const (
	maxBackoffs = 4096
	maxHeld     = 256
)

// failed records that forging failed, and returns when it may be tried again. A failure that several calls shared counts
// once. cand is a candidate that may run during the delay, or nil.
func (b *backoffs) failed(k backoffKey, last lapse, cand *candidate, now time.Time, p agent.BackoffPolicy) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all == nil {
		b.all = map[backoffKey]backoff{}
	}
	if len(b.all) >= maxBackoffs {
		for old, f := range b.all {
			if now.After(f.until) && !f.waits {
				delete(b.all, old)
			}
		}
	}
	f := b.all[k]
	if f.delays(now) && f.waited == 0 && (f.candidate == nil || f.candidate == cand) {
		return f.until
	}
	if cand != nil && b.holding(now) >= maxHeld {
		return now // no room to hold it: each call forges, rather than get the error of another input
	}
	f.candidate, f.waits, f.answers = cand, cand != nil && cand.unallowed.Load(), cand != nil && cand.answers.Load()
	f.until, f.lapse = now.Add(delayOf(f.failures, p)), last
	f.failures++
	if len(b.all) < maxBackoffs || f.failures > 1 {
		b.all[k] = f
	}
	return f.until
}

// pause has nothing tried for the first delay, without a failure that would count: no model answered, and what is stored does meanwhile.
func (b *backoffs) pause(k backoffKey, last lapse, now time.Time, p agent.BackoffPolicy) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all == nil {
		b.all = map[backoffKey]backoff{}
	}
	f, known := b.all[k]
	if !known && len(b.all) >= maxBackoffs || f.delays(now) && (f.waited == 0 || f.waited >= last.waited) {
		return
	}
	f.until, f.lapse = now.Add(delayOf(0, p)), last
	b.all[k] = f
}

// patched records that a program replaced one that failed, and clears the failures before. The first few patches in a row
// cause no delay, each further one delays the next. lasted says that the replaced program had served long enough to begin a
// new row.
func (b *backoffs) patched(k backoffKey, last lapse, lasted bool, now time.Time, p *agent.Policy) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all == nil {
		b.all = map[backoffKey]backoff{}
	}
	f := backoff{patches: b.all[k].patches + 1, lapse: last}
	if lasted {
		f.patches = 1
	}
	free := p.MaxRepairsBeforeRegen + 1 // one round of repairs, and the regeneration after it
	if over := f.patches - free - 1; over >= 0 {
		f.until = now.Add(delayOf(over, p.Backoff))
	}
	if _, known := b.all[k]; known || len(b.all) < maxBackoffs {
		b.all[k] = f
	}
}

// saw records which revision of the artifact a call saw that failed, or that replaced the program: what people had done by then does not end the delay.
func (b *backoffs) saw(k backoffKey, a *agent.Artifact) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if f, known := b.all[k]; known && a != nil {
		f.seen = max(f.seen, a.Revision)
		b.all[k] = f
	}
}

// holding counts the held candidates, and drops those whose delay is over: of those whose error is the answer only for want of room.
func (b *backoffs) holding(now time.Time) int {
	n, after := 0, 0
	for _, f := range b.all {
		switch {
		case f.candidate == nil:
		case f.delays(now):
			n++
		case f.answers:
			after++
		}
	}
	for k, f := range b.all {
		if f.candidate != nil && !f.delays(now) && (!f.answers || n+after >= maxHeld) {
			f.candidate = nil
			b.all[k] = f
		}
	}
	return n
}

// held returns the candidate that runs for a call with that contract, until the delay is over or as the answer of the contract that it was made for, or nil.
func (b *backoffs) held(k backoffKey, fingerprint string, now time.Time) *candidate {
	f, known := b.last(k)
	if known && (f.delays(now) || f.answers && f.candidate != nil &&
		f.candidate.generation.ContractFingerprint == fingerprint) {
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
	return f, known && f.delays(now)
}

// delayed reports whether any delay is not over yet.
func (b *backoffs) delayed(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.all {
		if f.delays(now) {
			return true
		}
	}
	return false
}

// delays reports whether the delay is not over yet.
func (f *backoff) delays(now time.Time) bool { return f.waits || now.Before(f.until) }

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

func (b *backoffs) clearMethod(m methodKey) { b.clearBefore(m, math.MaxInt64) }

// clearBefore forgets the failures of the method's calls that saw the artifact before it had that revision.
func (b *backoffs) clearBefore(m methodKey, revision int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for k, f := range b.all {
		if k.methodKey == m && f.seen < revision {
			delete(b.all, k)
		}
	}
}

// clearAll forgets all failures.
func (b *backoffs) clearAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = nil
}
