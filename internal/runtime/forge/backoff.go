package forge

import (
	"math"
	"sync"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/selection"
	"github.com/recurgentd/recurgentd/internal/runtime/turns"
)

// Backoffs bound the cost of failed forging. After a failure, the method is not forged again for the same contract
// until a delay is over; each further failure doubles the delay. Patches are delayed as well: after a few programs in a
// row that each replaced a failed one and soon failed, each further one delays the next. Provider outages and
// interruptions do not count. The delays are kept in memory only, so a restart costs one more attempt. The zero value
// is ready.
type Backoffs struct {
	mu  sync.Mutex
	all map[BackoffKey]Backoff // guarded by mu
}

// A BackoffKey identifies what failed to be forged. Failures for one contract do not delay another contract's forge.
type BackoffKey struct {
	turns.Method
	Checked string // fingerprint of the contract's machine-checked parts
	// digest of the registered wording, if a program is reviewed because people changed it; otherwise ""
	Words agent.WordingDigest
}

// KeyOf returns the key under which failures to forge for the call count.
func KeyOf(s *call.Selection) BackoffKey {
	k := BackoffKey{Method: turns.Method{Role: s.Role, Method: s.Method}, Checked: s.Terms.Checked}
	// with this key, a failure delays no repair, and no program for the method's next purpose
	if s.Decision.Reason == selection.ReasonPurposeChanged {
		k.Words = s.Terms.RegisteredWords()
	}
	return k
}

// A Backoff is the state of a method's delays under one contract.
type Backoff struct {
	Failures int
	// newest revision of the artifact that was seen by a call that failed or that replaced the program; 0 if there was
	// none
	seen    int64
	patches int // adopted programs in a row that each replaced one that soon failed
	Until   time.Time
	Lapse   // the last failure

	// a program that returned only an authored error or met an outage; it runs until the delay is over; may be nil
	Candidate *Candidate
	// the candidate reported that the task belongs to another tool; this is the answer, and the candidate also runs
	// after the delay while there is room
	answers bool
	// the candidate needs a person's approval. It runs, and nothing is forged, until it serves or a person operates on
	// the method
	waits bool
}

// A Lapse describes how forging failed.
type Lapse struct {
	ErrorType string
	Message   string        // never shown to callers, since it may contain another caller's text
	Owner     string        // of the call that failed
	Waited    time.Duration // how long the call waited for a model that did not answer; 0 for every other failure
}

// maxBackoffs bounds the number of remembered methods; above it, entries whose delay is over are dropped. maxHeld
// bounds the held candidates, each with up to 64 KiB of code.
const (
	maxBackoffs = 4096
	maxHeld     = 256
)

// Failed records that forging failed and returns when it may be tried again. A failure that several calls shared counts
// once. cand is a candidate that may run during the delay, or nil.
func (b *Backoffs) Failed(k BackoffKey, last Lapse, cand *Candidate, now time.Time, p agent.BackoffPolicy) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all == nil {
		b.all = map[BackoffKey]Backoff{}
	}
	if len(b.all) >= maxBackoffs {
		for old, f := range b.all {
			if now.After(f.Until) && !f.waits {
				delete(b.all, old)
			}
		}
	}
	f := b.all[k]
	if f.delays(now) && f.Waited == 0 && (f.Candidate == nil || f.Candidate == cand) {
		return f.Until
	}
	if cand != nil && b.holding(now) >= maxHeld {
		return now // no room to hold it: let each call forge rather than get another input's error
	}
	f.Candidate, f.waits, f.answers = cand, cand != nil && cand.Unallowed.Load(), cand != nil && cand.Answers.Load()
	f.Until, f.Lapse = now.Add(DelayOf(f.Failures, p)), last
	f.Failures++
	if len(b.all) < maxBackoffs || f.Failures > 1 {
		b.all[k] = f
	}
	return f.Until
}

// Pause starts the first delay without counting a failure: no model answered, and the stored program serves in the
// meantime.
func (b *Backoffs) Pause(k BackoffKey, last Lapse, now time.Time, p agent.BackoffPolicy) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all == nil {
		b.all = map[BackoffKey]Backoff{}
	}
	f, known := b.all[k]
	if !known && len(b.all) >= maxBackoffs || f.delays(now) && (f.Waited == 0 || f.Waited >= last.Waited) {
		return
	}
	f.Until, f.Lapse = now.Add(DelayOf(0, p)), last
	b.all[k] = f
}

// Patched records that a program replaced a failed one, and clears the earlier failures. The first few patches in a row
// cause no delay; each further one delays the next. lasted means that the replaced program served long enough to start
// a new row.
func (b *Backoffs) Patched(k BackoffKey, last Lapse, lasted bool, now time.Time, p *agent.Policy) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all == nil {
		b.all = map[BackoffKey]Backoff{}
	}
	f := Backoff{patches: b.all[k].patches + 1, Lapse: last}
	if lasted {
		f.patches = 1
	}
	free := p.MaxRepairsBeforeRegen + 1 // one round of repairs, and the regeneration after it
	if over := f.patches - free - 1; over >= 0 {
		f.Until = now.Add(DelayOf(over, p.Backoff))
	}
	if _, known := b.all[k]; known || len(b.all) < maxBackoffs {
		b.all[k] = f
	}
}

// Saw records the artifact's revision at the call that failed or that replaced the program. People's changes up to that
// revision do not end the delay.
func (b *Backoffs) Saw(k BackoffKey, a *agent.Artifact) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if f, known := b.all[k]; known && a != nil {
		f.seen = max(f.seen, a.Revision)
		b.all[k] = f
	}
}

// holding returns the number of held candidates whose delay runs. It drops the others, except that candidates whose
// error is the answer are dropped only for lack of room. The caller holds mu.
func (b *Backoffs) holding(now time.Time) int {
	n, after := 0, 0
	for _, f := range b.all {
		switch {
		case f.Candidate == nil:
		case f.delays(now):
			n++
		case f.answers:
			after++
		}
	}
	for k, f := range b.all {
		if f.Candidate != nil && !f.delays(now) && (!f.answers || n+after >= maxHeld) {
			f.Candidate = nil
			b.all[k] = f
		}
	}
	return n
}

// Held returns the candidate that runs for a call with that contract, or nil. A candidate runs until its delay is over;
// one whose error is the answer runs on for the contract that it was made for.
func (b *Backoffs) Held(k BackoffKey, fingerprint string, now time.Time) *Candidate {
	f, known := b.last(k)
	if known && (f.delays(now) || f.answers && f.Candidate != nil &&
		f.Candidate.Generation.ContractFingerprint == fingerprint) {
		return f.Candidate
	}
	return nil
}

// DelayOf returns the delay after the given number of earlier failures.
func DelayOf(failures int, p agent.BackoffPolicy) time.Duration {
	most := time.Duration(p.MaxSeconds) * time.Second
	return min(time.Duration(p.BaseSeconds)*time.Second<<min(failures, 16), most)
}

// Waiting returns the last failure, and whether its delay is still running.
func (b *Backoffs) Waiting(k BackoffKey, now time.Time) (Backoff, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f, known := b.all[k]
	return f, known && f.delays(now)
}

// Delayed reports whether any delay is still running.
func (b *Backoffs) Delayed(now time.Time) bool {
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
func (f *Backoff) delays(now time.Time) bool { return f.waits || now.Before(f.Until) }

// last returns the last failure, whether or not its delay is over.
func (b *Backoffs) last(k BackoffKey) (Backoff, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f, known := b.all[k]
	return f, known
}

// Clear forgets the failures of the method with that contract.
func (b *Backoffs) Clear(k BackoffKey) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.all, k)
}

// ClearMethod forgets the failures of the method with every contract.
func (b *Backoffs) ClearMethod(m turns.Method) { b.ClearBefore(m, math.MaxInt64) }

// ClearBefore forgets the method's failures in calls that saw the artifact before the given revision.
func (b *Backoffs) ClearBefore(m turns.Method, revision int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for k, f := range b.all {
		if k.Method == m && f.seen < revision {
			delete(b.all, k)
		}
	}
}

// ClearAll forgets all failures.
func (b *Backoffs) ClearAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = nil
}
