package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// ErrFenced means that another replica has taken over. The caller must abandon what it had begun.
var ErrFenced = errors.New("another replica has it now")

// Replicas lists the processes that share a store. A replica is alive until its time is over; then others may take what
// it owned. All times are the store's own: in PostgreSQL they come from the database, never from a replica's clock.
type Replicas interface {
	// Join adds the replica for ttl. ErrExists if a replica with that id is alive. Sessions that a dead one with that
	// id owned become free.
	Join(ctx context.Context, r Replica, ttl time.Duration) error
	// Renew extends the replica's life to ttl from now and stores the figures in r. ErrFenced if its time was over:
	// others may have taken its sessions, and it may join again under another id.
	Renew(ctx context.Context, r Replica, ttl time.Duration) error
	// Leave removes the replica. Its sessions and leases are free at once.
	Leave(ctx context.Context, id string) error
	// ListReplicas returns the replicas that are alive, sorted by id.
	ListReplicas(ctx context.Context) ([]Replica, error)
}

// Replica is a process that uses the store. The store sets StartedAt and ExpiresAt.
type Replica struct {
	ID, Address, Version string
	StartedAt, ExpiresAt time.Time

	SessionsOwned             int64 // reported by the replica, as are the figures below
	CallsInFlight             int64
	ForwardedIn, ForwardedOut int64
}

// YieldsTo reports whether other may take this replica's sessions while it is alive: this one has no address to forward
// requests to, and it joined earlier. Thus a daemon that shares its store with nobody gets its sessions back at once
// after a crash. If both are alive, the later one permanently takes each session that it is asked for, and calls that
// the earlier one has in flight there fail at their commit.
func (r *Replica) YieldsTo(other *Replica) bool {
	return r.Address == "" && r.StartedAt.Before(other.StartedAt)
}

// Ownership records which replica runs a session's calls. Each change of owner of any session gets a higher Epoch,
// including the next owner after a session was given back.
type Ownership struct {
	Replica, Address string
	Epoch            int64
}

// Owners assigns sessions to replicas.
type Owners interface {
	// Own assigns the session to the replica if it is free or its owner is dead or yields, and returns the current
	// owner. ErrNotFound if there is no such session; ErrFenced if the replica is not alive.
	Own(ctx context.Context, sessionID, replica string) (Ownership, error)
	// CreateOwned creates a session that the replica owns from the start. ErrExists; ErrFenced if the replica is not
	// alive.
	CreateOwned(ctx context.Context, s agent.Session, sessionContext map[string]json.RawMessage,
		replica string) (Ownership, error)
	// Disown gives sessions back; owned is by session id. Sessions that have another owner in the meantime stay as they
	// are.
	Disown(ctx context.Context, owned map[string]Ownership) error
}

// Leases grants exclusive rights, and keeps candidates that their holders leave for each other.
type Leases interface {
	// Lease takes the exclusive right with that key in the namespace. ErrInUse if somebody holds it. With o.Wait it
	// waits until the right is free or ctx ends.
	Lease(ctx context.Context, key string, o LeaseOptions) (Lease, error)
	// PutCandidate keeps c under the key for life and replaces an earlier candidate. A reader must check a candidate
	// before use, because another replica may have written it.
	PutCandidate(ctx context.Context, key string, c []byte, life time.Duration) error
	// Candidate returns the candidate under the key. ErrNotFound.
	Candidate(ctx context.Context, key string) ([]byte, error)
}

// LeaseOptions configures a Lease.
type LeaseOptions struct {
	TTL    time.Duration // how long the lease outlives a holder that cannot renew it; above 0
	Wait   bool          // wait until the lease is free
	Holder string        // a replica id: the lease ends when that replica leaves. "" means none
}

// Lease is an exclusive right. It renews itself every third of its TTL. It is safe for concurrent use.
type Lease interface {
	// Lost is closed when the lease ends without Release: it could not be renewed in time, its replica left, its
	// namespace was erased or the store was closed. Another holder may have it by then.
	Lost() <-chan struct{}
	// Release gives the lease back. It may be called twice and after the lease was lost.
	Release()
}
