package store

import (
	"context"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Reserve implements Namespace.
func (n *memoryNamespace) Reserve(ctx context.Context, s agent.Spend) error {
	return n.spend(ctx, func(l *Ledger) { l.Reserve(s) })
}

// Settle implements Namespace.
func (n *memoryNamespace) Settle(ctx context.Context, s agent.Spend) error {
	return n.spend(ctx, func(l *Ledger) { l.Settle(s) })
}

// Forfeit implements Namespace.
func (n *memoryNamespace) Forfeit(ctx context.Context, id string) error {
	return n.spend(ctx, func(l *Ledger) {
		if s, ok := l.Reservation(id); ok {
			l.Settle(s)
		}
	})
}

func (n *memoryNamespace) spend(ctx context.Context, change func(*Ledger)) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.writable(ctx); err != nil {
		return err
	}
	change(n.ledger)
	return nil
}

// Spent implements Namespace.
func (n *memoryNamespace) Spent(_ context.Context, first, last agent.Day) (Spent, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ledger.Spent(first, last), nil
}

// ReserveWithin implements Namespace.
func (n *memoryNamespace) ReserveWithin(ctx context.Context, s agent.Spend, _ string, caps []Cap) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := RoomFor(s.Sum(), caps, n.useOf(caps)); err != nil {
		return err
	}
	if err := n.writable(ctx); err != nil {
		return err
	}
	n.ledger.Reserve(s)
	return nil
}

// UseOf implements Namespace.
func (n *memoryNamespace) UseOf(_ context.Context, caps []Cap) ([]Use, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.useOf(caps), nil
}

// useOf implements UseOf. The caller holds mu.
func (n *memoryNamespace) useOf(caps []Cap) []Use {
	uses := make([]Use, len(caps))
	for i := range caps {
		if caps[i].Scope != ScopeDaemon {
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
