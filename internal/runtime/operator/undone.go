package operator

import (
	"context"
	"slices"
	"sync"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// undos knows by which operations others were undone. It reads the audit trail once, and from then on what came since: its questions
// cost the same however long the trail is. The zero value is ready.
type undos struct {
	mu   sync.Mutex        // held while the trail is read
	read bool              // the trail, up to seq; guarded by mu, as the next two
	seq  int64             // of the newest entry that was read
	of   map[string]string // by the id of an entry, that of the last one that undid it
}

// by returns the id of the entry that undid the one of that id, and is not undone itself; "" where there is none.
func (u *undos) by(ctx context.Context, trail store.Namespace, id string) (string, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if err := u.refresh(ctx, trail); err != nil {
		return "", err
	}
	times := 0
	for at := u.of[id]; at != "" && times <= len(u.of); at = u.of[at] { // an undo may be undone, and so on; an imported trail may say anything
		times++
	}
	if times%2 == 0 {
		return "", nil
	}
	return u.of[id], nil
}

// refresh reads what the trail has since the last time. The caller holds mu.
func (u *undos) refresh(ctx context.Context, trail store.Namespace) error {
	head, err := trail.AuditHead(ctx)
	if err != nil || u.read && head.Seq == u.seq {
		return err
	}
	q := store.AuditQuery{Limit: store.MaxTrail, Undos: true}
	if u.read { // not what comes after the head: that is for the next time
		behind := agent.AuditEntry{Seq: head.Seq + 1}
		q.Before, q.Scan = store.AuditCursor(&behind), &store.Scan{Most: int(head.Seq - u.seq)}
	}
	entries, err := trail.Audit(ctx, q)
	if err != nil {
		return err
	}
	if u.of == nil {
		u.of = map[string]string{}
	}
	for _, e := range slices.Backward(entries) {
		u.of[e.Undoes] = e.ID
	}
	u.read, u.seq = true, head.Seq
	return nil
}
