//go:build postgres

package postgres

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// A namespace is exported from a database into its own archive, and imported into a directory and into another database
// that has other namespaces. The copies are equal, and the archive has nothing of other namespaces. Watchers of the
// database are notified.
func TestNamespaceInAndOut(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	o := disk.DefaultOptions()
	o.Now = func() time.Time { return now }
	first, second := empty(t), empty(t)
	full(t, first, now)
	full(t, second, now)
	of := func(s *Store, name agent.Namespace) string {
		return strings.Join(content(t, func(ctx context.Context,
			give func(*store.Item) error) error {
			return s.items(ctx, name, give)
		}), "\n")
	}
	want, others := of(first, "acme"), of(second, agent.DefaultNamespace)
	var alone, whole bytes.Buffer
	if err := errors.Join(first.Export(t.Context(), &alone, "acme"),
		first.Export(t.Context(), &whole, "")); err != nil {
		t.Fatal(err)
	}
	if err := first.Export(t.Context(), io.Discard, "nobody"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("an export of no namespace: %v", err)
	}
	dir := filepath.Join(t.TempDir(), "alone")
	if _, err := disk.Import(t.Context(), dir, bytes.NewReader(alone.Bytes()), o, nil); err != nil {
		t.Fatal(err)
	}
	kept := strings.Join(content(t, func(ctx context.Context, give func(*store.Item) error) error {
		return disk.Items(ctx, dir, o, "", give)
	}), "\n")
	// its existence, and that it spent nothing
	if lines := strings.Split(kept, "\n"); strings.Count(kept, "\ndefault ")+strings.Count(lines[0], "default ") > 2 {
		t.Errorf("the archive of acme holds what is of default: %.2000s", kept)
	}

	add := func(archive []byte, name agent.Namespace) error {
		_, err := second.ImportNamespace(t.Context(), bytes.NewReader(archive), name,
			&agent.AuditEntry{ID: "audit_import", Action: "store.import"})
		return err
	}
	if err := add(alone.Bytes(), "acme"); !errors.Is(err, store.ErrExists) {
		t.Errorf("over one of that name: %v", err)
	}
	if err := add(alone.Bytes(), agent.DefaultNamespace); !errors.Is(err, store.ErrExists) {
		t.Errorf("over the default one: %v", err)
	}
	if err := add(alone.Bytes(), "nobody"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("one that the archive lacks: %v", err)
	}
	for _, archive := range [][]byte{alone.Bytes(), whole.Bytes()} {
		if err := second.EraseNamespace(t.Context(), "acme", nil); err != nil {
			t.Fatal(err)
		}
		heard := make(chan agent.Namespace, 8)
		stop, err := second.Watch("", func(c store.Change) {
			if c.Kind == store.ChangedNamespace {
				heard <- c.Namespace
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := add(archive[:len(archive)/2], "acme"); err == nil {
			t.Error("half an archive was imported")
		}
		if err := add(archive, "acme"); err != nil {
			t.Fatal(err)
		}
		if name := <-heard; name != "acme" {
			t.Errorf("who watches learns of %s", name)
		}
		stop()
		if got := of(second, "acme"); got != want {
			t.Error(storetest.Difference(got, want))
		}
	}
	// the two imports
	if got := of(second, agent.DefaultNamespace); strings.Count(got, "\n")-strings.Count(others, "\n") != 2 {
		t.Error(storetest.Difference(got, others))
	}
	n, err := second.Space("acme")
	if err != nil {
		t.Fatal(err)
	}
	if err := n.CommitCall(t.Context(), storetest.NewCommit("sess_1", "call_after", now)); err != nil {
		t.Errorf("it does not go on: %v", err)
	}
	if r, err := second.Verify(t.Context()); err != nil || len(r.Problems) > 0 {
		t.Errorf("verify: %v, %v", r.Problems, err)
	}
}
