package disk

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// changeFile changes a file of a stopped store.
func changeFile(t *testing.T, dir, name string, change func(string) string) {
	t.Helper()
	path := filepath.Join(dir, name)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := change(string(text))
	if changed == string(text) {
		t.Fatal("the test changes nothing")
	}
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A damaged line is found only when it is read. It hides no other line, is reported, and a repair moves it aside.
func TestDamagedHistoryLine(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, damage := range map[string]func(line string) string{
		"one byte":  func(line string) string { return strings.Replace(line, `"seq":4,`, `"seq":4;`, 1) },
		"all of it": func(line string) string { return strings.Repeat("x", len(line)) },
		"zeros":     func(line string) string { return strings.Repeat("\x00", len(line)) },
	} {
		t.Run(name, func(t *testing.T) {
			dir, _ := filled(t)
			changeFile(t, dir, "sessions/sess_1/history.jsonl", func(text string) string {
				lines := strings.Split(text, "\n")
				lines[3] = damage(lines[3])
				return strings.Join(lines, "\n")
			})
			s := open(t, dir, testOptions(t))
			whole := []int{1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12}
			for _, q := range []store.HistoryQuery{{Limit: 100}, {Limit: 100, Since: simStart.Add(-time.Hour)},
				{Limit: 100, Scan: 100}} {
				for limit := range 13 {
					for _, desc := range []bool{false, true} {
						q.Limit, q.Desc, q.After = limit+1, desc, 0
						var seqs []int
						for pages := 0; pages < 20; pages++ {
							p, err := s.History(ctx, "sess_1", q)
							if err != nil {
								t.Fatal(err)
							}
							for _, r := range p.Records {
								if !json.Valid(r) {
									t.Fatalf("%q was read", r)
								}
								seqs = append(seqs, seqOf(r))
							}
							if q.After = p.Next; p.Next == 0 {
								break
							}
						}
						if desc {
							slices.Reverse(seqs)
						}
						if !slices.Equal(seqs, whole) {
							t.Fatalf("%+v: got %v, want %v", q, seqs, whole)
						}
					}
				}
			}
			if n := s.Stats().Quarantined; n != 1 {
				t.Errorf("counted %d times, want once", n)
			}
			if err := s.close(); err != nil {
				t.Fatal(err)
			}
			if _, err := Repair(ctx, dir, testOptions(t), nil); err != nil {
				t.Fatal(err)
			}
			if aside, _ := filepath.Glob(filepath.Join(dir,
				"sessions/sess_1/history.jsonl.corrupt-*")); len(aside) != 1 {
				t.Errorf("got %d files aside after a repair", len(aside))
			}
			s = open(t, dir, testOptions(t))
			if p, err := s.History(ctx, "sess_1",
				store.HistoryQuery{Limit: 100}); err != nil || len(p.Records) != len(whole) ||
				s.Stats().Quarantined != 0 {
				t.Errorf("after a repair: %d records, %v", len(p.Records), err)
			}
		})
	}
}

// After a torn end, new data begins on a new line, and the torn end is reported.
func TestTornLogs(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for file, change := range map[string]func(string) string{
		"calls.jsonl":           func(s string) string { return s[:len(s)-20] },
		"values/00000001.jsonl": func(s string) string { return strings.Repeat("\x00", len(s)) },
		auditFile:               func(s string) string { return s[:len(s)-20] },
	} {
		t.Run(file, func(t *testing.T) {
			dir, _ := filled(t)
			changeFile(t, dir, file, change)
			s := open(t, dir, testOptions(t))
			if cut := !strings.HasPrefix(file, "values"); cut && s.Stats().Quarantined != 1 {
				t.Errorf("counted %d times, want once", s.Stats().Quarantined)
			}
			if err := s.CommitCall(ctx, storetest.NewCommit("sess_1", "call_new", time.Now())); err != nil {
				t.Fatal(err)
			}
			p, _, err := s.Policy(ctx)
			if err != nil {
				t.Fatal(err)
			}
			entry := agent.AuditEntry{ID: "aud_new", Timestamp: agent.FormatTime(time.Now()), Actor: "local",
				Action: "policy.change"}
			if err := s.SetPolicy(ctx, p, store.AnyRevision, &entry); err != nil {
				t.Fatal(err)
			}
			if err := s.close(); err != nil {
				t.Fatal(err)
			}
			s = open(t, dir, testOptions(t))
			if list, err := s.ListCalls(ctx,
				store.CallQuery{Limit: 1}); err != nil || len(list) != 1 || list[0].CallID != "call_new" {
				t.Errorf("the newest call: %+v, %v", list, err)
			}
			if got, err := s.Call(ctx, "call_new"); err != nil || got.Outcome == nil {
				t.Errorf("the new call: %+v, %v", got, err)
			}
			if list, err := s.Audit(ctx,
				store.AuditQuery{Limit: 1}); err != nil || len(list) != 1 || list[0].ID != "aud_new" {
				t.Errorf("the newest operation: %+v, %v", list, err)
			}
			if err := s.close(); err != nil {
				t.Fatal(err)
			}
			r, err := Repair(ctx, dir, testOptions(t), nil)
			if file == auditFile { // a repair must not hide that an entry is missing
				if err != nil || len(r.Problems) != 1 || !strings.Contains(r.Problems[0],
					"1 entries are missing before entry") {
					t.Errorf("got %v, %v, want that one audit entry is missing", r.Problems, err)
				}
			} else if err != nil || len(r.Problems) > 0 {
				t.Errorf("not fixed: %v, %v", r.Problems, err)
			}
			if aside, _ := filepath.Glob(filepath.Join(dir, file+".corrupt-*")); len(aside) != 1 {
				t.Errorf("got %d files aside after a repair", len(aside))
			}
		})
	}
}

// A directory in place of a document is moved aside, too.
func TestDirectoryInTheWay(t *testing.T) {
	t.Parallel()
	for _, file := range []string{policyFile, contentFile, "sessions/sess_1/session.json",
		"tools/calculator/add.json"} {
		dir, _ := filled(t)
		name := filepath.Join(dir, file)
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(name, 0o700); err != nil {
			t.Fatal(err)
		}
		s := open(t, dir, testOptions(t))
		if _, err := s.Session(context.Background(), "sess_1"); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if err := s.CommitCall(context.Background(), storetest.NewCommit("sess_1", "call_new",
			time.Now())); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if err := s.close(); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// A directory among the bytes of files belongs to no file. It is removed with its content, like other such bytes, and
// keeps no later file from being written.
func TestDirectoryAmongFiles(t *testing.T) {
	t.Parallel()
	dir, _ := filled(t)
	stray := filepath.Join(dir, filesDir, "stray")
	if err := errors.Join(os.MkdirAll(stray, 0o700),
		os.WriteFile(filepath.Join(stray, "file"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir, testOptions(t))
	if err := s.Sync(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(stray); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is left: %v", err)
	}
}

// noSpaceFS is a directory on a disk that takes no new files while it is full.
type noSpaceFS struct{ *fullFS }

func (f noSpaceFS) Open(name string, create bool) (vfs.File, error) {
	if free, _, _ := f.Free(); create && free == 0 {
		return nil, &os.PathError{Op: "open", Path: name, Err: syscall.ENOSPC}
	}
	return f.fullFS.Open(name, create)
}

// A store on a full disk opens: reads work, commits are refused, and it recovers by itself.
func TestOpenOnAFullDisk(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, stop := range map[string]func(s *testStore) error{"stopped": (*testStore).close,
		"killed": func(s *testStore) error { s.kill(); return nil }} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir, testOptions(t))
			if err := s.CreateSession(ctx, agent.Session{ID: "sess_1"}, nil); err != nil {
				t.Fatal(err)
			}
			if err := s.CommitCall(ctx, storetest.NewCommit("sess_1", "call_1", time.Now())); err != nil {
				t.Fatal(err)
			}
			if err := stop(s); err != nil {
				t.Fatal(err)
			}
			inner, err := vfs.Dir(dir)
			if err != nil {
				t.Fatal(err)
			}
			full := &fullFS{FS: inner}
			o := testOptions(t)
			o.FS, o.Flush = noSpaceFS{full}, -1 // the test triggers the rounds
			s = open(t, dir, o)
			if got := storetest.Records(t, s, "sess_1"); len(got) != 1 {
				t.Errorf("got %d records", len(got))
			}
			if err := s.CommitCall(ctx, storetest.NewCommit("sess_1", "call_2",
				time.Now())); !errors.Is(err, store.ErrReadOnly) {
				t.Errorf("got %v, want ErrReadOnly", err)
			}
			full.set(1 << 40)
			s.flusher.round(false)
			c := storetest.NewCommit("sess_1", "call_3", time.Now())
			if err := s.CommitCall(ctx, c); err != nil || c.Record.Seq != 2 {
				t.Errorf("got seq %d, %v, want 2", c.Record.Seq, err)
			}
			if err := s.close(); err != nil {
				t.Fatal(err)
			}
			if r, err := Verify(ctx, dir, testOptions(t)); err != nil || len(r.Problems) > 0 || r.Records != 2 {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
}
