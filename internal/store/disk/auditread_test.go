package disk

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/chain"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

// meteredFS counts the bytes read from the audit trail.
type meteredFS struct {
	vfs.FS
	read *atomic.Int64
}

func (f meteredFS) Open(name string, create bool) (vfs.File, error) {
	file, err := f.FS.Open(name, create)
	if err != nil || filepath.Base(name) != auditFile {
		return file, err
	}
	return meteredFile{file, f.read}, nil
}

func (f meteredFS) ReadFile(name string) ([]byte, error) {
	data, err := f.FS.ReadFile(name)
	if filepath.Base(name) == auditFile {
		f.read.Add(int64(len(data)))
	}
	return data, err
}

type meteredFile struct {
	vfs.File
	read *atomic.Int64
}

func (f meteredFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	f.read.Add(int64(n))
	return n, err
}

// longTrail opens a store with n audit entries. The first tenth are ann's, the others bob's.
func longTrail(t testing.TB, n int) (*testStore, *atomic.Int64) {
	t.Helper()
	var trail bytes.Buffer
	head := chain.Start(agent.DefaultNamespace, 0, "")
	for i := range n {
		e := agent.AuditEntry{ID: fmt.Sprintf("aud_%06d", i), Timestamp: "2026-11-22T10:00:00.000Z", Actor: "bob",
			Action: "policy.change", Target: "policy"}
		if i < n/10 {
			e.Actor = "ann"
		}
		var err error
		if head, err = chain.Link(head, &e); err != nil {
			t.Fatal(err)
		}
		line, err := chain.Line(&e)
		if err != nil {
			t.Fatal(err)
		}
		trail.Write(append(line, '\n'))
	}
	dir, read := t.TempDir(), &atomic.Int64{}
	if err := os.WriteFile(filepath.Join(dir, auditFile), trail.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	o := testOptions(t)
	real, err := vfs.Dir(dir)
	if err != nil {
		t.Fatal(err)
	}
	o.FS = meteredFS{real, read}
	return open(t, dir, o), read
}

// TestAuditReadsTheSameOfALongTrail compares how much is read for a page of a short trail and of one twenty times as
// long.
func TestAuditReadsTheSameOfALongTrail(t *testing.T) {
	t.Parallel()
	const short, long = 2000, 40_000
	cost := map[int]map[string]int64{}
	for _, n := range []int{short, long} {
		s, read := longTrail(t, n)
		cost[n] = map[string]int64{"open": read.Load()}
		ask := func(what string, want int, q store.AuditQuery) {
			before := read.Load()
			got, err := s.Audit(t.Context(), q)
			if err != nil || len(got) != want {
				t.Errorf("%s of %d: got %d entries, %v, want %d", what, n, len(got), err, want)
			}
			cost[n][what] = read.Load() - before
		}
		place := func(seq int) string { return fmt.Sprintf("aud_%06d-%d", seq-1, seq) }
		ask("newest", 100, store.AuditQuery{Limit: 100})
		ask("in the middle", 100, store.AuditQuery{Limit: 100, Before: place(n / 2)})
		ask("oldest", 49, store.AuditQuery{Limit: 100, Before: place(50)})
		ask("of a principal, far away", 0, store.AuditQuery{Limit: 100, Principal: "ann", Scan: &store.Scan{Most: 500}})
		ask("of a principal, from there", 100, store.AuditQuery{Limit: 100, Principal: "ann", Before: place(n/10 + 1),
			Scan: &store.Scan{Most: 500}})
		before := read.Load()
		if err := s.AppendAudit(t.Context(), agent.AuditEntry{ID: "aud_later"}); err != nil {
			t.Fatal(err)
		}
		cost[n]["append"] = read.Load() - before
	}
	const lines = 64 << 10 // what bisection reads in addition in a longer file
	for what, of := range cost[short] {
		if got := cost[long][what]; got > of+lines {
			t.Errorf("%s: %d bytes are read of a trail of %d entries, %d of one of %d", what, of, short, got, long)
		}
	}
}

// BenchmarkAudit reads pages of a trail of 100,000 entries. The principal's entries are the oldest tenth.
func BenchmarkAudit(b *testing.B) {
	s, _ := longTrail(b, 100_000)
	for name, q := range map[string]store.AuditQuery{
		"newest":    {Limit: 100},
		"middle":    {Limit: 100, Before: "aud_049999-50000"},
		"principal": {Limit: 100, Principal: "ann", Scan: &store.Scan{Most: 20_000}},
		"all":       {Limit: 100, Principal: "ann"},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				q := q
				if q.Scan != nil {
					scan := *q.Scan
					q.Scan = &scan
				}
				if _, err := s.Audit(b.Context(), q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
