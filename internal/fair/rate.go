package fair

import (
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// forgetEvery is how often Rates look for owners whose state says nothing any more.
const forgetEvery = time.Minute

// Rates hold owners to a number of requests a second each. An owner may send those of one second at once, at least one.
// Its methods may be called concurrently.
type Rates[K comparable] struct {
	now func() time.Time

	mu     sync.Mutex
	by     map[K]*rate.Limiter // guarded by mu
	looked time.Time           // for owners to forget; guarded by mu
}

// NewRates returns rates that measure time by the clock.
func NewRates[K comparable](now func() time.Time) *Rates[K] {
	return &Rates[K]{now: now, by: map[K]*rate.Limiter{}}
}

// A Quota is what a request found of its owner's rate.
type Quota struct {
	OK     bool          // the request is within the rate
	Burst  int           // requests in a window
	Window time.Duration // in which an unused quota fills
	Left   int           // requests that may follow at once
	Reset  time.Duration // until the quota is full again; where the request is not OK, until one more is
}

// Take counts a request of the owner, whose rate is perSecond, greater than 0. Another rate than before holds from now on. A
// request beyond the rate counts for nothing.
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

func seconds(s float64) time.Duration { return time.Duration(min(s, 1e9) * float64(time.Second)) }

// forget drops the owners whose quota is full: a new one is the same. The caller holds mu.
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
