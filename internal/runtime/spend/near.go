package spend

import (
	"github.com/recurgentd/recurgentd/internal/agent"
)

// nearness caches whether any cap of the namespace is nearly used, under that policy.
type nearness struct {
	policy *agent.Policy
	near   bool
}

// Nearly returns the largest used share of the caps that apply to a call, and whether it is at least 80 percent. It
// includes the daemon's cap, which only the operator may see, if daemon is set. While no cap of the namespace is nearly
// used, it returns 0 quickly, without a lock. a may be nil.
func (a *Account) Nearly(owner, role, method string, daemon bool) (ratio float64, near bool) {
	if a == nil {
		return 0, false
	}
	p, l := a.inForce(), a.ledger
	known := a.near.Load()
	daemon = daemon && l.o.DayTokens > 0
	if known != nil && known.policy == p && !known.near && !daemon {
		return 0, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.day()
	if known == nil || known.policy != p {
		now := nearness{policy: p}
		a.eachCap(d, func(c cap, s *sum) { now.near = now.near || c.ratio(s) >= nearly })
		a.near.Store(&now)
	}
	a.capsOf(d, who{Role: role, Method: method, Owner: owner}, func(c cap, s *sum) { ratio = max(ratio, c.ratio(s)) })
	if daemon {
		ratio = max(ratio, l.daemonCap(d).ratio(l.total(d)))
	}
	return ratio, ratio >= nearly
}
