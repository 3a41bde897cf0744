package store

import (
	"context"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Reserve is part of Namespace.
func (n *memoryNamespace) Reserve(ctx context.Context, s agent.Spend) error {
	return n.spend(ctx, func(l *Ledger) { l.Reserve(s) })
}

// Settle is part of Namespace.
func (n *memoryNamespace) Settle(ctx context.Context, s agent.Spend) error {
	return n.spend(ctx, func(l *Ledger) { l.Settle(s) })
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

// Spent is part of Namespace.
func (n *memoryNamespace) Spent(_ context.Context, first, last agent.Day) (Spent, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ledger.Spent(first, last), nil
}
