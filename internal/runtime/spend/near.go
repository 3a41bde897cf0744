package spend

import (
	"github.com/recurgentd/recurgentd/internal/agent"
)

// nearness says whether any cap of the namespace is nearly used, under that policy.
type nearness struct {
	policy *agent.Policy
	near   bool
}

// Nearly returns the largest share that is used of the caps that a call counts for, and whether that is at least 80 percent. The
// daemon's cap is its operator's business: it counts with daemon only. It costs next to nothing while no cap of the namespace is nearly used.
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
