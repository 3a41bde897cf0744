package store

import (
	"context"
	"fmt"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Scopes of a Cap.
const (
	ScopeNamespace = "namespace"
	ScopeMethod    = "method" // one method of the namespace
	ScopeOwner     = "owner"  // one owner in the namespace
	ScopeDaemon    = "daemon" // all namespaces
)

// Cap limits the tokens that may be used from day First to day Last, inclusive.
type Cap struct {
	Scope        string
	Role, Method string // for ScopeMethod
	Owner        string // for ScopeOwner
	First, Last  agent.Day
	Limit        int64
}

// Holds reports whether tokens used on that day, for that method and owner, count against the cap. It does not compare
// namespaces.
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

// Use is the number of tokens used, and of tokens reserved by requests that may be in flight.
type Use struct{ Used, Reserved int64 }

// Add adds v to u.
func (u *Use) Add(v Use) {
	u.Used += v.Used
	u.Reserved += v.Reserved
}

// A CapError reports that the cap at Index has no room for a reservation. Nothing was reserved.
type CapError struct {
	Index int
	Use   Use
}

func (e *CapError) Error() string {
	return fmt.Sprintf("cap %d of the request is used up: %d tokens are used and %d reserved", e.Index, e.Use.Used,
		e.Use.Reserved)
}

// Caps enforces caps across all users of the store: together they never exceed one.
type Caps interface {
	// ReserveWithin reserves s as Reserve does, if each cap has room for it on top of what everybody has used and
	// reserved. Otherwise it reserves nothing and returns a *CapError. A store may assign part of a cap to the replica
	// in advance. That part returns to the others when they need it, when the replica leaves, or when its time is over.
	ReserveWithin(ctx context.Context, s agent.Spend, replica string, caps []Cap) error
	// UseOf returns how much everybody together has used and reserved of each cap.
	UseOf(ctx context.Context, caps []Cap) ([]Use, error)
}

// Use returns the ledger's use of a cap.
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

// RoomFor returns a *CapError for the first cap without room for that many more tokens. uses[i] is the use of caps[i].
func RoomFor(tokens int64, caps []Cap, uses []Use) error {
	for i, u := range uses {
		if u.Used+u.Reserved+tokens > caps[i].Limit {
			return &CapError{i, u}
		}
	}
	return nil
}
