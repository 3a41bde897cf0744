package spend

import (
	"sync/atomic"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Account is the spending account of one namespace. It is safe for concurrent use. A nil Account charges nothing.
type Account struct {
	ledger *Ledger
	name   agent.Namespace
	store  store.Namespace
	policy atomic.Pointer[func() *agent.Policy]
	near   atomic.Pointer[nearness]

	days map[agent.Day]*dayUse // guarded by ledger.mu, as is read
	read time.Time             // last time read from a store shared with other replicas
}

// dayUse is a namespace's use on one day. The maps are nil for days before detailed.
type dayUse struct {
	total   sum
	methods map[string]*sum // by role.method
	owners  map[string]*sum
}

// Request identifies for whom and which model a request is made.
type Request struct{ Role, Method, Owner, Model string }

// who is a Request without a model.
type who = Request

func (w who) method() string { return nameOf(w.Role, w.Method) }

// nameOf returns a method's name in caps and reports. Predictions without a session have no role.
func nameOf(role, method string) string {
	if role == "" {
		return method
	}
	return role + "." + method
}

// uses are the sums that include one request.
type uses []*sum

// add adds to all sums. Negative numbers take away.
func (u uses) add(used, reserved int64) {
	for _, s := range u {
		s.used += used
		s.reserved += reserved
	}
}

// use returns the sums that include requests of w on that day. The caller holds ledger.mu.
func (a *Account) use(d agent.Day, w who) uses {
	day := a.day(d)
	u := uses{a.ledger.total(d), &day.total}
	if day.methods == nil || w == (who{}) {
		return u
	}
	return append(u, of(day.methods, w.method()), of(day.owners, w.Owner))
}

// of returns the sum with that name, and adds it if it is missing.
func of(sums map[string]*sum, name string) *sum {
	s := sums[name]
	if s == nil {
		s = &sum{}
		sums[name] = s
	}
	return s
}

// day returns the use of a day, and adds it if it is missing. The caller holds ledger.mu.
func (a *Account) day(d agent.Day) *dayUse {
	day := a.days[d]
	if day == nil {
		day = &dayUse{methods: map[string]*sum{}, owners: map[string]*sum{}}
		a.days[d] = day
	}
	return day
}

// detailed is the number of days for which methods and owners are kept. It exceeds any plausible error of a clock.
const detailed = 40

// forgetDetails drops the methods and owners of days before detailed. The caller holds ledger.mu.
func (a *Account) forgetDetails(today agent.Day) {
	for d, day := range a.days {
		if d < today-detailed {
			day.methods, day.owners = nil, nil
		}
	}
}

// month returns the first day and the sum of the day's month. The caller holds ledger.mu.
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

// inForce returns the policy in force, or one without caps if it is not known.
func (a *Account) inForce() *agent.Policy {
	if p := a.policy.Load(); p != nil {
		if now := (*p)(); now != nil {
			return now
		}
	}
	return &agent.Policy{}
}

// capsOf visits the namespace's caps that apply to a request. The caller holds ledger.mu.
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

// found returns the sum with that name, or a zero one. Unlike of, it does not add the name.
func found(sums map[string]*sum, name string) *sum {
	if s := sums[name]; s != nil {
		return s
	}
	return &sum{}
}

// eachCap visits all caps of the namespace. Caps of methods and owners are visited for each that used something. The
// caller holds ledger.mu.
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

// daemonCap returns the cap of the whole daemon on that day. Its limit is 0 if there is none.
func (l *Ledger) daemonCap(d agent.Day) cap {
	return cap{scope: ScopeDaemon, window: WindowDay, limit: l.o.DayTokens, from: d}
}
