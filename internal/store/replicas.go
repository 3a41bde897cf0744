package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// ErrFenced is returned to a replica that another one has taken over from: it must not go on with what it had begun.
var ErrFenced = errors.New("another replica has it now")

// Replicas lists the processes that share a store. A replica is alive until its time is over; then others may take what it had. All times are
// the store's: of PostgreSQL the database's, never a replica's clock.
type Replicas interface {
	// Join adds the replica for ttl. ErrExists: one of that id is alive. What a dead one of that id owned, nobody owns.
	Join(ctx context.Context, r Replica, ttl time.Duration) error
	// Renew keeps it for ttl from now, with the figures of r. ErrFenced: its time was over, and others may have taken its sessions; it may join
	// again under another id.
	Renew(ctx context.Context, r Replica, ttl time.Duration) error
	// Leave removes it. Its sessions and leases are free at once.
	Leave(ctx context.Context, id string) error
	// ListReplicas returns those that are alive, by id.
	ListReplicas(ctx context.Context) ([]Replica, error)
}

// Replica is one process that uses the store. StartedAt and ExpiresAt are set by the store.
type Replica struct {
	ID, Address, Version string
	StartedAt, ExpiresAt time.Time

	SessionsOwned             int64 // figures that the replica reports, as are those below
	CallsInFlight             int64
	ForwardedIn, ForwardedOut int64
}

// YieldsTo reports whether the other replica may take the sessions of this one while it is alive: it has no address that requests could be
// forwarded to, and it joined earlier. So a daemon that nobody shares the store with has its sessions at once after a crash, and of two that are
// alive the later one has those that it is asked for, for good. What the earlier one has under way is refused at its commit.
func (r *Replica) YieldsTo(other *Replica) bool {
	return r.Address == "" && r.StartedAt.Before(other.StartedAt)
}

// Ownership says which replica runs the calls of a session. Epoch grows with each change of owner, of any session; giving a session back is one.
type Ownership struct {
	Replica, Address string
	Epoch            int64
}

// Owners gives sessions to replicas.
type Owners interface {
	// Own takes the session for the replica where nobody owns it, or its owner is dead or yields to it, and returns who owns it now. ErrNotFound: there is no such
	// session. ErrFenced: the replica is not alive.
	Own(ctx context.Context, sessionID, replica string) (Ownership, error)
	// CreateOwned is CreateSession of a session that the replica owns from the start. ErrExists; ErrFenced: the replica is not alive.
	CreateOwned(ctx context.Context, s agent.Session, sessionContext map[string]json.RawMessage,
		replica string) (Ownership, error)
	// Disown gives sessions back, by id. It does nothing with those that somebody else owns by now.
	Disown(ctx context.Context, owned map[string]Ownership) error
}

// Leases gives exclusive rights, and keeps what their holders leave for each other.
type Leases interface {
	// Lease takes the exclusive right of that key in the namespace. ErrInUse: somebody has it. With Wait it waits until the right is free or ctx ends.
	Lease(ctx context.Context, key string, o LeaseOptions) (Lease, error)
	// PutCandidate keeps c under the key for that long, in the place of an earlier one. What others put there is to be checked before it is used.
	PutCandidate(ctx context.Context, key string, c []byte, life time.Duration) error
	// Candidate returns what is kept under the key. ErrNotFound.
	Candidate(ctx context.Context, key string) ([]byte, error)
}

// LeaseOptions configures a Lease.
type LeaseOptions struct {
	TTL    time.Duration // how long it outlives a holder that cannot renew it; above 0
	Wait   bool          // until it is free
	Holder string        // the id of a replica: when that leaves, the lease ends. "" for none
}

// Lease is an exclusive right. It is renewed by itself at a third of its TTL. It is safe for concurrent use.
type Lease interface {
	// Lost is closed when it could not be renewed in time: another may hold it by now.
	Lost() <-chan struct{}
	// Release gives it back. It may be called twice, and after it was lost.
	Release()
}
