package store

import (
	"context"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Connections holds the connections. There are few: all of them are read at once.
type Connections interface {
	// ListConnections returns all connections by name.
	ListConnections(ctx context.Context) ([]agent.Connection, error)
	// PutConnection makes the connection or replaces it, together with its audit entry. ErrConflict when the revision is not the stored
	// one (0: the connection must be new); ErrTooMany when there are MaxConnections.
	PutConnection(ctx context.Context, c agent.Connection, revision int64, audit *agent.AuditEntry) (agent.Connection,
		error)
	// DeleteConnection deletes it together with its secret. ErrNotFound; ErrConflict as PutConnection.
	DeleteConnection(ctx context.Context, name string, revision int64, audit *agent.AuditEntry) error
}

// SecretsKeyFile is the file of a data directory that may hold the identity which sealed secrets are opened with. It is the daemon's:
// no store reads, writes or exports it.
const SecretsKeyFile = "secrets.key"

// DerivedDir is the directory of a data directory whose content the daemon makes anew where it is missing. No store reads, writes or exports
// it, and no archive holds anything of it that an import would take.
const DerivedDir = "native"

// MaxConnections is how many connections a namespace holds at most.
const MaxConnections = 256
