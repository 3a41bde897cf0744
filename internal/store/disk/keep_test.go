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

// fillStore applies the script of the crash tests to a store.
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

// After a clean stop the documented files exist and parse, and nothing was moved aside. People and tests rely on these
// paths and schemas.
func TestFilesAfterCleanStop(t *testing.T) {
	t.Parallel()
	dir, _ := filled(t)
	files := tree(t, dir)
	for _, name := range []string{"tools/registry.json", "tools/calculator/add.json", "sessions/sess_1/session.json",
		"sessions/sess_1/history.jsonl", "calls.jsonl", "policy.json", "audit.jsonl", "patterns.json"} {
		if _, there := files[name]; !there {
			t.Errorf("%s is missing", name)
		}
	}
	for name, text := range files {
		switch {
		case strings.Contains(name, ".tmp"), strings.Contains(name, "corrupt"), strings.HasSuffix(name, ".wal"),
			strings.HasPrefix(name, vfs.TempDir+"/"):
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
	if a["code_checksum"] != agent.Checksum(code) ||
		!strings.Contains(files["programs/"+strings.TrimPrefix(agent.Checksum(code), "sha256:")+".go"], code) {
		t.Errorf("code, its checksum and programs/ disagree: %v", a["code_checksum"])
	}
	if got := strings.Count(files["sessions/sess_1/history.jsonl"], "\n"); got != 12 {
		t.Errorf("got %d lines of history, want 12", got)
	}
}

// No file of any kind contains a deleted session's arguments and values.
func TestDeletedSessionIsInNoFile(t *testing.T) {
	t.Parallel()
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
	// The same holds at once in a running daemon. An archived artifact and a damaged file that was moved aside contain
	// the session.
	o := testOptions(t)
	o.Flush = -1
	s := open(t, dir, o)
	ctx := context.Background()
	if err := s.CreateSession(ctx, agent.Session{ID: "sess_2", Role: "calculator", CreatedAt: time.Now()},
		nil); err != nil {
		t.Fatal(err)
	}
	for i, method := range []string{"kept", "archived"} {
		c := storetest.Forged(storetest.NewCommit("sess_2", fmt.Sprint("call_x", i), time.Now()), "package tool")
		c.Record.MethodName, c.Log.Method, c.Artifacts[0].MethodName = method, method, method
		c.Artifacts[0].Fixture = &agent.Fixture{CallID: c.Record.CallID, SessionID: "sess_2", Args: c.Record.Args,
			Kwargs: c.Record.Kwargs, Value: c.Outcome.Value, Effects: c.Effects}
		c.Key, c.Reply = &store.Idempotent{Key: fmt.Sprint("key", i)}, json.RawMessage(`"sess_2 value"`)
		c.Content = &store.Content{Ref: "content:x", Value: c.Outcome.Value}
		if err := s.CommitCall(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Archive(ctx, []store.Target{{Role: "calculator", Method: "archived"}},
		agent.AuditEntry{ID: "audit_x"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "tools/calculator/kept.json.corrupt-1"),
		[]byte(`{"session_id":"sess_2","value":"sess_2 value"`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteSession(ctx, "sess_2", nil); err != nil {
		t.Fatal(err)
	}
	check("at once")
	if err := s.Restore(ctx, []store.Target{{Role: "calculator", Method: "archived"}},
		agent.AuditEntry{ID: "audit_y"}); err != nil {
		t.Errorf("the archived artifact cannot come back: %v", err)
	}
}

// Restoring from the archive brings back the same bytes.
func TestRestoreBringsBackTheBytes(t *testing.T) {
	t.Parallel()
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

// Only one process can use the directory. The second one gets an error of one line.
func TestSecondOpenIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open(t, dir, testOptions(t))
	_, err := Open(dir, testOptions(t))
	if !errors.Is(err, store.ErrInUse) || strings.Contains(err.Error(), "\n") ||
		!strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
		t.Errorf("got %v", err)
	}
}

// fullFS is a directory on a disk whose free space is set by a test.
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

// On a full disk commits are refused before anything is written, reads work, and the store accepts commits again by
// itself.
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
		if err := s.CommitCall(ctx, storetest.NewCommit("sess_1", "call_2",
			simStart)); !errors.Is(err, store.ErrReadOnly) || !strings.Contains(err.Error(), "disk is full") {
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

// A tool that is archived while files are written is in the registry or in the archive, but not in neither, if the
// daemon is killed then.
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
	if _, err := s.PutTool(ctx, agent.Tool{Role: "calculator", Contract: agent.Contract{Purpose: "sums"}}, 0,
		nil); err != nil {
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

// A program without references is noted also when another one is removed at the same time. Otherwise it would stay.
func TestProgramsWithoutReferencesAreNoted(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), simStart
	o := testOptions(t)
	o.Now = func() time.Time { return now }
	s := open(t, dir, o)
	place := func(digit string) {
		name := filepath.Join(dir, "programs", strings.Repeat(digit, 64)+".go")
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700),
			os.WriteFile(name, []byte("package tool"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	expire := func(want string) {
		t.Helper()
		if _, err := s.ns.Expire(t.Context(), now); err != nil {
			t.Fatal(err)
		}
		var doc prunedDoc
		if err := json.Unmarshal([]byte(tree(t, dir)[prunedFile]), &doc); err != nil {
			t.Fatal(err)
		}
		if _, noted := doc.Since[strings.Repeat(want, 64)]; !noted || len(doc.Since) != 1 {
			t.Errorf("noted are %v, want %s", doc.Since, want)
		}
	}
	place("a")
	expire("a")
	now = now.Add(24 * time.Hour)
	if err := s.ns.CreateSession(t.Context(), agent.Session{ID: "sess_1", Role: "r", CreatedAt: now, UpdatedAt: now},
		nil); err != nil {
		t.Fatal(err)
	}
	if err := s.ns.CommitCall(t.Context(), storetest.NewCommit("sess_1", "call_1", now)); err != nil {
		t.Fatal(err)
	}
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	place("b")
	expire("b")
}

// Prompts and contexts of sessions with debug are removed from the call log together with the values. The rest of the
// entries stays.
func TestDebugLeavesTheFiles(t *testing.T) {
	dir, now := t.TempDir(), simStart
	o := testOptions(t)
	o.Now = func() time.Time { return now }
	s := open(t, dir, o)
	if err := s.ns.CreateSession(t.Context(), agent.Session{ID: "sess_1", Role: "r", CreatedAt: now, UpdatedAt: now},
		nil); err != nil {
		t.Fatal(err)
	}
	for i, said := range []string{"the milk is gone", "there is bread"} {
		c := storetest.NewCommit("sess_1", fmt.Sprint("call_", i), now)
		c.Log.UserPrompt, c.Log.Context = said, agent.Encoded(map[string]string{"said": said})
		if err := s.ns.CommitCall(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		now = now.Add(20 * time.Hour)
		if err := s.Sync(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.ns.Expire(t.Context(), now); err != nil {
			t.Fatal(err)
		}
	}
	before := tree(t, dir)["calls.jsonl"]
	now = now.Add(-10 * time.Hour)
	for _, want := range []struct {
		after       time.Duration
		milk, bread bool
	}{{0, false, true}, {24 * time.Hour, false, false}} {
		now = now.Add(want.after)
		if _, err := s.ns.Expire(t.Context(), now); err != nil {
			t.Fatal(err)
		}
		text := tree(t, dir)["calls.jsonl"]
		if strings.Contains(text, "milk") != want.milk || strings.Contains(text, "bread") != want.bread ||
			len(text) != len(before) || strings.Count(text, `"call_id":"call_`) != 2 ||
			strings.Count(text, "\n{") != 1 {
			t.Errorf("after %v the call log is\n%s", want.after, text)
		}
		if list, err := s.ns.ListCalls(t.Context(),
			store.CallQuery{}); err != nil || len(list) != 2 || string(list[1].Args[0]) == "" {
			t.Errorf("after %v the calls are %+v, %v", want.after, list, err)
		}
	}
}
