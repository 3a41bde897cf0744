package disk

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// spacesOfExports are filled in the same way, each with a canary text of its own.
var spacesOfExports = []agent.Namespace{agent.DefaultNamespace, "acme", "beta"}

func canary(name agent.Namespace) string { return "canary-of-" + string(name) }

// threeSpaces returns a store whose namespaces hold data of every kind.
func threeSpaces(t *testing.T, dir string) *testStore {
	t.Helper()
	s := open(t, dir, testOptions(t))
	for _, name := range spacesOfExports {
		n, err := s.Store.Namespace(name)
		if err != nil {
			t.Fatal(err)
		}
		fillStore(t, &testStore{s.Store, n})
		f, err := storetest.NewFile(n, agent.File{ID: "file_" + string(name), Owner: "ann", CreatedAt: simStart},
			"bytes of "+canary(name))
		if err == nil {
			err = n.AddFile(t.Context(), f)
		}
		if err == nil {
			err = n.CreateSession(t.Context(), agent.Session{ID: "sess_own", Role: canary(name), CreatedAt: simStart,
				UpdatedAt: simStart}, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		say(t, s, name, "before")
	}
	return s
}

// say commits a call with the canary text in its arguments.
func say(t *testing.T, s *testStore, name agent.Namespace, when string) {
	t.Helper()
	n, err := s.Store.Namespace(name)
	if err != nil {
		t.Fatal(err)
	}
	c := storetest.NewCommit("sess_own", "call_"+when, simStart)
	c.Record.Args = []json.RawMessage{json.RawMessage(fmt.Sprintf("%q", canary(name)+" "+when))}
	c.Log.Args = c.Record.Args
	if err := n.CommitCall(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

// onceWritten calls do at the first byte.
type onceWritten struct {
	bytes.Buffer
	once sync.Once
	do   func()
}

func (w *onceWritten) Write(p []byte) (int, error) {
	w.once.Do(func() {
		done := make(chan struct{})
		go func() { defer close(done); w.do() }() // in a goroutine, because the export holds locks
		<-done
	})
	return w.Buffer.Write(p)
}

// itemsOf renders the items of a namespace of a stopped store.
func itemsOf(t *testing.T, dir string, name agent.Namespace) string {
	t.Helper()
	var out []string
	if err := Items(t.Context(), dir, testOptions(t), name, func(x *store.Item) error {
		text, err := json.Marshal(x)
		if x.File != nil {
			in, err := x.File.Open()
			if err != nil {
				return err
			}
			defer in.Close()
			data, err := io.ReadAll(in)
			out = append(out, string(data))
			if err != nil {
				return err
			}
		}
		out = append(out, string(text))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// inArchive returns the files of an archive.
func inArchive(t *testing.T, archive []byte) map[string][]byte {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if err == io.EOF {
			return out
		}
		if err == nil {
			out[h.Name], err = io.ReadAll(r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// An export of one namespace, taken during calls in all of them, holds the data of that namespace and no byte of
// another. Imported, it is the same.
func TestExportOfANamespace(t *testing.T) {
	t.Parallel()
	for _, name := range spacesOfExports {
		t.Run(string(name), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := threeSpaces(t, dir)
			archive := &onceWritten{do: func() {
				for _, n := range spacesOfExports { // after the checkpoint with which the export begins
					say(t, s, n, "meanwhile")
				}
			}}
			if err := s.Export(t.Context(), archive, name); err != nil {
				t.Fatal(err)
			}
			own := 0
			for file, data := range inArchive(t, archive.Bytes()) {
				for _, other := range spacesOfExports {
					if other != name && (bytes.Contains(data, []byte(canary(other))) ||
						bytes.Contains(data, []byte(`"ns":"`+other+`"`)) ||
						strings.HasPrefix(file, namespacesDir+"/"+string(other)+"/")) {
						t.Errorf("%s holds what is of %s", file, other)
					}
				}
				own += bytes.Count(data, []byte(canary(name)+" meanwhile"))
			}
			if own == 0 {
				t.Error("the call that was committed meanwhile is not in the archive")
			}
			if err := s.close(); err != nil {
				t.Fatal(err)
			}
			into := filepath.Join(t.TempDir(), "new")
			if _, err := Import(t.Context(), into, bytes.NewReader(archive.Bytes()), testOptions(t), nil); err != nil {
				t.Fatal(err)
			}
			if r, err := Verify(t.Context(), into, testOptions(t)); err != nil || len(r.Problems) > 0 {
				t.Errorf("verify: %v %v", r.Problems, err)
			}
			if got, want := itemsOf(t, into, name), itemsOf(t, dir,
				name); got != want || !strings.Contains(got, canary(name)+" meanwhile") {
				t.Error(storetest.Difference(got, want))
			}
			list, err := open(t, into, testOptions(t)).ListNamespaces(t.Context(), "", 10)
			if want := map[bool]int{true: 1,
				false: 2}[name == agent.DefaultNamespace]; err != nil || len(list) != want {
				t.Errorf("the copy has the namespaces %v, %v", list, err)
			}
		})
	}
	s := open(t, t.TempDir(), testOptions(t))
	if err := s.Export(t.Context(), io.Discard, "nobody"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("of no namespace: %v", err)
	}
}

// A namespace from an archive of it alone or of everything is added to a store with other namespaces, which do not
// change. It works there.
func TestImportOfANamespace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := threeSpaces(t, dir)
	archives := map[string]*bytes.Buffer{"alone": {}, "whole": {}}
	for kind, only := range map[string]agent.Namespace{"alone": "acme", "whole": ""} {
		if err := s.Export(t.Context(), archives[kind], only); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	want := itemsOf(t, dir, "acme")
	for kind, archive := range archives {
		into := t.TempDir()
		target := threeSpaces(t, into)
		for i := range 30 { // makes its journal longer than that of the archive
			say(t, target, "beta", fmt.Sprint("more-", i))
		}
		if err := errors.Join(target.EraseNamespace(t.Context(), "acme", nil), target.close()); err != nil {
			t.Fatal(err)
		}
		before := itemsOf(t, into, "beta")
		add := func(name agent.Namespace, data []byte) error {
			_, err := ImportNamespace(t.Context(), into, bytes.NewReader(data), testOptions(t),
				Addition{name, &agent.AuditEntry{ID: "aud_import", Action: "store.import"}})
			return err
		}
		for name, c := range map[string]struct {
			of   agent.Namespace
			data []byte
			want error
		}{"it has one": {"beta", archive.Bytes(), store.ErrExists},
			"the default one":     {agent.DefaultNamespace, archive.Bytes(), store.ErrExists},
			"none in the archive": {"nobody", archive.Bytes(), store.ErrNotFound},
			"damaged":             {"acme", archive.Bytes()[:archive.Len()/2], nil}} {
			if err := add(c.of, c.data); err == nil || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("%s, %s: %v", kind, name, err)
			}
		}
		if err := add("acme", archive.Bytes()); err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		if got := itemsOf(t, into, "acme"); got != want {
			t.Error(kind, storetest.Difference(got, want))
		}
		if got := itemsOf(t, into, "beta"); got != before {
			t.Error(kind, storetest.Difference(got, before))
		}
		if err := add("acme", archive.Bytes()); !errors.Is(err, store.ErrExists) {
			t.Errorf("%s, once more: %v", kind, err)
		}
		importedGoesOn(t, into)
		if r, err := Verify(t.Context(), into, testOptions(t)); err != nil || len(r.Problems) > 0 || len(r.Aside) > 0 {
			t.Errorf("%s: verify: %v %v %v", kind, r.Problems, r.Aside, err)
		}
		for name := range tree(t, into) {
			if strings.Contains(name, erasedSuffix) {
				t.Errorf("%s: %s is left", kind, name)
			}
		}
	}
}

// importedGoesOn commits a call in the imported namespace and checks that the call survives a kill.
func importedGoesOn(t *testing.T, dir string) {
	t.Helper()
	s := open(t, dir, testOptions(t))
	say(t, s, "acme", "after")
	s.kill()
	again := open(t, dir, testOptions(t))
	n, err := again.Store.Namespace("acme")
	if err != nil {
		t.Fatal(err)
	}
	if records := storetest.Records(t, n, "sess_own"); len(records) != 2 || records[1].CallID != "call_after" {
		t.Errorf("after a kill the session has %d records", len(records))
	}
	if err := again.close(); err != nil {
		t.Fatal(err)
	}
}
