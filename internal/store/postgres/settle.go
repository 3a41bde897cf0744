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

// settling is up to where transactions had begun when the last watcher of "now" did, and up to where settle has seen that they had ended. Both are of one
// server: another one, or the same started again, gives numbers anew that were lost with it.
type settling struct {
	mu          sync.Mutex
	server      time.Time
	begun, done uint64
}

// begin takes note of a watcher that begins.
func (s *settling) begin(now *present) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.server.Equal(now.begin.server) {
		s.server, s.begun, s.done = now.begin.server, 0, 0
	}
	s.begun = max(s.begun, now.seen.next)
}

// open reports whether transactions may run of those that had begun.
func (s *settling) open() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done < s.begun
}

// look takes note of the oldest transaction that a server runs, and reports whether all have ended that had begun. At another server none of them runs:
// its watchers begin anew, and hear that they may have missed something.
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

// settle waits until the stable part of the log has all calls that are not reported to watchers of "now", since they were there when these began: until
// no transaction runs that ran then. Who reads the log up to a watcher's beginning would miss them otherwise.
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
