package disk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/jsonl"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs/vfstest"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// FuzzEntry decodes any bytes as a journal entry. It must not panic.
func FuzzEntry(f *testing.F) {
	f.Add([]byte(`{"q":1,"t":1,"s":"sess_1","r":{"call_id":"a","seq":0,"x":1},"l":{"call_id":"a"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if e, err := decodeEntry(data); err == nil && e.Record != nil {
			_, _ = withSeq(e.Record, 7) // returns an error if there is no seq; must not panic
		}
	})
}

// FuzzFiles opens a store in which one file holds any bytes, and uses it. It must not panic, and the only allowed error
// is a newer schema version. New calls must work, no matter which files were moved aside.
func FuzzFiles(f *testing.F) {
	base := vfstest.New()
	s, err := openStore(f, "sim", simOptions(f, base, func() time.Time { return simStart }))
	if err != nil {
		f.Fatal(err)
	}
	for _, step := range script(func() time.Time { return simStart }) {
		if step.do != nil {
			if err := step.do(s.ns); err != nil {
				f.Fatal(err)
			}
		}
	}
	if err := s.close(); err != nil {
		f.Fatal(err)
	}
	names := []string{registryFile, indexFile, policyFile, patternsFile, contentFile, connectionsFile, spendFile,
		checkpointFile, auditFile, "calls.jsonl", "values/00000001.jsonl", "calls/00000001.idx",
		"tools/calculator/add.json", "sessions/sess_1/session.json", "sessions/sess_1/history.jsonl",
		"journal/00000000000000000040.wal"}
	for i, name := range names {
		if data, err := base.ReadFile(name); err == nil {
			f.Add(uint8(i), data)
		}
		f.Add(uint8(i), []byte(`{"schema_version":1}`))
		f.Add(uint8(i), []byte(`{"schema_version":0,"method_name":"add","role":"calculator"}`))
	}
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		sim := base.Crash(len(base.Ops()), vfstest.KeepAll, nil)
		name := names[int(which)%len(names)]
		file, err := sim.Open(name, true)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(file.Truncate(0), file.Sync()); err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteAt(data, 0); err != nil {
			t.Fatal(err)
		}
		s, err := openStore(t, "sim", simOptions(t, sim, func() time.Time { return simStart }))
		var newer *newerError
		if errors.As(err, &newer) {
			return
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		defer s.kill()
		ctx := context.Background()
		_, _ = s.Call(ctx, "call_0001")
		_, _ = s.Replay(ctx, "key")
		if _, err := s.ListCalls(ctx, store.CallQuery{}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Audit(ctx, store.AuditQuery{Limit: 10}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.RankTools(ctx, simStart, 12); err != nil {
			t.Fatal(err)
		}
		if _, err := s.ListSessions(ctx, "", 10); err != nil {
			t.Fatal(err)
		}
		id := "sess_1"
		if _, err := s.Session(ctx, id); err != nil {
			id = "sess_new"
			if err := s.CreateSession(ctx, agent.Session{ID: id, Role: "calculator"}, nil); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.History(ctx, id, store.HistoryQuery{Depth0: true, Desc: true}); err != nil {
			t.Fatal(err)
		}
		if err := s.CommitCall(ctx, storetest.Forged(storetest.NewCommit(id, "call_new", simStart),
			"package tool")); err != nil {
			t.Fatal(err)
		}
		if err := s.checkpoint(); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzHistory pages through a history of any lines. soundLines keeps the sound lines, and bisection finds each record.
func FuzzHistory(f *testing.F) {
	f.Add([]byte("{\"call_id\":\"a\",\"seq\":1}\n{\"call_id\":\"b\",\"seq\":2}\n"), int64(10))
	f.Add([]byte("{\"seq\":1}\nnonsense\n{\"seq\":3}\n"), int64(100))
	f.Add([]byte("\n\n"), int64(0))
	f.Fuzz(func(t *testing.T, data []byte, known int64) {
		good, size, _ := soundLines(data, known)
		if again, n, damaged := soundLines(good, 0); !damaged && n == size && len(again) > len(good) {
			t.Fatal("grows")
		}
		if size > 1000 {
			return // no history of ours has gaps this large
		}
		r := bytes.NewReader(good)
		for _, line := range bytes.Split(bytes.TrimSuffix(good, []byte("\n")), []byte("\n")) {
			m := recordMeta{}
			if len(line) == 0 || json.Unmarshal(line, &m) != nil || m.Seq != seqOf(line) {
				continue
			}
			off, err := findSeq(r, int64(len(good)), m.Seq)
			if err != nil {
				t.Fatal(err)
			}
			if found, err := jsonl.LineAt(r, off, int64(len(good))); err != nil || seqOf(found) < m.Seq {
				t.Fatalf("seq %d: found %q at %d, %v", m.Seq, found, off, err)
			}
		}
	})
}
