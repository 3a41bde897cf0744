package spend

import (
	"sync/atomic"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Account is the account of one namespace. It is safe for concurrent use. A nil Account charges nothing.
type Account struct {
	ledger *Ledger
	name   agent.Namespace
	store  store.Namespace
	policy atomic.Pointer[func() *agent.Policy]
	near   atomic.Pointer[nearness]

	days map[agent.Day]*dayUse // guarded by ledger.mu, as below
	read time.Time             // when it was read last, where replicas share the store
}

// dayUse is what a namespace used on a day. The maps are nil for days that are long over.
type dayUse struct {
	total   sum
	methods map[string]*sum // by role.method
	owners  map[string]*sum
}

// Request names whom a request to a model is for.
type Request struct{ Role, Method, Owner, Model string }

// who is a Request whose model does not matter.
type who = Request

func (w who) method() string { return nameOf(w.Role, w.Method) }

// nameOf names a method in caps and reports. Predictions without a session have no role.
func nameOf(role, method string) string {
	if role == "" {
		return method
	}
	return role + "." + method
}

// uses are the sums that one request counts in.
type uses []*sum

func (u uses) add(used, reserved int64) {
	for _, s := range u {
		s.used += used
		s.reserved += reserved
	}
}

// use returns the sums in which a request of that day counts. The caller holds ledger.mu.
func (a *Account) use(d agent.Day, w who) uses {
	day := a.day(d)
	u := uses{a.ledger.total(d), &day.total}
	if day.methods == nil || w == (who{}) {
		return u
	}
	return append(u, of(day.methods, w.method()), of(day.owners, w.Owner))
}

func of(sums map[string]*sum, name string) *sum {
	s := sums[name]
	if s == nil {
		s = &sum{}
		sums[name] = s
	}
	return s
}

func (a *Account) day(d agent.Day) *dayUse {
	day := a.days[d]
	if day == nil {
		day = &dayUse{methods: map[string]*sum{}, owners: map[string]*sum{}}
		a.days[d] = day
	}
	return day
}

// detailed is for how many days methods and owners are known: for longer than clocks are wrong.
const detailed = 40

// forgetDetails drops what is known of the methods and owners of days that are long over. The caller holds ledger.mu.
func (a *Account) forgetDetails(today agent.Day) {
	for d, day := range a.days {
		if d < today-detailed {
			day.methods, day.owners = nil, nil
		}
	}
}

// month returns the sum of the day's month. The caller holds ledger.mu.
func (a *Account) month(d agent.Day) (first agent.Day, s *sum) {
	first, next := d.Month()
	s = &sum{}
	for at, day := range a.days {
		if at >= first && at < next {
			s.used += day.total.used
			s.reserved += day.total.reserved
		}
	}
	return first, s
}

func (a *Account) inForce() *agent.Policy {
	if p := a.policy.Load(); p != nil {
		if now := (*p)(); now != nil {
			return now
		}
	}
	return &agent.Policy{}
}

// capsOf visits the caps of the namespace that a request counts for. The caller holds ledger.mu.
func (a *Account) capsOf(d agent.Day, w who, visit func(cap, *sum)) {
	day, p := a.day(d), a.inForce().Spend
	if p.DayTokens > 0 {
		visit(cap{a.name, ScopeNamespace, WindowDay, "", int64(p.DayTokens), d}, &day.total)
	}
	if p.MonthTokens > 0 {
		first, s := a.month(d)
		visit(cap{a.name, ScopeNamespace, WindowMonth, "", int64(p.MonthTokens), first}, s)
	}
	if p.MethodDayTokens > 0 {
		visit(cap{a.name, ScopeMethod, WindowDay, w.method(), int64(p.MethodDayTokens), d},
			found(day.methods, w.method()))
	}
	if p.OwnerDayTokens > 0 {
		visit(cap{a.name, ScopeOwner, WindowDay, w.Owner, int64(p.OwnerDayTokens), d}, found(day.owners, w.Owner))
	}
}

// found returns the sum of that name, zero where there is none: looking adds no names.
func found(sums map[string]*sum, name string) *sum {
	if s := sums[name]; s != nil {
		return s
	}
	return &sum{}
}

// eachCap visits all caps of the namespace, those of methods and owners for each that used something. The caller holds ledger.mu.
func (a *Account) eachCap(d agent.Day, visit func(cap, *sum)) {
	day, p := a.day(d), a.inForce().Spend
	a.capsOf(d, who{}, func(c cap, s *sum) {
		if c.scope == ScopeNamespace {
			visit(c, s)
		}
	})
	if p.MethodDayTokens > 0 {
		for name, s := range day.methods {
			visit(cap{a.name, ScopeMethod, WindowDay, name, int64(p.MethodDayTokens), d}, s)
		}
	}
	if p.OwnerDayTokens > 0 {
		for name, s := range day.owners {
			visit(cap{a.name, ScopeOwner, WindowDay, name, int64(p.OwnerDayTokens), d}, s)
		}
	}
}

func (l *Ledger) daemonCap(d agent.Day) cap {
	return cap{scope: ScopeDaemon, window: WindowDay, limit: l.o.DayTokens, from: d}
}
