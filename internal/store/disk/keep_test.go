package disk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs/vfstest"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// fillStore does the script of the crash tests to a store, which is then as a short life leaves it.
func fillStore(t testing.TB, s *testStore) {
	t.Helper()
	for _, step := range script(func() time.Time { return simStart }) {
		if step.files != nil {
			if err := step.files(s.Store); err != nil {
				t.Fatal(err)
			}
		} else if err := step.do(s.ns); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
	}
}

func filled(t testing.TB) (dir, dump string) {
	t.Helper()
	dir = t.TempDir()
	s := open(t, dir, testOptions(t))
	fillStore(t, s)
	dump = storetest.Dump(t, s, simStart)
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	return dir, dump
}

func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		rel, _ := filepath.Rel(dir, name)
		out[rel] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// The paths and shapes that people and tests rely on: after a clean stop everything is there,
// parses, and nothing is left aside.
func TestFilesAfterCleanStop(t *testing.T) {
	dir, _ := filled(t)
	files := tree(t, dir)
	for _, name := range []string{"tools/registry.json", "tools/calculator/add.json", "sessions/sess_1/session.json", "sessions/sess_1/history.jsonl", "calls.jsonl", "policy.json", "audit.jsonl", "patterns.json"} {
		if _, there := files[name]; !there {
			t.Errorf("%s is missing", name)
		}
	}
	for name, text := range files {
		switch {
		case strings.Contains(name, ".tmp"), strings.Contains(name, "corrupt"), strings.HasSuffix(name, ".wal"), strings.HasPrefix(name, vfs.TempDir+"/"):
			t.Errorf("%s was left", name)
		case strings.HasSuffix(name, ".json"):
			doc := map[string]any{}
			if err := json.Unmarshal([]byte(text), &doc); err != nil || doc["schema_version"] != 1.0 {
				t.Errorf("%s: %v, schema_version %v", name, err, doc["schema_version"])
			}
		case strings.HasSuffix(name, ".jsonl"):
			for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
				if !json.Valid([]byte(line)) {
					t.Errorf("%s: %s", name, line)
				}
			}
		}
	}
	var a map[string]any
	if err := json.Unmarshal([]byte(files["tools/calculator/add.json"]), &a); err != nil {
		t.Fatal(err)
	}
	code, _ := a["code"].(string)
	if a["code_checksum"] != agent.Checksum(code) || !strings.Contains(files["programs/"+strings.TrimPrefix(agent.Checksum(code), "sha256:")+".go"], code) {
		t.Errorf("code, its checksum and programs/ disagree: %v", a["code_checksum"])
	}
	if got := strings.Count(files["sessions/sess_1/history.jsonl"], "\n"); got != 12 {
		t.Errorf("got %d lines of history, want 12", got)
	}
}

// A deleted session's arguments and values are in no file, of whatever kind.
func TestDeletedSessionIsInNoFile(t *testing.T) {
	dir, _ := filled(t)
	check := func(when string) {
		for name, text := range tree(t, dir) {
			for _, marker := range []string{"sess_2 argument", "sess_2 keyword", "sess_2 value", "sess_2 effect"} {
				if strings.Contains(text, marker) {
					t.Errorf("%s: %q is in %s", when, marker, name)
				}
			}
		}
	}
	check("after a stop")
	// And at once, in a running daemon, with an archived artifact and a file set aside that know the session.
	o := testOptions(t)
	o.Flush = -1
	s := open(t, dir, o)
	ctx := context.Background()
	if err := s.CreateSession(ctx, agent.Session{ID: "sess_2", Role: "calculator", CreatedAt: time.Now()}, nil); err != nil {
		t.Fatal(err)
	}
	for i, method := range []string{"kept", "archived"} {
		c := storetest.Forged(storetest.NewCommit("sess_2", fmt.Sprint("call_x", i), time.Now()), "package tool")
		c.Record.MethodName, c.Log.Method, c.Artifacts[0].MethodName = method, method, method
		c.Artifacts[0].Fixture = &agent.Fixture{CallID: c.Record.CallID, SessionID: "sess_2", Args: c.Record.Args, Kwargs: c.Record.Kwargs, Value: c.Outcome.Value, Effects: c.Effects}
		c.Key, c.Reply = &store.Idempotent{Key: fmt.Sprint("key", i)}, json.RawMessage(`"sess_2 value"`)
		c.Content = &store.Content{Ref: "content:x", Value: c.Outcome.Value}
		if err := s.CommitCall(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Archive(ctx, []store.Target{{Role: "calculator", Method: "archived"}}, agent.AuditEntry{ID: "audit_x"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "tools/calculator/kept.json.corrupt-1"), []byte(`{"session_id":"sess_2","value":"sess_2 value"`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteSession(ctx, "sess_2"); err != nil {
		t.Fatal(err)
	}
	check("at once")
	if err := s.Restore(ctx, []store.Target{{Role: "calculator", Method: "archived"}}, agent.AuditEntry{ID: "audit_y"}); err != nil {
		t.Errorf("the archived artifact cannot come back: %v", err)
	}
}

// What comes back from the archive is what went there, byte for byte.
func TestRestoreBringsBackTheBytes(t *testing.T) {
	dir, _ := filled(t)
	name := filepath.Join(dir, "tools/calculator/add.json")
	before, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	before = append(before, "\n\n"...) // as an editor may leave it
	if err := os.WriteFile(name, before, 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir, testOptions(t))
	ctx := context.Background()
	target := []store.Target{{Role: "calculator", Method: "add"}}
	if err := s.Archive(ctx, target, agent.AuditEntry{ID: "a"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("archived and still there: %v", err)
	}
	if err := s.Restore(ctx, target, agent.AuditEntry{ID: "b"}); err != nil {
		t.Fatal(err)
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	if after, err := os.ReadFile(name); err != nil || !bytes.Equal(before, after) {
		t.Errorf("got other bytes: %v\n%s\n%s", err, before, after)
	}
}

// Each file that is torn, tampered with or of another version is set aside and
// counted; the store opens and works.
func TestCorruptFiles(t *testing.T) {
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
		{policyFile, func(string) string { return `{"schema_version":1,"policy":{"delegation_depth":-1}}` }, func(t *testing.T, s *testStore) {
			if p, err := s.Policy(ctx); err != nil || p.DelegationDepth != agent.DefaultPolicy().DelegationDepth {
				t.Errorf("got %+v, %v, want the default", p, err)
			}
		}},
		{patternsFile, truncated, func(*testing.T, *testStore) {}},
		{contentFile, truncated, func(*testing.T, *testStore) {}},
		{checkpointFile, truncated, func(t *testing.T, s *testStore) {
			if list, err := s.ListCalls(ctx, store.CallQuery{Limit: 1000}); err != nil || len(list) != 15 {
				t.Errorf("got %d log entries, %v, want 15", len(list), err)
			}
		}},
		{"tools/calculator/add.json", truncated, noArtifact},
		{"tools/calculator/add.json", func(s string) string { return strings.ReplaceAll(s, "package tool", "package evil") }, noArtifact},
		{"tools/calculator/add.json", func(s string) string { return strings.Replace(s, `"schema_version": 1`, `"schema_version": 9`, 1) }, noArtifact},
		{"sessions/sess_1/session.json", truncated, func(t *testing.T, s *testStore) {
			got, err := s.Session(ctx, "sess_1")
			if err != nil || got.HistorySize != 12 || got.Role != "calculator" {
				t.Errorf("got %+v, %v, want the session as its history tells it", got, err)
			}
			if err := s.CommitCall(ctx, storetest.NewCommit("sess_1", "call_new", time.Now())); err != nil {
				t.Error(err)
			}
		}},
		{"sessions/sess_1/history.jsonl", func(s string) string { return strings.Replace(s, `"seq":3,`, `"seq":"three",`, 1) }, func(t *testing.T, s *testStore) {
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
				t.Error("nothing was counted as set aside")
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

// Newer forms are refused with a clear line; older ones are migrated, with a backup.
func TestSchemaVersions(t *testing.T) {
	for _, file := range []string{registryFile, policyFile, patternsFile, contentFile, indexFile, checkpointFile} {
		dir, _ := filled(t)
		name := filepath.Join(dir, file)
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		newer := strings.Replace(string(text), `"schema_version": 1`, `"schema_version": 9`, 1)
		if err := os.WriteFile(name, []byte(newer), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err = Open(dir, testOptions(t))
		if err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "schema version 9") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v", file, err)
		}
		if kept, err := os.ReadFile(name); err != nil || string(kept) != newer {
			t.Errorf("%s was changed", file)
		}
	}
}

func TestMigrateFromTheSeed(t *testing.T) {
	dir := t.TempDir()
	code := "package tool // old"
	old := map[string]string{
		"tools/registry.json": `{"tools":{"web_fetcher":{"role":"web_fetcher","purpose":"fetch","usage_count":12,"created_at":"2026-02-15T00:00:00Z","last_used_at":"2026-02-15T00:00:00Z"}}}`,
		"tools/web_fetcher/fetch.json": fmt.Sprintf(`{"schema_version":0,"role":"web_fetcher","method_name":"fetch","contract_fingerprint":"none","prompt_version":"p","runtime_version":"r","model":"m",
			"code_checksum":%q,"code":%q,"dependencies":[],"success_count":34,"failure_count":3,"intrinsic_failure_count":1,"adaptive_failure_count":0,"extrinsic_failure_count":2,
			"created_at":"2026-02-15T00:00:00Z","last_used_at":"2026-02-15T00:00:00Z","last_repaired_at":null,"history":[{"id":"gen-3","parent_id":"gen-2","trigger":"repair:parse_error","created_at":"2026-02-15T00:00:00Z"}]}`, agent.Checksum(code), code),
	}
	for name, text := range old {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, dir, testOptions(t))
	ctx := context.Background()
	a, err := s.Artifact(ctx, "web_fetcher", "fetch")
	if err != nil || a.Current() == nil || a.Current().Code != code || a.SuccessCount != 34 || a.NextGenerationID() != "gen-4" {
		t.Errorf("got %+v, %v", a, err)
	}
	tool, err := s.Tool(ctx, "web_fetcher")
	if err != nil || tool.UsageCount != 12 {
		t.Errorf("got %+v, %v", tool, err)
	}
	kept := 0
	for name, text := range tree(t, filepath.Join(dir, backupDir)) {
		for original, was := range old {
			if strings.HasPrefix(name, strings.ReplaceAll(original, "/", "__")) && text == was {
				kept++
			}
		}
	}
	if kept != len(old) {
		t.Errorf("got %d backups of %d files", kept, len(old))
	}
}

// One process holds the directory; the second is told so in one line.
func TestSecondOpenIsRefused(t *testing.T) {
	dir := t.TempDir()
	open(t, dir, testOptions(t))
	_, err := Open(dir, testOptions(t))
	if !errors.Is(err, store.ErrInUse) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
		t.Errorf("got %v", err)
	}
}

// fullFS is a directory on a disk that is full when it is told so.
type fullFS struct {
	vfs.FS
	mu   sync.Mutex
	free uint64
}

func (f *fullFS) Free() (uint64, uint64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.free, 1 << 40, nil
}

func (f *fullFS) set(free uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.free = free
}

// On a full disk commits are refused before anything is done, reads go on, and the flusher takes commits again by itself.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		disk := &fullFS{FS: vfstest.New(), free: 1 << 40}
		o := testOptions(t)
		o.FS = disk
		s := open(t, "full", o)
		ctx := t.Context()
		if err := s.CreateSession(ctx, agent.Session{ID: "sess_1"}, nil); err != nil {
			t.Fatal(err)
		}
		if err := s.CommitCall(ctx, storetest.NewCommit("sess_1", "call_1", simStart)); err != nil {
			t.Fatal(err)
		}
		nextRound := func() { // in the clock of synctest
			time.Sleep(o.Flush)
			synctest.Wait()
		}
		disk.set(1000)
		nextRound()
		if err := s.CommitCall(ctx, storetest.NewCommit("sess_1", "call_2", simStart)); !errors.Is(err, store.ErrReadOnly) || !strings.Contains(err.Error(), "disk is full") {
			t.Errorf("got %v, want ErrReadOnly that says why", err)
		}
		if got := storetest.Records(t, s, "sess_1"); len(got) != 1 {
			t.Errorf("got %d records while the disk is full", len(got))
		}
		disk.set(1 << 40)
		nextRound()
		c := storetest.NewCommit("sess_1", "call_3", simStart)
		if err := s.CommitCall(ctx, c); err != nil || c.Record.Seq != 2 {
			t.Errorf("got seq %d, %v, want 2", c.Record.Seq, err)
		}
	})
}

// An export taken while calls go on is, imported, a store that keeps every promise, with at least what was
// acknowledged before it began.
func TestExportImport(t *testing.T) {
	dir, _ := filled(t)
	o := testOptions(t)
	o.LogSegment = 4 << 10
	s := open(t, dir, o)
	ctx := context.Background()
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for w := range 3 {
		wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				c := storetest.NewCommit("sess_1", fmt.Sprintf("call_during_%d_%d", w, n), simStart)
				c.Artifacts = []agent.ArtifactChange{{Role: "calculator", MethodName: "add", At: simStart, Result: agent.ClassOK}}
				if err := s.CommitCall(ctx, c); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	var archive bytes.Buffer
	for range 3 { // the files follow meanwhile
		archive.Reset()
		if err := s.Export(ctx, &archive); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	wg.Wait()
	into := filepath.Join(t.TempDir(), "new")
	if err := Import(ctx, into, bytes.NewReader(archive.Bytes()), testOptions(t)); err != nil {
		t.Fatal(err)
	}
	r, err := Verify(ctx, into, testOptions(t))
	if err != nil || len(r.Problems) > 0 || r.Journal > 0 {
		t.Fatalf("got %+v, %v", r, err)
	}
	copied := open(t, into, testOptions(t))
	a, err := copied.Artifact(ctx, "calculator", "add")
	if err != nil {
		t.Fatal(err)
	}
	before := int64(0)
	for _, rec := range storetest.Records(t, copied, "sess_1") {
		if strings.HasPrefix(rec.CallID, "call_during") {
			before++
		}
	}
	list, err := copied.ListCalls(ctx, store.CallQuery{Limit: 1 << 20, SessionID: "sess_1"})
	if err != nil || int64(len(list)) != before+12 {
		t.Errorf("got %d log entries, %v, want %d", len(list), err, before+12)
	}
	original, err := s.Artifact(ctx, "calculator", "add")
	if err != nil || a.SuccessCount > original.SuccessCount || a.SuccessCount < 1 {
		t.Errorf("got %d successes of %d, %v", a.SuccessCount, original.SuccessCount, err)
	}
	if err := Import(ctx, into, bytes.NewReader(archive.Bytes()), testOptions(t)); !errors.Is(err, store.ErrExists) {
		t.Errorf("into a directory in use: got %v, want ErrExists", err)
	}
	whole := archive.Bytes()
	for name, bad := range map[string][]byte{"cut off": whole[:len(whole)/2], "no archive": []byte("hello"), "empty": nil} {
		into := filepath.Join(t.TempDir(), "bad")
		if err := Import(ctx, into, bytes.NewReader(bad), testOptions(t)); err == nil {
			t.Errorf("%s: imported without an error", name)
		}
		if left := tree(t, into); len(left) > 0 {
			t.Errorf("%s: left %d files", name, len(left))
		}
	}
}

func TestExportOfAStoppedStoreIsTheStore(t *testing.T) {
	dir, dump := filled(t)
	s := open(t, dir, testOptions(t))
	ctx := context.Background()
	var archive bytes.Buffer
	if err := s.Export(ctx, &archive); err != nil {
		t.Fatal(err)
	}
	into := filepath.Join(t.TempDir(), "new")
	if err := Import(ctx, into, &archive, testOptions(t)); err != nil {
		t.Fatal(err)
	}
	if got := storetest.Dump(t, open(t, into, testOptions(t)), simStart); got != dump {
		t.Error(storetest.Difference(got, dump))
	}
}

// Verify finds what is wrong, repair mends what can be mended.
func TestVerifyAndRepair(t *testing.T) {
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
		{"tools/calculator/add.json", func(s string) string { return strings.Replace(s, `"failure_count": 0`, `"failure_count": 7`, 1) }},
		{"tools/calculator/add.json", func(s string) string { return strings.ReplaceAll(s, "package tool", "package evil") }},
		{"sessions/sess_1/session.json", func(s string) string { return strings.Replace(s, `"history_size": 12`, `"history_size": 3`, 1) }},
		{"sessions/sess_1/history.jsonl", func(s string) string { return strings.Replace(s, `"seq":4,`, `"seq":x,`, 1) }},
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
		r, err = Repair(ctx, dir, testOptions(t))
		if err != nil || len(r.Problems) > 0 && !strings.Contains(r.Problems[0], "failure_count") && !strings.Contains(r.Problems[0], "out of order") {
			t.Errorf("%s: not mended: %v, %v", c.file, r.Problems, err)
		}
	}
	// A program text that is gone comes back from its artifact.
	names, _ := filepath.Glob(filepath.Join(dir, "programs/*.go"))
	for _, name := range names {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := Repair(ctx, dir, testOptions(t)); err != nil || len(r.Problems) > 0 || r.Programs == 0 {
		t.Errorf("got %+v, %v", r, err)
	}
}

// A damaged journal entry in the middle: what depends on it is not replayed, the rest is, and the segment is kept.
func TestDamagedJournal(t *testing.T) {
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

// renameFS calls a function once, before a file gets its name.
type renameFS struct {
	vfs.FS
	to     string
	called atomic.Bool
	do     func()
}

func (f *renameFS) Rename(from, to string) error {
	if to == f.to && f.called.CompareAndSwap(false, true) {
		f.do()
	}
	return f.FS.Rename(from, to)
}

// A tool that is archived while the files are being written is in one of them when the daemon is killed then: in the
// registry, or in the archive.
func TestArchiveWhileFilesAreWritten(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	fs := &renameFS{FS: vfstest.New(), to: sessionFile("sess_1")}
	o := simOptions(t, nil, func() time.Time { return simStart })
	o.FS = fs
	s := open(t, "sim", o)
	target := []store.Target{{Role: "calculator"}}
	fs.do = func() {
		done := make(chan error)
		go func() { done <- s.Archive(ctx, target, agent.AuditEntry{ID: "audit_1"}) }()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if err := s.CreateSession(ctx, agent.Session{ID: "sess_1"}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.PutTool(ctx, agent.Tool{Role: "calculator", Contract: agent.Contract{Purpose: "sums"}}, 0, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Sync(); err != nil || !fs.called.Load() {
		t.Fatalf("got %v, called %v", err, fs.called.Load())
	}
	s.kill()
	s = open(t, "sim", o)
	if err := s.Restore(ctx, target, agent.AuditEntry{ID: "audit_2"}); err != nil {
		t.Fatal(err)
	}
	if tool, err := s.Tool(ctx, "calculator"); err != nil || tool.Purpose != "sums" {
		t.Errorf("got %+v, %v, want the tool", tool, err)
	}
}
