package store

import (
	"context"
	"errors"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// ErrDefault is returned for the deletion of the default namespace, which always exists.
var ErrDefault = errors.New("the default namespace cannot be deleted")

// Namespaces lists, makes and erases the namespaces of a store.
type Namespaces interface {
	// ListNamespaces returns at most limit of the namespaces that exist, by name, after the name after ("" for the start). The default one
	// always exists.
	ListNamespaces(ctx context.Context, after agent.Namespace, limit int) ([]NamespaceInfo, error)
	// NamespaceInfo returns what is known of one. ErrNotFound.
	NamespaceInfo(ctx context.Context, name agent.Namespace) (NamespaceInfo, error)
	// CreateNamespace makes an empty namespace. ErrExists. The audit entry, if there is one, goes to the default namespace's trail, here and
	// in EraseNamespace: that of an erased one goes with it.
	CreateNamespace(ctx context.Context, name agent.Namespace, audit *agent.AuditEntry) (NamespaceInfo, error)
	// EraseNamespace erases the namespace and everything in it, for good. When it returns its bytes are gone from disk, or ErrReadOnly marks the
	// store and they go as soon as it can write. Every Namespace of that name that was handed out before returns ErrGone, ErrNotFound or nothing
	// from then on, and writes nothing. One of the same name may be made afterwards, and is empty. ErrNotFound, ErrDefault.
	EraseNamespace(ctx context.Context, name agent.Namespace, audit *agent.AuditEntry) error
}

// NamespaceInfo is what is known of a namespace without reading what it holds.
type NamespaceInfo struct {
	Name      agent.Namespace
	CreatedAt time.Time // zero when it is not known: of the default one, and of those that an earlier version made
	// Due is when Maintenance.Expire may have something to do next. Zero: it changed since it was last expired; a namespace that holds nothing
	// is never due. So who expires all namespaces now and then need not open those that nobody uses.
	Due time.Time
}

// Never is the Due of a namespace that holds nothing which could expire.
var Never = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// ExpireEvery is how long a namespace that nobody changes may wait for its next Expire.
const ExpireEvery = 24 * time.Hour
