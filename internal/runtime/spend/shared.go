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

// abandonedAfter is when a reservation whose replica did not settle it counts as spent: no request takes that long.
const abandonedAfter = 2 * time.Hour

// readEvery is about how old what is known of other replicas' requests may be where no call of theirs has shown it. What may be asked the store decides.
const readEvery = 10 * time.Second

// reserveShared reserves what the request costs at most among all replicas. The error is an *ExceededError where a cap has no room.
func (r *reservation) reserveShared(ctx context.Context) error {
	if r.spend.Sum() == 0 {
		return nil
	}
	a, l := r.account, r.account.ledger
	caps, within := r.caps()
	err := a.store.ReserveWithin(ctx, r.spend, l.o.Replica(), within)
	var full *store.CapError
	switch {
	case errors.As(err, &full):
		return r.refused(caps[full.Index], full.Use)
	case err != nil:
		r.record(r.costing(provider.Bill{Free: true})) // it may have been kept in spite of the error
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

// Follow takes over what all replicas have spent, and warns of caps that are nearly used. Without caps, or without other replicas, it does nothing.
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

// caps returns the caps that the request counts for, and the same as the store knows them.
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

// refused is the error for a cap of which so much is used.
func (r *reservation) refused(c cap, u store.Use) error {
	l := r.account.ledger
	over := c.exceeded(&sum{u.Used, u.Reserved}, r.spend.Sum())
	l.mu.Lock()
	defer l.mu.Unlock()
	l.warn(c, over.Used, "the model was not asked; stored programs go on")
	return over
}

// refresh puts what the store has of an account's month, of all replicas, in the place of what is known of it; and what all namespaces used
// today, where that has a cap. What requests reserve and settle here meanwhile is counted at the next time.
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

// take counts what was stored: the rows as used, what is open as reserved. The caller holds ledger.mu.
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

// abandoned reports whether nobody will settle the reservation any more.
func (l *Ledger) abandoned(o agent.Spend) bool {
	return !l.shared() || l.o.Now().Sub(ids.Time(o.ID)) > abandonedAfter
}

// capped reports whether a cap holds for the account.
func (a *Account) capped() bool {
	p := a.inForce().Spend
	return a.ledger.o.DayTokens > 0 || p.DayTokens > 0 || p.MonthTokens > 0 || p.MethodDayTokens > 0 ||
		p.OwnerDayTokens > 0
}
