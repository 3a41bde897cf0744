package spend

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/store"
)

// abandonedAfter is the age at which a reservation that its replica did not settle counts as spent: no request takes
// that long.
const abandonedAfter = 2 * time.Hour

// readEvery is the approximate maximum age of the known use of other replicas. It affects only warnings and reports:
// the store enforces the caps.
const readEvery = 10 * time.Second

// reserveShared reserves the maximum cost in the store that all replicas share. The error is an *ExceededError if a cap
// has no room.
func (r *reservation) reserveShared(ctx context.Context) error {
	if r.spend.Sum() == 0 {
		return r.reserve(ctx)
	}
	a, l := r.account, r.account.ledger
	caps, within := r.caps()
	err := a.store.ReserveWithin(ctx, r.spend, l.o.Replica(), within)
	var full *store.CapError
	switch {
	case errors.As(err, &full):
		return r.refused(caps[full.Index], full.Use)
	case err != nil:
		r.record(r.costing(provider.Bill{Free: true})) // it may have been stored despite the error
		return fmt.Errorf("the model was not asked, since the caps of tokens could not be read: %w", err)
	}
	l.mu.Lock()
	a.use(r.spend.Day, r.who()).add(0, r.spend.Sum())
	old := l.o.Now().Sub(a.read) >= readEvery
	l.mu.Unlock()
	if old {
		a.Follow(ctx)
	}
	return nil
}

// Follow reads the spending of all replicas, and warns about caps that are nearly used. Without caps or other replicas,
// it does nothing. a may be nil.
func (a *Account) Follow(ctx context.Context) {
	if a == nil || !a.ledger.shared() || !a.capped() {
		return
	}
	l := a.ledger
	if err := l.refresh(ctx, a); err != nil {
		l.o.Logger.Warn().Err(err).Msg("what other replicas spent could not be read: warnings of caps may be late")
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.day()
	a.eachCap(d, l.warnNear)
	if c := l.daemonCap(d); c.limit > 0 {
		l.warnNear(c, l.total(d))
	}
}

// caps returns the caps that apply to the request, and the same caps in the store's form.
func (r *reservation) caps() (caps []cap, stored []store.Cap) {
	a, l := r.account, r.account.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	r.spend.Day = l.day()
	add := func(c cap, _ *sum) { caps, stored = append(caps, c), append(stored, c.stored(r.who())) }
	a.capsOf(r.spend.Day, r.who(), add)
	if c := l.daemonCap(r.spend.Day); c.limit > 0 {
		add(c, nil)
	}
	return caps, stored
}

// refused returns the error for a cap with that use.
func (r *reservation) refused(c cap, u store.Use) error {
	l := r.account.ledger
	over := c.exceeded(&sum{u.Used, u.Reserved}, r.spend.Sum())
	l.mu.Lock()
	defer l.mu.Unlock()
	l.warn(c, over.Used, "the model was not asked; stored programs go on")
	return over
}

// refresh replaces the figures of an account's month, and the daemon's total of today if it is capped, by those in the
// store. Reservations and settlements made here meanwhile are counted by the next refresh.
func (l *Ledger) refresh(ctx context.Context, a *Account) error {
	l.mu.Lock()
	today := l.day()
	l.mu.Unlock()
	first, _ := today.Month()
	spent, err := a.store.Spent(ctx, first-1, math.MaxInt32)
	if err != nil {
		return fmt.Errorf("read what namespace %s has spent: %w", a.name, err)
	}
	var all []store.Use
	if c := l.daemonCap(today); c.limit > 0 {
		if all, err = a.store.UseOf(ctx, []store.Cap{c.stored(who{})}); err != nil {
			return fmt.Errorf("read what all namespaces have spent: %w", err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	// Take the account's old figures out of the daemon's totals before they are replaced.
	for d, day := range a.days {
		uses{l.total(d)}.add(-day.total.used, -day.total.reserved)
	}
	clear(a.days)
	a.take(spent)
	for _, u := range all {
		*l.total(today) = sum{u.Used, u.Reserved}
	}
	a.read = l.o.Now()
	a.near.Store(nil)
	return nil
}

// take adds stored figures: rows as used, open reservations as reserved. The caller holds ledger.mu.
func (a *Account) take(spent store.Spent) {
	for _, r := range spent.Rows {
		for _, m := range r.Models {
			a.use(r.Day, who{Role: r.Role, Method: r.Method, Owner: r.Owner}).add(m.Sum(), 0)
		}
	}
	for _, o := range spent.Open {
		a.use(o.Day, who{Role: o.Role, Method: o.Method, Owner: o.Owner}).add(0, o.Sum())
	}
}

// abandoned reports whether nobody will settle the reservation.
func (l *Ledger) abandoned(o agent.Spend) bool {
	return !l.shared() || l.o.Now().Sub(ids.Time(o.ID)) > abandonedAfter
}

// capped reports whether any cap applies to the account.
func (a *Account) capped() bool {
	p := a.inForce().Spend
	return a.ledger.o.DayTokens > 0 || p.DayTokens > 0 || p.MonthTokens > 0 || p.MethodDayTokens > 0 ||
		p.OwnerDayTokens > 0
}
