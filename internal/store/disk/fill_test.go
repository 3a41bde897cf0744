package disk

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// halfway returns the items of a namespace with sessions. at is called after n of them.
func halfway(t *testing.T, n int, at func() error) func(func(*store.Item) error) error {
	return func(give func(*store.Item) error) error {
		items := []*store.Item{{Namespace: agent.DefaultNamespace,
			Space: &store.NamespaceInfo{Name: agent.DefaultNamespace}}}
		for _, id := range []string{"sess_06gzqwq081srb0e6zx42fm96t4", "sess_06gzqwq081srb0e6zx42fm96t5",
			"sess_06gzqwq081srb0e6zx42fm96t6"} {
			items = append(items, &store.Item{Namespace: agent.DefaultNamespace,
				Session: &store.ItemSession{Session: agent.Session{ID: id, Role: "calculator"}}})
		}
		for i, x := range items {
			if i == n {
				if err := at(); err != nil {
					return err
				}
			}
			if err := give(x); err != nil {
				return err
			}
		}
		return t.Context().Err()
	}
}

// refused checks that everything that opens the directory refuses it.
func refused(t *testing.T, dir string) {
	t.Helper()
	o := testOptions(t)
	if s, err := Open(dir, o); err == nil {
		_ = s.close()
		t.Error("a part of a copy was opened")
	}
	if r, err := Verify(t.Context(), dir, o); err == nil {
		t.Errorf("a part of a copy was verified: %+v", r)
	}
	if err := Items(t.Context(), dir, o, "", func(*store.Item) error { return nil }); err == nil {
		t.Error("a part of a copy was copied")
	}
	if err := Fill(t.Context(), dir, o, halfway(t, -1, nil)); !errors.Is(err, store.ErrExists) {
		t.Errorf("filled beside another: got %v, want ErrExists", err)
	}
}

// A directory that is being filled, or whose filling was interrupted, is refused. A copy that fails leaves nothing and
// can be repeated.
func TestHalfACopyIsRefused(t *testing.T) {
	t.Parallel()
	for n := range 4 {
		dir, crashed := filepath.Join(t.TempDir(), "copy"), filepath.Join(t.TempDir(), "crashed")
		broken := errors.New("broken")
		err := Fill(t.Context(), dir, testOptions(t), halfway(t, n, func() error {
			refused(t, dir)
			if err := os.CopyFS(crashed, os.DirFS(dir)); err != nil { // the state that a kill leaves
				t.Error(err)
			}
			return broken
		}))
		if !errors.Is(err, broken) {
			t.Fatalf("got %v", err)
		}
		refused(t, crashed)
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("after %d items the failed copy has left %v, %v", n, left, err)
		}
		if err := Fill(t.Context(), dir, testOptions(t), halfway(t, -1, nil)); err != nil {
			t.Errorf("again: %v", err)
		}
		if r, err := Verify(t.Context(), dir, testOptions(t)); err != nil || r.Sessions != 3 || len(r.Problems) > 0 {
			t.Errorf("the copy: %+v, %v", r, err)
		}
	}
}

// The same holds for a directory into which an export is being imported.
func TestHalfAnImportIsRefused(t *testing.T) {
	t.Parallel()
	from := t.TempDir()
	if err := os.Remove(from); err != nil {
		t.Fatal(err)
	}
	if err := Fill(t.Context(), from, testOptions(t), halfway(t, -1, nil)); err != nil {
		t.Fatal(err)
	}
	s, err := Open(from, testOptions(t))
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	if err := errors.Join(s.Export(t.Context(), &archive, ""), s.Close(context.Background())); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "import")
	part, rest := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		_, err := Import(context.Background(), dir, part, testOptions(t), nil)
		ended <- err
	}()
	if _, err := rest.Write(archive.Bytes()[:20]); err != nil { // accepted once the import has begun
		t.Fatal(err)
	}
	refused(t, dir)
	if _, err := rest.Write(archive.Bytes()[20:]); err != nil {
		t.Fatal(err)
	}
	_ = rest.Close()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if r, err := Verify(t.Context(), dir, testOptions(t)); err != nil || r.Sessions != 3 || len(r.Problems) > 0 {
		t.Errorf("the import: %+v, %v", r, err)
	}
}
