package store

import (
	"context"
	"errors"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// ErrDefault rejects the deletion of the default namespace, which always exists.
var ErrDefault = errors.New("the default namespace cannot be deleted")

// Namespaces lists, creates and erases the namespaces of a store.
type Namespaces interface {
	// ListNamespaces returns at most limit existing namespaces, sorted by name, starting after the name after; "" means
	// the start. The default namespace always exists.
	ListNamespaces(ctx context.Context, after agent.Namespace, limit int) ([]NamespaceInfo, error)
	// NamespaceInfo returns metadata about a namespace. ErrNotFound.
	NamespaceInfo(ctx context.Context, name agent.Namespace) (NamespaceInfo, error)
	// CreateNamespace creates an empty namespace. ErrExists. Here and in EraseNamespace the audit entry, unless nil,
	// goes to the default namespace's trail, because the trail of an erased namespace is erased as well.
	CreateNamespace(ctx context.Context, name agent.Namespace, audit *agent.AuditEntry) (NamespaceInfo, error)
	// EraseNamespace erases the namespace with everything in it, permanently. When it returns, the bytes are gone from
	// disk. If they could not be removed, the store is read-only (ErrReadOnly) and removes them once it can write. Each
	// Namespace of that name that was handed out before then writes nothing, and returns ErrGone, ErrNotFound or empty
	// results. A new namespace with the same name starts empty. ErrNotFound, ErrDefault.
	EraseNamespace(ctx context.Context, name agent.Namespace, audit *agent.AuditEntry) error
}

// NamespaceInfo is what is known about a namespace without reading its content.
type NamespaceInfo struct {
	Name      agent.Namespace
	CreatedAt time.Time // zero if unknown: for the default namespace and for those that an earlier version created
	// Due is when Maintenance.Expire may have work next. Zero means that the namespace changed since it was last
	// expired. A namespace that holds nothing has Never. Thus a periodic expiry need not open unused namespaces.
	Due time.Time
}

// Never is the Due of a namespace without anything that could expire.
var Never = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// ExpireEvery is the maximum time between two runs of Expire on a namespace that does not change.
const ExpireEvery = 24 * time.Hour
