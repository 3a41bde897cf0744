package trail

import (
	"context"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/chain"
	"github.com/recurgentd/recurgentd/internal/store"
)

// A Reader reads what a query selects from a namespace's trail: all of it once, and from then on what came since, whichever replica wrote it.
// To ask costs the same however long the trail is. It is not to be used concurrently.
type Reader struct {
	store store.Namespace
	query store.AuditQuery

	read bool       // the trail, up to head
	head chain.Head // where it ended then
}

// NewReader returns a reader of what the query selects. The query says nothing of a place or of a number.
func NewReader(s store.Namespace, q store.AuditQuery) *Reader {
	q.Limit = store.MaxTrail
	return &Reader{store: s, query: q}
}

// Next returns the entries that Next has not returned yet, oldest first. anew: they are all that the trail has, and what was read before does not
// count any more. After an error it is as if Next had not been called.
func (r *Reader) Next(ctx context.Context) (entries []agent.AuditEntry, anew bool, err error) {
	head, err := r.store.AuditHead(ctx)
	if err != nil || r.read && head == r.head {
		return nil, false, err
	}
	q := r.query
	// not what comes after the head: that is for the next time
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
