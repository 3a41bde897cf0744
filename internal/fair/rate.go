package fair

import (
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// forgetEvery is how often Take looks for owners whose state can be dropped.
const forgetEvery = time.Minute

// Rates limits each owner to a number of requests per second. An owner may send the requests of one second in a burst,
// but always at least one. The methods may be called concurrently.
type Rates[K comparable] struct {
	now func() time.Time

	mu     sync.Mutex
	by     map[K]*rate.Limiter // guarded by mu
	looked time.Time           // when forget last ran; guarded by mu
}

// NewRates returns Rates that read the time from now.
func NewRates[K comparable](now func() time.Time) *Rates[K] {
	return &Rates[K]{now: now, by: map[K]*rate.Limiter{}}
}

// A Quota is the result of Take, for the headers of a reply.
type Quota struct {
	OK     bool          // the request is within the rate
	Burst  int           // the most requests the owner may send at once
	Window time.Duration // time in which an exhausted quota refills
	Left   int           // requests that may follow now
	Reset  time.Duration // time until the quota is full again or, if OK is false, until one more request is allowed
}

// Take counts a request of the owner, whose rate is perSecond, above 0. A changed rate applies at once. A refused
// request does not count.
func (r *Rates[K]) Take(owner K, perSecond float64) Quota {
	now, limit := r.now(), rate.Limit(perSecond)
	burst := max(1, int(math.Ceil(perSecond)))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(now)
	l := r.by[owner]
	if l == nil {
		l = rate.NewLimiter(limit, burst)
		r.by[owner] = l
	} else if l.Limit() != limit {
		l.SetLimitAt(now, limit)
		l.SetBurstAt(now, burst)
	}
	q := Quota{OK: l.AllowN(now, 1), Burst: burst, Window: seconds(float64(burst) / perSecond)}
	tokens := min(l.TokensAt(now), float64(burst))
	q.Left = max(0, int(tokens))
	missing := float64(burst) - tokens
	if !q.OK {
		missing = 1 - tokens
	}
	q.Reset = seconds(missing / perSecond)
	return q
}

// seconds converts to a Duration, capped at 1e9 seconds to avoid overflow at very low rates.
func seconds(s float64) time.Duration { return time.Duration(min(s, 1e9) * float64(time.Second)) }

// forget drops owners whose quota is full, since a new limiter starts full as well. The caller holds mu.
func (r *Rates[K]) forget(now time.Time) {
	if now.Sub(r.looked) < forgetEvery {
		return
	}
	r.looked = now
	for owner, l := range r.by {
		if l.TokensAt(now) >= float64(l.Burst()) {
			delete(r.by, owner)
		}
	}
}
