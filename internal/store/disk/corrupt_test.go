package disk

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// Files that are torn, tampered with or of another version are moved aside and counted. The store opens and works.
func TestCorruptFiles(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, c := range []struct {
		file   string
		change func(string) string
		check  func(t *testing.T, s *testStore)
	}{
		{registryFile, truncated, func(t *testing.T, s *testStore) {
			if list, err := s.ListTools(ctx, "", 10); err != nil || len(list) != 0 {
				t.Errorf("got %v, %v, want no tools", list, err)
			}
		}},
		{indexFile, truncated, func(t *testing.T, s *testStore) {
			if states := s.Stats().Artifacts; len(states) == 0 {
				t.Errorf("the index was not made again: %v", states)
			}
		}},
		{policyFile, func(string) string { return `{"schema_version":1,"policy":{"delegation_depth":-1}}` },
			func(t *testing.T, s *testStore) {
				if p, _, err := s.Policy(ctx); err != nil ||
					p.DelegationDepth != agent.DefaultPolicy().DelegationDepth {
					t.Errorf("got %+v, %v, want the default", p, err)
				}
			}},
		{patternsFile, truncated, func(*testing.T, *testStore) {}},
		{contentFile, truncated, func(*testing.T, *testStore) {}},
		{connectionsFile, truncated, func(t *testing.T, s *testStore) {
			if list, err := s.ListConnections(ctx); err != nil || len(list) != 0 {
				t.Errorf("got %v, %v, want no connections", list, err)
			}
		}},
		{checkpointFile, truncated, func(t *testing.T, s *testStore) {
			if list, err := s.ListCalls(ctx, store.CallQuery{Limit: 1000}); err != nil || len(list) != 15 {
				t.Errorf("got %d log entries, %v, want 15", len(list), err)
			}
		}},
		{"tools/calculator/add.json", truncated, noArtifact},
		{"tools/calculator/add.json",
			func(s string) string { return strings.ReplaceAll(s, "package tool", "package evil") }, noArtifact},
		{"tools/calculator/add.json",
			func(s string) string {
				return strings.Replace(s, `"schema_version": 1`, `"schema_version": 9`,
					1)
			}, noArtifact},
		{"sessions/sess_1/session.json", truncated, func(t *testing.T, s *testStore) {
			got, err := s.Session(ctx, "sess_1")
			if err != nil || got.HistorySize != 12 || got.Role != "calculator" {
				t.Errorf("got %+v, %v, want the session as its history has it", got, err)
			}
			if err := s.CommitCall(ctx, storetest.NewCommit("sess_1", "call_new", time.Now())); err != nil {
				t.Error(err)
			}
		}},
		{"sessions/sess_1/history.jsonl",
			func(s string) string {
				return strings.Replace(s, `"seq":3,`, `"seq":"three",`,
					1)
			}, func(t *testing.T, s *testStore) {
				page, err := s.History(ctx, "sess_1", store.HistoryQuery{})
				if err != nil || len(page.Records) != 11 {
					t.Errorf("got %d records, %v, want the eleven that can be read", len(page.Records), err)
				}
				c := storetest.NewCommit("sess_1", "call_new", time.Now())
				if err := s.CommitCall(ctx, c); err != nil || c.Record.Seq != 13 {
					t.Errorf("got seq %d, %v, want 13", c.Record.Seq, err)
				}
			}},
	} {
		t.Run(c.file, func(t *testing.T) {
			dir, _ := filled(t)
			name := filepath.Join(dir, c.file)
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			changed := c.change(string(text))
			if changed == string(text) {
				t.Fatal("the test changes nothing")
			}
			if err := os.WriteFile(name, []byte(changed), 0o600); err != nil {
				t.Fatal(err)
			}
			s := open(t, dir, testOptions(t))
			c.check(t, s)
			if s.Stats().Quarantined == 0 && c.file != "sessions/sess_1/history.jsonl" {
				t.Error("nothing was counted as moved aside")
			}
			aside, _ := filepath.Glob(name + ".corrupt-*")
			if len(aside) != 1 {
				t.Fatalf("got %d files aside", len(aside))
			}
			if kept, err := os.ReadFile(aside[0]); err != nil || string(kept) != changed {
				t.Errorf("the content was not preserved: %v", err)
			}
			if err := s.close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func truncated(s string) string { return s[:len(s)/2] }

func noArtifact(t *testing.T, s *testStore) {
	ctx := context.Background()
	if a, err := s.Artifact(ctx, "calculator", "add"); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("got %v, %v, want ErrNotFound", a, err)
	}
	c := storetest.Forged(storetest.NewCommit("sess_1", "call_new", time.Now()), "package tool // anew")
	if err := s.CommitCall(ctx, c); err != nil {
		t.Fatal(err)
	}
	if a, err := s.Artifact(ctx, "calculator", "add"); err != nil || a.SuccessCount != 1 {
		t.Errorf("forged anew: got %+v, %v", a, err)
	}
}

// Verify finds all problems, and repair fixes those that can be fixed.
func TestVerifyAndRepair(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir, _ := filled(t)
	r, err := Verify(ctx, dir, testOptions(t))
	if err != nil || len(r.Problems) > 0 || r.Records != 12 || r.Artifacts != 2 || r.Tools != 1 {
		t.Fatalf("a sound store: got %+v, %v", r, err)
	}
	for _, c := range []struct {
		file   string
		change func(string) string
	}{
		{registryFile, truncated},
		{indexFile, func(s string) string { return strings.Replace(s, `"sub"`, `"sup"`, 1) }},
		{"tools/calculator/add.json",
			func(s string) string { return strings.Replace(s, `"failure_count": 0`, `"failure_count": 7`, 1) }},
		{"tools/calculator/add.json",
			func(s string) string { return strings.ReplaceAll(s, "package tool", "package evil") }},
		{"sessions/sess_1/session.json",
			func(s string) string { return strings.Replace(s, `"history_size": 12`, `"history_size": 3`, 1) }},
		{"sessions/sess_1/history.jsonl",
			func(s string) string { return strings.Replace(s, `"seq":4,`, `"seq":x,`, 1) }},
		{"calls.jsonl", func(s string) string { return strings.Replace(s, `{"timestamp"`, `{timestamp"`, 1) }},
	} {
		dir, _ := filled(t)
		name := filepath.Join(dir, c.file)
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(c.change(string(text))), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := Verify(ctx, dir, testOptions(t))
		if err != nil || len(r.Problems) == 0 {
			t.Errorf("%s: not found: %+v, %v", c.file, r, err)
			continue
		}
		r, err = Repair(ctx, dir, testOptions(t), nil)
		if err != nil || len(r.Problems) > 0 && !strings.Contains(r.Problems[0], "failure_count") &&
			!strings.Contains(r.Problems[0], "out of order") {
			t.Errorf("%s: not fixed: %v, %v", c.file, r.Problems, err)
		}
	}
	// A lost program text is restored from its artifact.
	names, _ := filepath.Glob(filepath.Join(dir, "programs/*.go"))
	for _, name := range names {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := Repair(ctx, dir, testOptions(t), nil); err != nil || len(r.Problems) > 0 || r.Programs == 0 {
		t.Errorf("got %+v, %v", r, err)
	}
}

// Verify reads the bytes of files and finds changes that keep the size.
func TestVerifyReadsFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, testOptions(t))
	const text = "one, two"
	f, err := storetest.NewFile(s, agent.File{ID: "file_1", SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(text)))},
		text)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.AddFile(t.Context(), f), s.close()); err != nil {
		t.Fatal(err)
	}
	for bytes, want := range map[string]string{text: "",
		"one, six": "files/file_1: does not match its digest", "one": "files/file_1: has 3 bytes, not 8"} {
		if err := os.WriteFile(filepath.Join(dir, "files", "file_1"), []byte(bytes), 0o600); err != nil {
			t.Fatal(err)
		}
		if r, err := Verify(t.Context(), dir, testOptions(t)); err != nil || strings.Join(r.Problems, "; ") != want {
			t.Errorf("of %q: got %q, %v, want %q", bytes, r.Problems, err, want)
		}
	}
}

// After damage to an entry in the middle of the journal, entries that depend on it are not replayed, all others are,
// and the segment is kept.
func TestDamagedJournal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := testOptions(t)
	o.Flush = -1
	s := open(t, dir, o)
	ctx := context.Background()
	for i := range 2 {
		if err := s.CreateSession(ctx, agent.Session{ID: fmt.Sprint("sess_", i)}, nil); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 6 {
		c := storetest.NewCommit(fmt.Sprint("sess_", i%2), fmt.Sprint("call_", i), simStart)
		if err := s.CommitCall(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	name := lastSegment(t, dir)
	s.kill()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(data, []byte(`"call_2"`)) // the second record of sess_0
	data[at+3] ^= 1
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, o)
	if got := storetest.Records(t, s, "sess_0"); len(got) != 1 {
		t.Errorf("sess_0: got %d records, want the one before the damage", len(got))
	}
	if got := storetest.Records(t, s, "sess_1"); len(got) != 3 {
		t.Errorf("sess_1: got %d records, want all three: none of them depends on what is damaged", len(got))
	}
	aside, _ := filepath.Glob(filepath.Join(dir, "journal/*.corrupt-*"))
	if len(aside) != 1 || s.Stats().Quarantined != 1 {
		t.Errorf("got %d segments aside, %d counted", len(aside), s.Stats().Quarantined)
	}
	if err := s.CommitCall(ctx, storetest.NewCommit("sess_0", "call_after", simStart)); err != nil {
		t.Error(err)
	}
}

func lastSegment(t *testing.T, dir string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, journalDir, "*.wal"))
	if err != nil || len(names) == 0 {
		t.Fatalf("got no segment: %v", err)
	}
	return names[len(names)-1]
}
