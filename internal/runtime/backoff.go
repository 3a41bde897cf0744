package runtime

import (
	"math"
	"sync"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/turns"
)

// backoffs bound the cost of failed forging. After a failure, the method is not forged again for the same contract
// until a delay is over; each further failure doubles the delay. Patches are delayed as well: after a few programs in a
// row that each replaced a failed one and soon failed, each further one delays the next. Provider outages and
// interruptions do not count. The delays are kept in memory only, so a restart costs one more attempt. The zero value
// is ready.
type backoffs struct {
	mu  sync.Mutex
	all map[backoffKey]backoff // guarded by mu
}

// A backoffKey identifies what failed to be forged. Failures for one contract do not delay another contract's forge.
type backoffKey struct {
	turns.Method
	checked string // fingerprint of the contract's machine-checked parts
	// digest of the registered wording, if a program is reviewed because people changed it; otherwise ""
	words agent.WordingDigest
}

// A backoff is the state of a method's delays under one contract.
type backoff struct {
	failures int
	// newest revision of the artifact that was seen by a call that failed or that replaced the program; 0 if there was
	// none
	seen    int64
	patches int // adopted programs in a row that each replaced one that soon failed
	until   time.Time
	lapse   // the last failure

	// a program that gave only an honest error, or met an outage; it runs until the delay is over; nil if there is none
	candidate *candidate
	// the candidate reported that the task belongs to another tool. That is the answer, and the candidate runs after
	// the delay as well while there is room
	answers bool
	// the candidate needs a person's approval. It runs, and nothing is forged, until it serves or a person operates on
	// the method
	waits bool
}

// A lapse describes how forging failed.
type lapse struct {
	errorType string
	message   string        // never shown to callers, since it may contain another caller's text
	owner     string        // of the call that failed
	waited    time.Duration // how long a model was waited for that gave nothing; 0 for every other failure
}

// maxBackoffs bounds the number of remembered methods; above it, entries whose delay is over are dropped. maxHeld
// bounds the held candidates, each with up to 64 KiB of code.
const (
	maxBackoffs = 4096
	maxHeld     = 256
)

// failed records that forging failed and returns when it may be tried again. A failure that several calls shared counts
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
		return now // no room to hold it: let each call forge rather than get another input's error
	}
	f.candidate, f.waits, f.answers = cand, cand != nil && cand.unallowed.Load(), cand != nil && cand.answers.Load()
	f.until, f.lapse = now.Add(delayOf(f.failures, p)), last
	f.failures++
	if len(b.all) < maxBackoffs || f.failures > 1 {
		b.all[k] = f
	}
	return f.until
}

// pause starts the first delay without counting a failure: no model answered, and the stored program serves in the
// meantime.
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

// patched records that a program replaced a failed one, and clears the earlier failures. The first few patches in a row
// cause no delay; each further one delays the next. lasted means that the replaced program served long enough to start
// a new row.
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

// saw records the artifact's revision at the call that failed or that replaced the program. People's changes up to that
// revision do not end the delay.
func (b *backoffs) saw(k backoffKey, a *agent.Artifact) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if f, known := b.all[k]; known && a != nil {
		f.seen = max(f.seen, a.Revision)
		b.all[k] = f
	}
}

// holding returns the number of held candidates whose delay runs. It drops the others, except that candidates whose
// error is the answer are dropped only for lack of room. The caller holds mu.
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

// held returns the candidate that runs for a call with that contract, or nil. A candidate runs until its delay is over;
// one whose error is the answer runs on for the contract that it was made for.
func (b *backoffs) held(k backoffKey, fingerprint string, now time.Time) *candidate {
	f, known := b.last(k)
	if known && (f.delays(now) || f.answers && f.candidate != nil &&
		f.candidate.Generation.ContractFingerprint == fingerprint) {
		return f.candidate
	}
	return nil
}

// delayOf returns the delay after the given number of earlier failures.
func delayOf(failures int, p agent.BackoffPolicy) time.Duration {
	most := time.Duration(p.MaxSeconds) * time.Second
	return min(time.Duration(p.BaseSeconds)*time.Second<<min(failures, 16), most)
}

// waiting returns the last failure, and whether its delay is still running.
func (b *backoffs) waiting(k backoffKey, now time.Time) (backoff, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f, known := b.all[k]
	return f, known && f.delays(now)
}

// delayed reports whether any delay is still running.
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

// delays reports whether the delay is still running.
func (f *backoff) delays(now time.Time) bool { return f.waits || now.Before(f.until) }

// last returns the last failure, whether or not its delay is over.
func (b *backoffs) last(k backoffKey) (backoff, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f, known := b.all[k]
	return f, known
}

// clear forgets the failures of the method with that contract.
func (b *backoffs) clear(k backoffKey) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.all, k)
}

// clearMethod forgets the failures of the method with every contract.
func (b *backoffs) clearMethod(m turns.Method) { b.clearBefore(m, math.MaxInt64) }

// clearBefore forgets the method's failures in calls that saw the artifact before the given revision.
func (b *backoffs) clearBefore(m turns.Method, revision int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for k, f := range b.all {
		if k.Method == m && f.seen < revision {
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
