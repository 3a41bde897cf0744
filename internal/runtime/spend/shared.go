package spend

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Where replicas share the store, one at a time decides whether a cap has room: it holds a lease from the moment it reads what all have used
// and reserved until its own reservation is kept. So they cannot pass a cap together. The lease outlives a step of that by far: who did not
// get its reservation in within decideIn does not know whether it still may.
const (
	decideLease = 15 * time.Second
	decideIn    = decideLease / 3
	decideTries = 3
)

// abandonedAfter is when a reservation whose replica did not settle it counts as spent: no request takes that long.
const abandonedAfter = 2 * time.Hour

var errUndecided = errors.New("the model was not asked: the store is too slow to say whether a cap of tokens has room")

// reserveShared reserves what the request costs at most among all replicas. The error is an *ExceededError where a cap has no room.
func (r *reservation) reserveShared(ctx context.Context) error {
	a, l := r.account, r.account.ledger
	where := a.store
	if l.o.DayTokens > 0 { // one cap for all namespaces
		held, err := l.o.Store.Namespace(agent.DefaultNamespace)
		if err != nil {
			return err
		}
		where = held
	}
	for range decideTries {
		lease, err := where.Lease(ctx, "spend", store.LeaseOptions{TTL: decideLease, Wait: true})
		if err != nil {
			return fmt.Errorf("the model was not asked, since the caps of tokens could not be read: %w", err)
		}
		err = r.decide(ctx, lease)
		lease.Release()
		if !errors.Is(err, errUndecided) {
			return err
		}
	}
	return errUndecided
}

// decide reads what was used, and reserves, while the lease is held.
func (r *reservation) decide(ctx context.Context, lease store.Lease) error {
	ctx, cancel := context.WithTimeoutCause(ctx, decideIn, errUndecided)
	defer cancel()
	select {
	case <-lease.Lost():
		return errUndecided
	default: // it is held for twice decideIn at least: it was renewed within a third of its time
	}
	if err := r.account.ledger.refresh(ctx, r.account); err != nil {
		return err
	}
	return r.reserve(ctx)
}

// refresh reads anew what the account's namespace has used; with a cap of the daemon what all have.
func (l *Ledger) refresh(ctx context.Context, a *Account) error {
	if l.o.DayTokens == 0 {
		return l.read(ctx, a)
	}
	for after := agent.Namespace(""); ; {
		const page = 1000
		list, err := l.o.Store.ListNamespaces(ctx, after, page)
		if err != nil {
			return fmt.Errorf("list the namespaces: %w", err)
		}
		for _, n := range list {
			l.mu.Lock()
			other, err := l.account(ctx, n.Name)
			l.mu.Unlock()
			if err == nil {
				err = l.read(ctx, other)
			}
			if err != nil && !errors.Is(err, store.ErrGone) {
				return err
			}
			after = n.Name
		}
		if len(list) < page {
			break
		}
	}
	return l.read(ctx, a) // a new namespace is in no list
}

// read puts what the store has of an account's month, of all replicas, in the place of what is known of it.
func (l *Ledger) read(ctx context.Context, a *Account) error {
	l.mu.Lock()
	first, _ := l.day().Month()
	l.mu.Unlock()
	spent, err := a.store.Spent(ctx, first-1, math.MaxInt32)
	if err != nil {
		return fmt.Errorf("read what namespace %s has spent: %w", a.name, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for d, day := range a.days {
		uses{l.total(d)}.add(-day.total.used, -day.total.reserved)
	}
	clear(a.days)
	a.take(spent)
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
	return !l.o.Shared || l.o.Now().Sub(ids.Time(o.ID)) > abandonedAfter
}

// capped reports whether a cap holds for the account.
func (a *Account) capped() bool {
	p := a.inForce().Spend
	return a.ledger.o.DayTokens > 0 || p.DayTokens > 0 || p.MonthTokens > 0 || p.MethodDayTokens > 0 || p.OwnerDayTokens > 0
}
