package postgres

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// snapshot is which transactions' changes a reader saw. The zero value saw none.
type snapshot struct {
	next    uint64   // and what came then it did not see
	running []uint64 // nor these
}

// parseSnapshot reads a pg_snapshot as text: the oldest running transaction, the next one, and those that ran.
func parseSnapshot(text string) (s snapshot, err error) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return s, fmt.Errorf("%q is not a snapshot", text)
	}
	if s.next, err = strconv.ParseUint(parts[1], 10, 64); err != nil || parts[2] == "" {
		return s, err
	}
	for id := range strings.SplitSeq(parts[2], ",") {
		xid, err := strconv.ParseUint(id, 10, 64)
		if err != nil {
			return s, err
		}
		s.running = append(s.running, xid)
	}
	return s, nil
}

func (s snapshot) has(xid uint64) bool { return xid < s.next && !slices.Contains(s.running, xid) }

// settle waits until the stable part of the log has all calls that are not reported to watchers of "now", since they were there when these began: until
// no transaction runs that ran then. Who reads the log up to a watcher's beginning would miss them otherwise.
func (s *Store) settle(ctx context.Context) error {
	for begun := s.begun.Load(); s.settled.Load() < begun; {
		var oldest uint64
		if err := s.read(ctx, func(ctx context.Context) error {
			return s.pool.QueryRow(ctx, "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::int8").Scan(&oldest)
		}); err != nil {
			return err
		}
		if oldest >= begun {
			raise(&s.settled, begun) // not to more: numbers that only a lost primary gave come again
			return nil
		}
		select {
		case <-time.After(pageEvery):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// raise sets a number that only grows.
func raise(n *atomic.Uint64, to uint64) {
	for old := n.Load(); old < to && !n.CompareAndSwap(old, to); old = n.Load() {
	}
}
