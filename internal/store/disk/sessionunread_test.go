package disk

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs/vfstest"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// TestUnreadSessions kills a store whose sessions have files, damaged files or none, and does something with them
// before anything else has looked for their files. The result is the same as in a store that was not killed, also after
// a power cut.
func TestUnreadSessions(t *testing.T) {
	t.Parallel()
	const written, damaged, bare = "sess_1", "sess_2", "sess_3" // bare exists in the journal only
	all := []string{written, damaged, bare}
	each := func(do func(s *testStore, id string) error) func(s *testStore) error {
		return func(s *testStore) error {
			for _, id := range all {
				if err := do(s, id); err != nil {
					return fmt.Errorf("%s: %w", id, err)
				}
			}
			return nil
		}
	}
	for name, do := range map[string]func(s *testStore) error{
		"nothing": func(*testStore) error { return nil },
		"sync":    (*testStore).Sync,
		"list": func(s *testStore) error {
			list, err := s.ListSessions(t.Context(), "", 9)
			if len(list) != len(all) {
				return fmt.Errorf("%d sessions, %w", len(list), err)
			}
			return err
		},
		"call": each(func(s *testStore, id string) error {
			return s.CommitCall(t.Context(), storetest.NewCommit(id, "call_"+id, simStart))
		}),
		"context": each(func(s *testStore, id string) error {
			_, err := s.ChangeContext(t.Context(), id, 0,
				agent.ContextChange{Set: map[string]json.RawMessage{"a": json.RawMessage("2")}}, nil)
			return err
		}),
		"create again": each(func(s *testStore, id string) error {
			if err := s.CreateSession(t.Context(), agent.Session{ID: id, CreatedAt: simStart},
				nil); !errors.Is(err, store.ErrExists) {
				return fmt.Errorf("got %w, want %w", err, store.ErrExists)
			}
			return nil
		}),
		"delete":     each(func(s *testStore, id string) error { return s.DeleteSession(t.Context(), id, nil) }),
		"delete one": func(s *testStore) error { return s.DeleteSession(t.Context(), bare, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, left := unreadStore(t, written, damaged, bare)
			want := didTo(t, s, do)
			s.kill()
			s, err := openStore(t, "sim", simOptions(t, left, func() time.Time { return simStart }))
			if err != nil {
				t.Fatal(err)
			}
			if n := len(s.all()[0].sessions.unread); n != len(all) {
				t.Fatalf("%d sessions were not read, want %d", n, len(all))
			}
			if got := didTo(t, s, do); got != want {
				t.Errorf("after the kill: %s", storetest.Difference(got, want))
			}
			if list, err := s.ListSessions(t.Context(), "", 9); err != nil || s.Stats().Sessions != int64(len(list)) {
				t.Errorf("counts %d of %d sessions, %v", s.Stats().Sessions, len(list), err)
			}
			if err := s.checkpoint(); err != nil {
				t.Fatal(err)
			}
			s.kill()
			if got, _, err := dumpOf(t, left.Crash(len(left.Ops()), vfstest.LoseAll, nil)); err != nil || got != want {
				t.Errorf("after the power cut: %v, %s", err, storetest.Difference(got, want))
			}
		})
	}
}

// unreadStore returns a store with three sessions and its directory after a kill. The first session has a document, the
// second a damaged one, the third none.
func unreadStore(t *testing.T, written, damaged, bare string) (*testStore, *vfstest.FS) {
	t.Helper()
	f := vfstest.New()
	s, err := openStore(t, "sim", simOptions(t, f, func() time.Time { return simStart }))
	if err != nil {
		t.Fatal(err)
	}
	create := func(id string) error {
		return s.CreateSession(t.Context(), agent.Session{ID: id, CreatedAt: simStart},
			map[string]json.RawMessage{"a": json.RawMessage("1")})
	}
	if err := errors.Join(s.checkpoint(), create(written), create(damaged), s.Sync(), create(bare)); err != nil {
		t.Fatal(err)
	}
	left := f.Crash(len(f.Ops()), vfstest.LoseAll, nil)
	for _, id := range []string{written, damaged, bare} {
		if _, err := left.Stat(sessionFile(id)); (err == nil) == (id == bare) {
			t.Fatalf("the document of %s: %v", id, err)
		}
	}
	file, err := left.Open(sessionFile(damaged), false)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(file.Truncate(9), file.Sync(), file.Close()); err != nil {
		t.Fatal(err)
	}
	return s, left
}

// didTo calls do with a store and returns the content of the store afterwards.
func didTo(t *testing.T, s *testStore, do func(s *testStore) error) string {
	t.Helper()
	if err := do(s); err != nil {
		t.Fatal(err)
	}
	return both(t, s)
}

// A checkpoint removes the entries of unread sessions from the journal, so it must write the sessions without files.
func TestCheckpointWritesUnreadSessions(t *testing.T) {
	t.Parallel()
	s, left := unreadStore(t, "sess_1", "sess_2", "sess_3")
	want := both(t, s)
	s.kill()
	s, err := openStore(t, "sim", simOptions(t, left, func() time.Time { return simStart }))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.checkpoint(); err != nil {
		t.Fatal(err)
	}
	s.kill()
	if got, _, err := dumpOf(t, left.Crash(len(left.Ops()), vfstest.LoseAll, nil)); err != nil || got != want {
		t.Errorf("%v, %s", err, storetest.Difference(got, want))
	}
}
