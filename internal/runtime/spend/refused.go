package spend

import (
	"context"
	"errors"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// unrecorded is the cost of a request that the store refused when the request ended.
type unrecorded struct {
	account *Account
	cost    agent.Spend
}

// maxRefused bounds the costs that are kept in memory. Beyond it, reservations stay, and count in full after a restart.
const maxRefused = 10_000

// keep keeps a cost for Record.
func (l *Ledger) keep(u unrecorded) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.refused) < maxRefused {
		l.refused = append(l.refused, u)
	}
}

// Record stores the costs that the store refused when their requests ended. What it refuses again stays for the next
// time. The store counts each once, even if Record is called concurrently.
func (l *Ledger) Record(ctx context.Context) {
	l.mu.Lock()
	list := slices.Clone(l.refused)
	l.mu.Unlock()
	recorded := 0
	for _, u := range list {
		err := u.account.store.Settle(ctx, u.cost)
		if err != nil && !errors.Is(err, store.ErrGone) { // an erased namespace has counted its reservations
			continue
		}
		recorded++
		l.mu.Lock()
		l.refused = slices.DeleteFunc(l.refused, func(x unrecorded) bool { return x.cost.ID == u.cost.ID })
		l.mu.Unlock()
	}
	if recorded > 0 {
		l.o.Logger.Info().Int("requests", recorded).Msg("what requests to the model cost is recorded now")
	}
}

// refused returns the account's costs that the store has refused so far.
func (a *Account) refused() (costs []agent.Spend) {
	l := a.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, u := range l.refused {
		if u.account == a {
			costs = append(costs, u.cost)
		}
	}
	return costs
}

// withRefused adds refused costs to what the store has. It has those without a reservation already, because it refused
// them when it could not make them durable.
func withRefused(spent store.Spent, refused []agent.Spend, first, last agent.Day) store.Spent {
	if len(refused) == 0 {
		return spent
	}
	sums := store.NewLedger(spent)
	for _, cost := range refused {
		if _, open := sums.Reservation(cost.ID); open {
			sums.Settle(cost)
		}
	}
	return sums.Spent(first, last)
}
