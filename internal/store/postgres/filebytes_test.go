//go:build postgres

package postgres

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store/postgres/pgtest"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// The sums of file sizes are available without reading the files' table: they can be read while it is locked.
func TestFileBytesReadsNoFiles(t *testing.T) {
	t.Parallel()
	stores, spaces := opened(t, pgtest.NewDatabase(t), 1)
	f, err := storetest.NewFile(spaces[0], agent.File{ID: "file_1", Owner: "ann"}, "12345")
	if err != nil {
		t.Fatal(err)
	}
	if err := spaces[0].AddFile(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	tx, err := stores[0].pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background()) // the end of the lock
	if _, err := tx.Exec(t.Context(), "LOCK TABLE files IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), attemptLimit)
	defer cancel()
	if own, all, err := spaces[0].FileBytes(ctx, "ann", ""); own != 5 || all != 5 || err != nil {
		t.Errorf("got %d of %d, %v, want 5 of 5", own, all, err)
	}
}

// Concurrent additions and deletions in several replicas all count.
func TestFileBytesOfManyAtOnce(t *testing.T) {
	t.Parallel()
	stores, spaces := opened(t, pgtest.NewDatabase(t), 2)
	const writers, each = 8, 5
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			n := spaces[w%2]
			for i := range each {
				id := fmt.Sprintf("file_%d_%d", w, i)
				f, err := storetest.NewFile(n, agent.File{ID: id, Owner: fmt.Sprint("owner", i)},
					strings.Repeat("x", 100))
				if err == nil {
					err = n.AddFile(t.Context(), f)
				}
				if err == nil && i == 0 {
					err = n.DeleteFile(t.Context(), id, nil)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	for i := range each {
		want := int64(100 * writers)
		if i == 0 {
			want = 0
		}
		if own, all, err := spaces[0].FileBytes(t.Context(), fmt.Sprint("owner", i),
			""); own != want || all != 100*writers*(each-1) || err != nil {
			t.Errorf("owner%d: got %d of %d, %v, want %d", i, own, all, err, want)
		}
	}
	if r, err := stores[0].Verify(t.Context()); err != nil || len(r.Problems) > 0 {
		t.Errorf("verify: %v, %v", r.Problems, err)
	}
}

// A migration counts the files from before there were sums.
func TestFileBytesOfBefore(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	db := stdlib.OpenDB(*config)
	defer db.Close()
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		t.Fatal(err)
	}
	p, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithTableName("schema_version"))
	if err != nil {
		t.Fatal(err)
	}
	const before = 4
	if _, err := p.UpTo(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		"INSERT INTO namespaces (name) VALUES ('acme')",
		`INSERT INTO files (ns, id, owner, session, internal, bytes, blob, doc) VALUES (1, 'a', 'ann', '', false, 1, 1, ''), (1, 'b', 'ann', '', false, 2, 2, ''),
			(1, 'c', 'ann', 'sess_1', false, 4, 3, ''), (1, 'd', 'ann', '', true, 8, 4, ''), (2, 'a', 'ann', '', false, 16, 5, '')`,
	} {
		if _, err := db.ExecContext(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	_, spaces := opened(t, url, 1)
	for _, c := range []struct {
		session string
		want    int64
	}{{"", 3}, {"sess_1", 4}} {
		if own, all, err := spaces[0].FileBytes(t.Context(), "ann",
			c.session); own != c.want || all != 31 || err != nil {
			t.Errorf("session %q: got %d of %d, %v, want %d of 31", c.session, own, all, err, c.want)
		}
	}
}
