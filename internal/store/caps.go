package store

import (
	"context"
	"fmt"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// What a Cap bounds.
const (
	ScopeNamespace = "namespace"
	ScopeMethod    = "method" // of the namespace
	ScopeOwner     = "owner"  // of the namespace
	ScopeDaemon    = "daemon" // all namespaces
)

// Cap is how many tokens may be used from the first to the last day, both included.
type Cap struct {
	Scope        string
	Role, Method string // of ScopeMethod
	Owner        string // of ScopeOwner
	First, Last  agent.Day
	Limit        int64
}

// Holds reports whether what was used on a day for somebody counts.
func (c *Cap) Holds(day agent.Day, role, method, owner string) bool {
	if day < c.First || day > c.Last {
		return false
	}
	switch c.Scope {
	case ScopeMethod:
		return role == c.Role && method == c.Method
	case ScopeOwner:
		return owner == c.Owner
	}
	return true
}

// Use is how many tokens were used, and how many requests that may be under way have reserved beside them.
type Use struct{ Used, Reserved int64 }

// Add adds another one.
func (u *Use) Add(v Use) {
	u.Used += v.Used
	u.Reserved += v.Reserved
}

// A CapError says which cap has no room for a reservation: the one at that index. Nothing was kept.
type CapError struct {
	Index int
	Use   Use
}

func (e *CapError) Error() string {
	return fmt.Sprintf("cap %d of the request is used up: %d tokens are used and %d reserved", e.Index, e.Use.Used,
		e.Use.Reserved)
}

// Caps keeps caps among all who use the store: they never pass one together.
type Caps interface {
	// ReserveWithin is Reserve if each cap has room for s, beside what all have used and reserved. Otherwise nothing is kept, and the error is a
	// *CapError. A store may have the replica keep some of a cap in advance: that is the others' again when they lack it, or when the replica
	// leaves or its time is over.
	ReserveWithin(ctx context.Context, s agent.Spend, replica string, caps []Cap) error
	// UseOf returns what all have used and reserved of each of the caps.
	UseOf(ctx context.Context, caps []Cap) ([]Use, error)
}

// Use returns what the ledger holds of a cap.
func (l *Ledger) Use(c *Cap) (u Use) {
	for k, r := range l.rows {
		if c.Holds(k.day, k.role, k.method, k.owner) {
			for _, m := range r.Models {
				u.Used += m.Sum()
			}
		}
	}
	for _, o := range l.open {
		if c.Holds(o.Day, o.Role, o.Method, o.Owner) {
			u.Reserved += o.Sum()
		}
	}
	return u
}

// RoomFor returns a *CapError for the first cap that has no room for so many tokens, of which uses are used.
func RoomFor(tokens int64, caps []Cap, uses []Use) error {
	for i, u := range uses {
		if u.Used+u.Reserved+tokens > caps[i].Limit {
			return &CapError{i, u}
		}
	}
	return nil
}
