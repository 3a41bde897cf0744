package trail

import (
	"context"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/chain"
	"github.com/recurgentd/recurgentd/internal/store"
)

// A Reader reads the entries that a query selects from a namespace's trail: all of them once, then only new ones,
// whichever replica wrote them. Checking for new entries costs the same however long the trail is. A Reader must not be
// used concurrently.
type Reader struct {
	store store.Namespace
	query store.AuditQuery

	read bool       // the trail was read up to head
	head chain.Head // end of the trail when it was last read
}

// NewReader returns a reader of the entries that the query selects. The query must not set a position or a limit.
func NewReader(s store.Namespace, q store.AuditQuery) *Reader {
	q.Limit = store.MaxTrail
	return &Reader{store: s, query: q}
}

// Next returns the entries that it has not returned yet, oldest first. If anew is true, they are the whole trail, and
// entries that were read before no longer count. After an error, the next call continues as if this one had not
// happened.
func (r *Reader) Next(ctx context.Context) (entries []agent.AuditEntry, anew bool, err error) {
	head, err := r.store.AuditHead(ctx)
	if err != nil || r.read && head == r.head {
		return nil, false, err
	}
	q := r.query
	// exclude entries after the head: the next call reads them
	if anew = !r.read || !r.head.Begun() || head.Seq <= r.head.Seq; !anew {
		q.Before, q.Scan = store.AuditCursor(&agent.AuditEntry{Seq: head.Seq + 1}),
			&store.Scan{Most: int(head.Seq - r.head.Seq)}
	}
	if entries, err = r.store.Audit(ctx, q); err != nil {
		return nil, false, err
	}
	slices.Reverse(entries)
	r.read, r.head = true, head
	return entries, anew, nil
}
