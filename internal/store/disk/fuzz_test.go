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
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// FuzzJournal reads segments of any bytes: no panic, entries in order and within the bounds, and a sound segment with
// something behind it still gives what is sound.
func FuzzJournal(f *testing.F) {
	var fr frame
	fr.reset()
	fr.add([]byte(`{"t":1}`), []byte("tail"))
	fr.add(nil)
	sound := bytes.Clone(fr.seal(1))
	fr.reset()
	fr.add([]byte("next"))
	second := bytes.Clone(fr.seal(3))
	f.Add(sound)
	f.Add(append(bytes.Clone(sound), second...))
	f.Add(append(append(bytes.Clone(sound), make([]byte, 100)...), second...))
	f.Add(second[:len(second)-1])
	f.Fuzz(func(t *testing.T, data []byte) {
		last := uint64(0)
		next, end, gaps, err := readSegment(data, 1, 0, func(lsn uint64, _ []byte) error {
			if lsn <= last {
				t.Fatalf("entry %d after %d", lsn, last)
			}
			last = lsn
			return nil
		})
		if err != nil || end > len(data) || last > 0 && next != last+1 {
			t.Fatalf("next %d after %d, end %d of %d, %v", next, last, end, len(data), err)
		}
		for _, g := range gaps {
			if g.from >= g.to {
				t.Fatalf("a gap from %d to %d", g.from, g.to)
			}
		}
		n := 0
		if _, _, _, err := readSegment(append(bytes.Clone(sound), data...), 1, 0, func(lsn uint64, _ []byte) error {
			if lsn <= 2 {
				n++
			}
			return nil
		}); err != nil || n != 2 {
			t.Fatalf("got %d of the two sound entries, %v", n, err)
		}
		if e, err := decodeEntry(data); err == nil && e.Record != nil {
			_, _ = withSeq(e.Record, 7) // refuses what has no seq; must not panic
		}
	})
}

// FuzzFrame writes any entries and reads them back.
func FuzzFrame(f *testing.F) {
	f.Add([]byte("one"), []byte(""), uint64(7))
	f.Fuzz(func(t *testing.T, a, b []byte, first uint64) {
		var fr frame
		fr.reset()
		fr.add(a, b)
		fr.add(b)
		entries, lsn, size, ok := readFrame(append(bytes.Clone(fr.seal(first)), a...))
		if !ok || lsn != first || len(entries) != 2 || !bytes.Equal(entries[0], append(bytes.Clone(a), b...)) || !bytes.Equal(entries[1], b) || size != len(fr.buf) {
			t.Fatalf("got %q at %d, %v", entries, lsn, ok)
		}
	})
}

// FuzzFiles opens a store in which one file holds any bytes, and uses it: no panic, and no error but for a newer
// schema version. Whatever was set aside, new calls work.
func FuzzFiles(f *testing.F) {
	base := newSimFS()
	s, err := Open("sim", simOptions(f, base, func() time.Time { return simStart }))
	if err != nil {
		f.Fatal(err)
	}
	for _, step := range script(func() time.Time { return simStart }) {
		if step.do != nil {
			if err := step.do(s); err != nil {
				f.Fatal(err)
			}
		}
	}
	if err := s.close(); err != nil {
		f.Fatal(err)
	}
	names := []string{registryFile, indexFile, policyFile, patternsFile, contentFile, checkpointFile, auditFile, "calls.jsonl", "values/00000001.jsonl", "calls/00000001.idx",
		"tools/calculator/add.json", "sessions/sess_1/session.json", "sessions/sess_1/history.jsonl", segmentName(40)}
	for i, name := range names {
		if data, err := base.ReadFile(name); err == nil {
			f.Add(uint8(i), data)
		}
		f.Add(uint8(i), []byte(`{"schema_version":1}`))
		f.Add(uint8(i), []byte(`{"schema_version":0,"method_name":"add","role":"calculator"}`))
	}
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		sim := base.crash(len(base.ops), keepAll, nil)
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
		s, err := Open("sim", simOptions(t, sim, func() time.Time { return simStart }))
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
		if _, err := s.Audit(ctx, "", 10); err != nil {
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
		if err := s.CommitCall(ctx, storetest.Forged(storetest.NewCommit(id, "call_new", simStart), "package tool")); err != nil {
			t.Fatal(err)
		}
		if err := s.checkpoint(); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzHistory pages through a history of any lines: soundLines keeps what is sound, and bisection finds each record.
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
			return // gaps as large as that are no history of ours
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
			if found, err := lineAt(r, off, int64(len(good))); err != nil || seqOf(found) < m.Seq {
				t.Fatalf("seq %d: found %q at %d, %v", m.Seq, found, off, err)
			}
		}
	})
}
