package disk

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// spending is the part that sums up calls and model requests by day.
type spending struct {
	n *namespace

	ledger *store.Ledger // guarded by shared.mu, as all below
	// tokens that erased namespaces used on the last day on which any was erased; kept for the default namespace only
	erased map[agent.Day]int64
	doc    held
}

// spendDoc is spend.json.
type spendDoc struct {
	head
	store.Spent
	Erased map[agent.Day]int64 `json:"erased,omitempty"` // see spending.erased
}

func newSpending(n *namespace) *spending {
	p := &spending{n: n, ledger: store.NewLedger(store.Spent{})}
	p.doc = held{name: spendFile, render: func(h head) (any, error) {
		return spendDoc{h, p.ledger.Spent(math.MinInt32, math.MaxInt32), maps.Clone(p.erased)}, nil
	}}
	return p
}

func (p *spending) load() (corrupt bool, err error) {
	var doc spendDoc
	corrupt, err = readOptional(p.n.files, spendFile, &doc, func() error { return checkSpend(&doc) })
	p.ledger, p.erased, p.doc.lsn = store.NewLedger(doc.Spent), doc.Erased, doc.LSN
	return corrupt, err
}

// checkSpend returns an error for negative figures, which would create room below a cap.
func checkSpend(doc *spendDoc) error {
	sound := func(t agent.Tokens) bool { return min(t.Requests, t.Prompt, t.Cached, t.Completion, t.Estimated) >= 0 }
	for _, r := range doc.Rows {
		for _, m := range r.Models {
			if !sound(m.Tokens) {
				return fmt.Errorf("a figure of %s is below 0", r.Day)
			}
		}
	}
	for _, o := range doc.Open {
		if o.ID == "" || !sound(o.Tokens) {
			return fmt.Errorf("a reservation of %s has no id, or a figure below 0", o.Day)
		}
	}
	for day, tokens := range doc.Erased {
		if tokens < 0 {
			return fmt.Errorf("what erased namespaces used on %s is below 0", day)
		}
	}
	return nil
}

// add adds the calls and model requests of a journal entry. The caller holds shared.mu.
func (p *spending) add(e *entry) {
	if e.lsn <= p.doc.lsn {
		return
	}
	if e.call != nil && !e.skipLog {
		p.ledger.Call(agent.DayOf(e.at()), &e.call.log, e.Artifacts)
		p.doc.lags = true
	}
	if e.Reserve != nil {
		p.ledger.Reserve(*e.Reserve)
		p.doc.lags = true
	}
	if e.Settle != nil {
		p.ledger.Settle(*e.Settle)
		p.doc.lags = true
	}
	if e.Spent > 0 {
		day := agent.DayOf(e.at())
		p.erased = map[agent.Day]int64{day: p.erased[day] + e.Spent}
		p.doc.lags = true
	}
}

// Reserve is part of store.Namespace. It does not wait for the disk if the request costs nothing.
func (p *spending) Reserve(ctx context.Context, s agent.Spend) error {
	e := p.n.newEntry()
	e.Reserve = &s
	return p.n.commit(ctx, &commit{entry: e, late: s.Sum() == 0})
}

// Settle is part of store.Namespace. With an interval, or if the request cost nothing, it does not wait for the disk;
// the next sync of the journal makes it durable.
func (p *spending) Settle(ctx context.Context, s agent.Spend) error {
	return p.settle(ctx, s.ID, func(agent.Spend) agent.Spend { return s })
}

// Forfeit is part of store.Namespace.
func (p *spending) Forfeit(ctx context.Context, id string) error {
	return p.settle(ctx, id, func(reserved agent.Spend) agent.Spend { return reserved })
}

// errSettled refuses to settle a request that has no reservation.
var errSettled = errors.New("there is no such reservation")

// settle settles a reservation with its cost.
func (p *spending) settle(ctx context.Context, id string, cost func(reserved agent.Spend) agent.Spend) error {
	e := p.n.newEntry()
	// Alone in its batch, so that the ledger has all earlier entries when check looks at it.
	err := p.n.commit(ctx, &commit{entry: e, late: true, alone: true, check: func() error {
		p.n.mu.RLock()
		defer p.n.mu.RUnlock()
		reserved, ok := p.ledger.Reservation(id)
		if !ok {
			return errSettled
		}
		s := cost(reserved)
		e.Settle = &s
		return nil
	}})
	switch {
	case p.n.o.Interval > 0 && errors.Is(err, errSettled):
		return nil
	case errors.Is(err, errSettled):
		return p.n.sequencer.settle() // an earlier attempt may have applied it, and failed to sync it
	case err != nil || e.Settle.Sum() == 0 || p.n.o.Interval > 0:
		return err
	}
	return p.n.sequencer.await(e.lsn)
}

// Spent is part of store.Namespace.
func (p *spending) Spent(_ context.Context, first, last agent.Day) (store.Spent, error) {
	p.n.mu.RLock()
	defer p.n.mu.RUnlock()
	return p.ledger.Spent(first, last), nil
}

// ReserveWithin is part of store.Namespace. The store decides one reservation at a time. A directory has only one
// daemon, so the sums in memory are complete.
func (p *spending) ReserveWithin(ctx context.Context, s agent.Spend, _ string, caps []store.Cap) error {
	p.n.store.deciding.Lock()
	defer p.n.store.deciding.Unlock()
	uses, err := p.UseOf(ctx, caps)
	if err != nil {
		return err
	}
	if err := store.RoomFor(s.Sum(), caps, uses); err != nil {
		return err
	}
	return p.Reserve(ctx, s)
}

// UseOf is part of store.Namespace.
func (p *spending) UseOf(ctx context.Context, caps []store.Cap) ([]store.Use, error) {
	uses := make([]store.Use, len(caps))
	for i, c := range caps {
		var err error
		if c.Scope == store.ScopeDaemon {
			uses[i], err = p.n.store.useOfAll(ctx, c)
		} else {
			p.n.mu.RLock()
			uses[i] = p.ledger.Use(&c)
			p.n.mu.RUnlock()
		}
		if err != nil {
			return nil, err
		}
	}
	return uses, nil
}

// usedOn returns the tokens that were used or are reserved on a day.
func (p *spending) usedOn(day agent.Day) int64 {
	p.n.mu.RLock()
	defer p.n.mu.RUnlock()
	u := p.ledger.Use(&store.Cap{Scope: store.ScopeNamespace, First: day, Last: day})
	return u.Used + u.Reserved
}

// useOfAll sums up what all namespaces used of a cap, including namespaces that were erased within its days.
func (s *Store) useOfAll(ctx context.Context, c store.Cap) (sum store.Use, err error) {
	c.Scope = store.ScopeNamespace
	s.mu.RLock()
	for day, tokens := range s.spaces.loaded[agent.DefaultNamespace].spending.erased {
		if day >= c.First && day <= c.Last {
			sum.Used += tokens
		}
	}
	s.mu.RUnlock()
	list, err := s.ListNamespaces(ctx, "", math.MaxInt)
	if err != nil {
		return sum, err
	}
	for _, info := range list {
		n, err := s.Namespace(info.Name)
		if err != nil {
			return sum, err
		}
		uses, err := n.UseOf(ctx, []store.Cap{c})
		if err != nil {
			return sum, err
		}
		sum.Add(uses[0])
	}
	return sum, nil
}
