package postgres

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// snapshot is the set of transactions that a reader has seen. The zero value is empty.
type snapshot struct {
	next    uint64   // first transaction id that was not assigned yet
	running []uint64 // ids below next that were still running
}

// parseSnapshot parses the text of a pg_snapshot: the oldest running transaction, the next id, and the running ones.
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

// has reports whether the snapshot includes the transaction.
func (s snapshot) has(xid uint64) bool { return xid < s.next && !slices.Contains(s.running, xid) }

// settling tracks transaction ids: those below begun had been assigned when the last watcher of "now" began, and settle
// has seen that those below done have ended. They are valid for one run of one server, because another server, or the
// same one after a restart, may reuse ids that were lost.
type settling struct {
	mu          sync.Mutex
	server      time.Time // when the server started
	begun, done uint64
}

// begin records the start of a watcher.
func (s *settling) begin(now *present) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.server.Equal(now.begin.server) {
		s.server, s.begun, s.done = now.begin.server, 0, 0
	}
	s.begun = max(s.begun, now.seen.next)
}

// open reports whether transactions below begun may still be running.
func (s *settling) open() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done < s.begun
}

// look records the oldest running transaction of a server, and reports whether all transactions below begun have ended.
// A different server runs none of them: its watchers restart and learn that they may have missed changes.
func (s *settling) look(server time.Time, oldest uint64) (ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.server.Equal(server) {
		return true
	}
	if oldest >= s.begun {
		s.done = s.begun
	}
	return s.done >= s.begun
}

// settle waits until the stable part of the log has all calls that watchers of "now" are not notified of, because the
// calls were committed when the watchers began. That is the case once no transaction from that time is running. Without
// settle, a reader of the log up to a watcher's start would miss those calls.
func (s *Store) settle(ctx context.Context) error {
	for s.settling.open() {
		var oldest uint64
		var server time.Time
		if err := s.read(ctx, func(ctx context.Context) error {
			return s.pool.QueryRow(ctx,
				"SELECT pg_snapshot_xmin(pg_current_snapshot())::text::int8, pg_postmaster_start_time()").Scan(&oldest,
				&server)
		}); err != nil {
			return err
		}
		if s.settling.look(server, oldest) {
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
