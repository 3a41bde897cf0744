package disk

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs/vfstest"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// erasureScript creates namespaces, fills them and erases them: one while it is in use, and two of the same name in
// succession. All data of the first one contains its mark.
func erasureScript(now func() time.Time) []step {
	w := &scripter{in: agent.DefaultNamespace, now: now}
	whole := func(name string, do func(store.Store, *agent.AuditEntry) error) {
		audit := agent.AuditEntry{ID: "audit_" + strings.ReplaceAll(name, " ", "_"), Action: name}
		w.steps = append(w.steps, step{name: name, whole: func(s store.Store) error { return do(s, &audit) }})
	}
	make := func(name, id string) {
		whole("make "+name+" "+id, func(s store.Store, audit *agent.AuditEntry) error {
			_, err := s.CreateNamespace(context.Background(), agent.Namespace(name), audit)
			return err
		})
	}
	erase := func(name, id string) {
		whole("erase "+name+" "+id, func(s store.Store, audit *agent.AuditEntry) error {
			return s.EraseNamespace(context.Background(), agent.Namespace(name), audit)
		})
	}
	fill := func(mark string) {
		w.create("sess_" + mark)
		w.call("sess_"+mark, "add", "gen-"+mark)
		w.file("file_"+mark, "sess_"+mark)
		w.connect("weather", mark)
		w.move("archive", "add")
		w.call("sess_"+mark, "add", "gen-"+mark)
	}
	fill("kept")
	make(string(other), "1")
	w.in = other
	fill("secret")
	w.checkpoint()
	w.call("sess_secret", "sub", "gen-secret")
	erase(string(other), "1")
	make(string(other), "2")
	fill("second")
	w.in = agent.DefaultNamespace
	w.call("sess_kept", "add", "")
	make("empty", "1")
	w.checkpoint()
	erase("empty", "1")
	w.call("sess_kept", "sub", "gen-kept")
	erase(string(other), "2")
	w.call("sess_kept", "sub", "")
	return w.steps
}

// dumpSpaces is both with the list of namespaces.
func dumpSpaces(t testing.TB, s store.Store) string {
	t.Helper()
	list, err := s.ListNamespaces(context.Background(), "", 10)
	if err != nil {
		t.Fatal(err)
	}
	names := []agent.Namespace{}
	for _, info := range list {
		names = append(names, info.Name)
	}
	return fmt.Sprint(names, both(t, s))
}

// TestCrashErasure cuts the power after every operation of a run that creates and erases namespaces. A namespace exists
// completely or not at all, and after opening the store no file holds data of an erased one.
func TestCrashErasure(t *testing.T) {
	t.Parallel()
	dump := func(t testing.TB, s store.Store) string {
		text := dumpSpaces(t, s)
		if d, ok := s.(*testStore); ok && strings.Contains(text, "audit_erase_acme_1") {
			if name := fileWith(t, d.Store, "secret"); name != "" {
				t.Errorf("%s holds something of an erased namespace", name)
			}
		}
		return text
	}
	play{erasureScript, dump}.cuts(t)
}

// TestErasureFaults makes each operation of such a run fail.
func TestErasureFaults(t *testing.T) {
	t.Parallel()
	probe := vfstest.New()
	p := play{erasureScript, dumpSpaces}
	p.run(t, probe)
	p.faults(t, probe)
}

// fileWith returns the name of a file of the store that contains the text, or "".
func fileWith(t testing.TB, s *Store, text string) string {
	t.Helper()
	var search func(dir string) string
	search = func(dir string) string {
		names, err := s.root.List(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range prefixed(dir, names) {
			info, err := s.root.Stat(name)
			if err != nil {
				t.Fatal(err)
			}
			if info.Dir {
				if found := search(name); found != "" {
					return found
				}
				continue
			}
			data, err := s.root.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(name, text) || bytes.Contains(data, []byte(text)) {
				return name
			}
		}
		return ""
	}
	return search(".")
}

// TestIdleNamespaces opens a store with a namespace that is not used. Its files are not read and its figures count.
// When it is used, it is unchanged, also after a checkpoint and an erasure that did
// not touch it.
func TestIdleNamespaces(t *testing.T) {
	t.Parallel()
	dir, o := t.TempDir(), testOptions(t)
	o.Flush = -1
	s := open(t, dir, o)
	for _, st := range erasureScript(time.Now)[:15] {
		if st.files == nil {
			if err := st.to(t, s); err != nil {
				t.Fatal(st.name, err)
			}
		}
	}
	want, stats := dumpSpaces(t, s), s.Stats()
	for _, kill := range []bool{false, true} {
		if err := s.close(); err != nil {
			t.Fatal(err)
		}
		s = open(t, dir, o)
		if n := len(s.all()); n != 1 {
			t.Errorf("%d namespaces were loaded, want the default one alone", n)
		}
		if got := s.Stats(); fmt.Sprint(got.Sessions, got.Tools, got.Artifacts) != fmt.Sprint(stats.Sessions,
			stats.Tools, stats.Artifacts) {
			t.Errorf("got %+v, want the figures of %+v", got, stats)
		}
		if err := s.CreateSession(t.Context(), agent.Session{ID: fmt.Sprint("sess_", kill)}, nil); err != nil {
			t.Fatal(err)
		}
		if err := s.checkpoint(); err != nil {
			t.Fatal(err)
		}
		if err := s.DeleteSession(t.Context(), fmt.Sprint("sess_", kill), nil); err != nil {
			t.Fatal(err)
		}
		if kill {
			s.kill()
			s = open(t, dir, o)
		}
		if got := dumpSpaces(t, s); got != want {
			t.Errorf("kill %v: %s", kill, storetest.Difference(got, want))
		}
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, o)
	if err := s.EraseNamespace(t.Context(), other, nil); err != nil {
		t.Fatal(err)
	}
	if name := fileWith(t, s.Store, "sess_secret"); name != "" {
		t.Errorf("%s holds something of an idle namespace that was erased", name)
	}
}
