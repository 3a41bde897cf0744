//go:build postgres

package postgres

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/postgres/pgtest"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// A copy that fails half-way, on either side, leaves the database empty, and nobody sees a part of it meanwhile. The
// copy can be repeated.
func TestHalfACopyIsNothing(t *testing.T) {
	t.Parallel()
	from, to := empty(t), empty(t)
	full(t, from, time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC))
	want := content(t, from.Items)
	nothing := content(t, to.Items)
	broken := errors.New("broken")
	for _, after := range []int{1, len(want) / 2, len(want) - 1} {
		for name, breaks := range map[string]func() error{
			"the source": func() error { return broken },
			"the database": func() error {
				_, err := to.pool.Exec(t.Context(),
					"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'")
				return err
			},
		} {
			err := to.Fill(t.Context(), func(give func(*store.Item) error) error {
				n := 0
				return from.Items(t.Context(), func(x *store.Item) error {
					if n++; n == after {
						if got := content(t, to.Items); len(got) != len(nothing) {
							t.Errorf("others see %d items of a copy that is under way", len(got))
						}
						if err := breaks(); err != nil {
							return err
						}
					}
					return give(x)
				})
			})
			if err == nil {
				t.Errorf("%s broke after %d items, and the copy did not", name, after)
			}
			if got := content(t, to.Items); len(got) != len(nothing) {
				t.Errorf("%s broke after %d items: %d are there, %d were before", name, after, len(got), len(nothing))
			}
			var pieces int
			if err := to.pool.QueryRow(t.Context(),
				"SELECT (SELECT count(*) FROM pieces) + (SELECT count(*) FROM blobs) + (SELECT count(*) FROM programs)").Scan(&pieces); err != nil || pieces > 0 {
				t.Errorf("%s broke: %d rows of bytes are left, %v", name, pieces, err)
			}
		}
	}
	if err := to.Fill(t.Context(),
		func(give func(*store.Item) error) error { return from.Items(t.Context(), give) }); err != nil {
		t.Fatalf("again: %v", err)
	}
	same(t, "the copy", content(t, to.Items), want)
}

// late lets the pins expire, as if their replica had been cut off for that long.
func (s *Store) late(t *testing.T) {
	t.Helper()
	if _, err := s.pool.Exec(t.Context(),
		"UPDATE pins SET expires_at = clock_timestamp() - interval '1 second'"); err != nil {
		t.Fatal(err)
	}
}

// bytesLeft counts the rows of file contents.
func (s *Store) bytesLeft(t *testing.T) (n int) {
	t.Helper()
	if err := s.pool.QueryRow(t.Context(),
		"SELECT (SELECT count(*) FROM blobs) + (SELECT count(*) FROM pieces) + (SELECT count(*) FROM pins)").Scan(
		&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Bytes are kept as long as their pin is renewed: a draft becomes a file, and a reader of a deleted file reads on,
// although other replicas sweep. The next sweep of any replica removes the bytes of a replica that ended.
func TestHoldsOnBytes(t *testing.T) {
	t.Parallel()
	a, b := pair(t)
	long := strings.Repeat("x", pieceBytes+1)
	draft := func(n *Namespace, id string) store.NewFile {
		t.Helper()
		f, err := storetest.NewFile(n, agent.File{ID: id}, long)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	sweep := func() {
		t.Helper()
		if err := b.store.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	kept := draft(a, "file_kept")
	a.store.late(t)
	a.store.renewPins(t.Context())
	sweep()
	if err := a.AddFile(t.Context(), kept); err != nil {
		t.Errorf("a draft whose hold was renewed: %v", err)
	}
	r, err := a.OpenFile(t.Context(), "file_kept")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.DeleteFile(t.Context(), "file_kept", nil); err != nil {
		t.Fatal(err)
	}
	a.store.late(t)
	a.store.renewPins(t.Context())
	sweep()
	if got, err := io.ReadAll(io.NewSectionReader(r, 0, pieceBytes+1)); err != nil || string(got) != long {
		t.Errorf("a reader whose hold was renewed: %d bytes, %v", len(got), err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if n := b.store.bytesLeft(t); n != 0 {
		t.Errorf("%d rows of bytes are left behind the last reader", n)
	}

	lost := draft(a, "file_lost")
	a.store.late(t)
	sweep()
	if err := a.AddFile(t.Context(), lost); !errors.Is(err, store.ErrGone) {
		t.Errorf("a draft whose bytes were swept: got %v, want ErrGone", err)
	}
	if _, err := a.File(t.Context(), "file_lost"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("it became a file: %v", err)
	}
	if err := a.AddFile(t.Context(), draft(a, "file_read")); err != nil {
		t.Fatal(err)
	}
	if r, err = a.OpenFile(t.Context(), "file_read"); err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := b.DeleteFile(t.Context(), "file_read", nil); err != nil {
		t.Fatal(err)
	}
	a.store.late(t)
	sweep()
	if _, err := r.ReadAt(make([]byte, 1), 0); !errors.Is(err, store.ErrGone) {
		t.Errorf("a reader whose bytes were swept: got %v, want ErrGone", err)
	}
	if n := b.store.bytesLeft(t); n != 0 {
		t.Errorf("%d rows of bytes are left", n)
	}
	if r, err := b.store.Verify(context.Background()); err != nil || len(r.Problems) > 0 {
		t.Errorf("verify: %v, %v", r.Problems, err)
	}
}

// pair are the default namespaces of two replicas of one database.
func pair(t *testing.T) (a, b *Namespace) {
	t.Helper()
	_, spaces := opened(t, pgtest.NewDatabase(t), 2)
	return spaces[0], spaces[1]
}
