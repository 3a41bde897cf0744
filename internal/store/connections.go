package store

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Connections stores connections. There are at most MaxConnections, so they are always read all at once.
type Connections interface {
	// ListConnections returns all connections, sorted by name.
	ListConnections(ctx context.Context) ([]agent.Connection, error)
	// PutConnection creates or replaces the connection, together with its audit entry. ErrConflict if the stored one
	// has another revision; 0 means that the connection must be new. ErrTooMany if there are MaxConnections already.
	PutConnection(ctx context.Context, c agent.Connection, revision int64, audit *agent.AuditEntry) (agent.Connection,
		error)
	// DeleteConnection deletes the connection together with its secret. ErrNotFound; ErrConflict as in PutConnection.
	DeleteConnection(ctx context.Context, name string, revision int64, audit *agent.AuditEntry) error
}

// SecretsKeyFile is the name of the file in a data directory that may hold the identity for opening sealed secrets. It
// belongs to the daemon: no store reads, writes or exports it.
const SecretsKeyFile = "secrets.key"

// DerivedDir is the directory in a data directory that the daemon can rebuild at any time. No store reads, writes or
// exports it, and an import ignores it.
const DerivedDir = "native"

// MaxConnections is the maximum number of connections in a namespace.
const MaxConnections = 256

// SortedConnections returns connections sorted by name.
func SortedConnections(all map[string]agent.Connection) []agent.Connection {
	return slices.SortedFunc(maps.Values(all), func(a, b agent.Connection) int { return cmp.Compare(a.Name, b.Name) })
}

// ReplaceConnection returns the connection that PutConnection stores in place of old. old is zero if there is none.
// ErrConflict if old has another revision.
func ReplaceConnection(old, c agent.Connection, revision int64, now time.Time) (agent.Connection, error) {
	if !Matches(revision, old.Revision) {
		return c, ErrConflict
	}
	c.CreatedAt, c.UpdatedAt, c.Revision = old.CreatedAt, now.UTC(), old.Revision+1
	if c.CreatedAt.IsZero() {
		c.CreatedAt = c.UpdatedAt
	}
	return c, nil
}
