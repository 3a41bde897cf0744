package storetest

import (
	"context"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Reserve implements Namespace.
func (n *memoryNamespace) Reserve(ctx context.Context, s agent.Spend) error {
	return n.spend(ctx, func(l *store.Ledger) { l.Reserve(s) })
}

// Settle implements Namespace.
func (n *memoryNamespace) Settle(ctx context.Context, s agent.Spend) error {
	return n.spend(ctx, func(l *store.Ledger) { l.Settle(s) })
}

// Forfeit implements Namespace.
func (n *memoryNamespace) Forfeit(ctx context.Context, id string) error {
	return n.spend(ctx, func(l *store.Ledger) {
		if s, ok := l.Reservation(id); ok {
			l.Settle(s)
		}
	})
}

func (n *memoryNamespace) spend(ctx context.Context, change func(*store.Ledger)) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.writable(ctx); err != nil {
		return err
	}
	change(n.ledger)
	return nil
}

// Spent implements Namespace.
func (n *memoryNamespace) Spent(_ context.Context, first, last agent.Day) (store.Spent, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ledger.Spent(first, last), nil
}

// ReserveWithin implements Namespace.
func (n *memoryNamespace) ReserveWithin(ctx context.Context, s agent.Spend, _ string, caps []store.Cap) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := store.RoomFor(s.Sum(), caps, n.useOf(caps)); err != nil {
		return err
	}
	if err := n.writable(ctx); err != nil {
		return err
	}
	n.ledger.Reserve(s)
	return nil
}

// UseOf implements Namespace.
func (n *memoryNamespace) UseOf(_ context.Context, caps []store.Cap) ([]store.Use, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.useOf(caps), nil
}

// useOf implements UseOf. The caller holds mu.
func (n *memoryNamespace) useOf(caps []store.Cap) []store.Use {
	uses := make([]store.Use, len(caps))
	for i := range caps {
		if caps[i].Scope != store.ScopeDaemon {
			uses[i] = n.ledger.Use(&caps[i])
			continue
		}
		for _, other := range n.namespaces {
			uses[i].Add(other.ledger.Use(&caps[i]))
		}
		for day, tokens := range n.gone {
			if day >= caps[i].First && day <= caps[i].Last {
				uses[i].Used += tokens
			}
		}
	}
	return uses
}
