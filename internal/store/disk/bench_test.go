package disk

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/jsonenc"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
	"github.com/recurgentd/recurgentd/internal/store/disk/wal"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// slowFS is a directory in which a sync of the journal takes a millisecond longer, as on a good disk. It counts what is
// written.
type slowFS struct {
	vfs.FS
	delay   time.Duration
	written atomic.Int64
}

func (f *slowFS) Open(name string, create bool) (vfs.File, error) {
	file, err := f.FS.Open(name, create)
	if err != nil {
		return nil, err
	}
	journal := wal.IsSegment(path.Base(name))
	return &slowFile{file, f, journal}, nil
}

type slowFile struct {
	vfs.File
	fs      *slowFS
	journal bool
}

func (f *slowFile) WriteAt(p []byte, off int64) (int, error) {
	f.fs.written.Add(int64(len(p)))
	return f.File.WriteAt(p, off)
}

func (f *slowFile) Sync() error {
	if f.journal {
		time.Sleep(f.fs.delay)
	}
	return f.File.Sync()
}

func benchStore(b *testing.B, dir string, delay time.Duration) (*testStore, *slowFS) {
	b.Helper()
	inner, err := vfs.Dir(dir)
	if err != nil {
		b.Fatal(err)
	}
	f := &slowFS{FS: inner, delay: delay}
	o := DefaultOptions()
	o.FS = f
	return open(b, dir, o), f
}

// warm returns the commit of a warm call as the runtime makes it: one result of the artifact, one use of the tool.
func warm(session string, n int64, at time.Time) *store.CallCommit {
	c := storetest.NewCommit(session, fmt.Sprintf("call_%026d", n), at)
	c.Effects = nil
	c.Artifacts = []agent.ArtifactChange{{Role: "calculator", MethodName: "add", At: at, Result: agent.ClassOK,
		SessionID: session}}
	c.Tools = []store.ToolChange{{Role: "calculator", At: at, Used: 1}}
	c.Pattern = &agent.PatternEvent{CallID: c.Record.CallID, SessionID: session, Role: "calculator", MethodName: "add",
		Timestamp: c.Record.Timestamp, Capabilities: []string{"strings"}, Status: "ok"}
	c.Content = &store.Content{Ref: fmt.Sprintf("content:%08x", n), Value: c.Outcome.Value}
	return c
}

func prepareWarm(b *testing.B, s *testStore, sessions int) {
	b.Helper()
	ctx := context.Background()
	for i := range sessions {
		if err := s.CreateSession(ctx, agent.Session{ID: fmt.Sprintf("sess_w%03d", i), Role: "calculator",
			CreatedAt: time.Now()}, nil); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := s.PutTool(ctx, agent.Tool{Role: "calculator", Contract: agent.Contract{Purpose: "sums"}},
		store.AnyRevision, nil); err != nil {
		b.Fatal(err)
	}
	if _, err := s.Artifact(ctx, "calculator", "add"); err == nil {
		return
	}
	if err := s.CommitCall(ctx, storetest.Forged(storetest.NewCommit("sess_w000", "call_forged", time.Now()),
		"package tool")); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkCommit reports commits per second, and fsyncs and journal bytes per commit, for 1, 16 and 64 writers when an
// fsync takes a millisecond longer. The goals are at most 1, 0.25 and 0.1 fsyncs.
func BenchmarkCommit(b *testing.B) {
	for _, writers := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("fsync=1ms/writers=%d", writers),
			func(b *testing.B) { benchCommit(b, writers, time.Millisecond) })
	}
	for _, writers := range []int{1, 8} {
		b.Run(fmt.Sprintf("fsync=disk/writers=%d", writers), func(b *testing.B) { benchCommit(b, writers, 0) })
	}
}

// BenchmarkNamespaces reports the memory that a namespace with one session and one call takes after its files were
// written.
func BenchmarkNamespaces(b *testing.B) {
	s, _ := benchStore(b, b.TempDir(), 0)
	live := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, ctx := live(), context.Background()
	for i := range b.N {
		n, err := s.Store.Namespace(agent.Namespace(fmt.Sprintf("n%d", i)))
		if err == nil {
			err = n.CreateSession(ctx, agent.Session{ID: "sess_w000", Role: "calculator", CreatedAt: time.Now()}, nil)
		}
		if err == nil {
			err = n.CommitCall(ctx, storetest.Forged(storetest.NewCommit("sess_w000", "call_forged", time.Now()),
				"package tool"))
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	if err := s.checkpoint(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(live()-before)/float64(b.N), "B/namespace")
}

func benchCommit(b *testing.B, writers int, delay time.Duration) {
	s, f := benchStore(b, b.TempDir(), delay)
	prepareWarm(b, s, writers)
	before := s.Stats()
	written := f.written.Load()
	var n atomic.Int64
	var wg sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	for w := range writers {
		wg.Go(func() {
			session := fmt.Sprintf("sess_w%03d", w)
			for {
				i := n.Add(1)
				if i > int64(b.N) {
					return
				}
				if err := s.CommitCall(context.Background(), warm(session, i, time.Now())); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	after := s.Stats()
	commits := float64(after.Commits - before.Commits)
	b.ReportMetric(commits/b.Elapsed().Seconds(), "commits/s")
	b.ReportMetric(float64(after.Fsyncs-before.Fsyncs)/commits, "fsyncs/commit")
	b.ReportMetric(float64(after.JournalBytes-before.JournalBytes)/commits, "journal-B/commit")
	if err := s.checkpoint(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(f.written.Load()-written)/commits, "all-B/commit")
}

// BenchmarkEncode measures the work of a commit before it waits for the disk.
func BenchmarkEncode(b *testing.B) {
	c := warm("sess_w000", 1, time.Now())
	b.ReportAllocs()
	for b.Loop() {
		w := encoders.Get().(*jsonenc.Writer)
		if _, err := encodeCall(w, agent.DefaultNamespace, c, time.Now()); err != nil {
			b.Fatal(err)
		}
		release(w)
	}
}

// BenchmarkFlat measures a commit, the reads of a warm call and the prompt's known tools, with few and with many
// records, tools and sessions. Ratios near 1 mean that no cost grows.
func BenchmarkFlat(b *testing.B) {
	for _, size := range []struct{ records, tools, sessions int }{{10, 10, 10}, {1_000_000, 10_000, 100_000}} {
		dir := b.TempDir()
		seed(b, dir, size.records, size.tools, size.sessions)
		b.Run(fmt.Sprintf("records=%d/tools=%d/sessions=%d", size.records, size.tools, size.sessions),
			func(b *testing.B) {
				s, _ := benchStore(b, dir, 0)
				ctx := context.Background()
				id := "sess_big"
				b.Run("reads", func(b *testing.B) {
					for b.Loop() {
						readWarm(b, s, id)
					}
				})
				b.Run("commit", func(b *testing.B) {
					var n int64 = time.Now().UnixNano()
					for b.Loop() {
						n++
						if err := s.CommitCall(ctx, warm(id, n, time.Now())); err != nil {
							b.Fatal(err)
						}
					}
				})
				b.Run("rank", func(b *testing.B) {
					for b.Loop() {
						if _, err := s.RankTools(ctx, time.Now(), 12); err != nil {
							b.Fatal(err)
						}
					}
				})
				b.Run("newest-records", func(b *testing.B) {
					for b.Loop() {
						if _, err := s.History(ctx, id, store.HistoryQuery{Desc: true, Depth0: true,
							Limit: 3}); err != nil {
							b.Fatal(err)
						}
					}
				})
				b.Run("one-record", func(b *testing.B) {
					for b.Loop() {
						if _, err := s.History(ctx, id, store.HistoryQuery{After: size.records / 2,
							Limit: 1}); err != nil {
							b.Fatal(err)
						}
					}
				})
				if err := s.close(); err != nil {
					b.Fatal(err)
				}
			})
	}
}

func readWarm(b *testing.B, s *testStore, id string) {
	ctx := context.Background()
	if _, err := s.Session(ctx, id); err != nil {
		b.Fatal(err)
	}
	if _, err := s.Context(ctx, id); err != nil {
		b.Fatal(err)
	}
	if _, err := s.Artifact(ctx, "calculator", "add"); err != nil {
		b.Fatal(err)
	}
	if _, err := s.History(ctx, id, store.HistoryQuery{Desc: true, Depth0: true, Limit: 1, Role: "calculator",
		Method: "add", Since: time.Now()}); err != nil {
		b.Fatal(err)
	}
}

// seed writes the files of a stopped store of that size.
func seed(b testing.TB, dir string, records, tools, sessions int) {
	b.Helper()
	s := open(b, dir, DefaultOptions())
	ctx := context.Background()
	if err := s.CreateSession(ctx, agent.Session{ID: "sess_big", Role: "calculator", CreatedAt: time.Now()},
		nil); err != nil {
		b.Fatal(err)
	}
	if err := s.CommitCall(ctx, storetest.Forged(storetest.NewCommit("sess_big", "call_0", time.Now()),
		"package tool")); err != nil {
		b.Fatal(err)
	}
	var wg sync.WaitGroup
	var n atomic.Int64
	for range 64 {
		wg.Go(func() {
			for i := n.Add(1); i < int64(records); i = n.Add(1) {
				if err := s.CommitCall(ctx, warm("sess_big", i, time.Now())); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	n.Store(0)
	for range 64 {
		wg.Go(func() {
			for i := n.Add(1); i < int64(tools); i = n.Add(1) {
				if _, err := s.PutTool(ctx, agent.Tool{Role: fmt.Sprintf("tool_%06d", i),
					Contract: agent.Contract{Purpose: "something or other",
						Deliverable: json.RawMessage(`{"type":"object"}`)}}, 0, nil); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if err := s.close(); err != nil {
		b.Fatal(err)
	}
	// Artifacts and sessions are written as the store would, but without an fsync for each.
	index := indexDoc{}
	mustRead(b, dir+"/"+indexFile, &index)
	artifact, err := os.ReadFile(dir + "/tools/calculator/add.json")
	if err != nil {
		b.Fatal(err)
	}
	for i := 1; i < tools; i++ {
		role := fmt.Sprintf("tool_%06d", i)
		doc := artifactDoc{}
		if err := json.Unmarshal(artifact, &doc); err != nil {
			b.Fatal(err)
		}
		doc.Role = role
		mustWrite(b, dir+"/tools/"+role, "add.json", doc)
		index.Artifacts[role] = map[string]store.Figures{"add": store.FiguresOf(doc.Artifact)}
	}
	mustWrite(b, dir+"/tools", "index.json", index)
	for i := 1; i < sessions; i++ {
		id := fmt.Sprintf("sess_%07d", i)
		mustWrite(b, dir+"/sessions/"+id, "session.json", sessionDoc{head: head{SchemaVersion: 1},
			Session: agent.Session{ID: id, Role: "calculator"}})
	}
}

func mustRead(b testing.TB, name string, doc any) {
	b.Helper()
	text, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(text, doc)
	}
	if err != nil {
		b.Fatal(err)
	}
}

func mustWrite(b testing.TB, dir, name string, doc any) {
	b.Helper()
	text, err := json.Marshal(doc)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err == nil {
		err = os.WriteFile(dir+"/"+name, text, 0o600)
	}
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkOpen measures a start after a clean stop. The goal is less than a second for the larger store.
func BenchmarkOpen(b *testing.B) {
	for _, size := range []struct{ tools, sessions int }{{10, 10}, {10_000, 100_000}} {
		b.Run(fmt.Sprintf("tools=%d/sessions=%d", size.tools, size.sessions), func(b *testing.B) {
			dir := b.TempDir()
			seed(b, dir, 10, size.tools, size.sessions)
			for b.Loop() {
				s, err := Open(dir, DefaultOptions())
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if err := s.close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}
