package disk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/chain"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// stoppedTrail returns a stopped store with n audit entries, the second of which is erased.
func stoppedTrail(t *testing.T, n int) (dir string, head chain.Head) {
	t.Helper()
	dir = t.TempDir()
	s := open(t, dir, testOptions(t))
	if err := s.CreateSession(t.Context(), agent.Session{ID: "sess_1"}, nil); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		e := agent.AuditEntry{ID: fmt.Sprint("aud_", i), Timestamp: "2026-11-22T10:00:00.000Z", Actor: "ann",
			Action: "policy.change", Target: "policy", After: json.RawMessage(`{"a":1}`)}
		if i == 1 {
			e.Action, e.SessionID = "context.patch", "sess_1"
		}
		if err := s.AppendAudit(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.DeleteSession(t.Context(), "sess_1", nil); err != nil {
		t.Fatal(err)
	}
	head, err := s.AuditHead(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	return dir, head
}

func verify(t *testing.T, dir string, noted ...NotedHead) Report {
	t.Helper()
	r, err := Verify(t.Context(), dir, testOptions(t), noted...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestVerifyAudit checks that verify reads the whole chain of a sound trail and reports its head.
func TestVerifyAudit(t *testing.T) {
	t.Parallel()
	dir, head := stoppedTrail(t, 4)
	r := verify(t, dir, NotedHead{Namespace: agent.DefaultNamespace, Hash: head.Hash})
	if want := (AuditReport{agent.DefaultNamespace, 4, 0, 1,
		head}); len(r.Problems) > 0 || len(r.Audit) != 1 || r.Audit[0] != want {
		t.Errorf("got %+v, want %+v", r, want)
	}
	if r := verify(t, dir, NotedHead{Namespace: "nobody",
		Hash: head.Hash}); len(r.Problems) != 1 || !strings.Contains(r.Problems[0], "has the noted hash") {
		t.Errorf("a head that the trail does not have: got %q", r.Problems)
	}
}

// TestVerifyFindsTampering changes random bytes of a trail, truncates it and appends to it. Verify finds each change,
// except for spaces after an erased entry, which have no meaning.
func TestVerifyFindsTampering(t *testing.T) {
	t.Parallel()
	dir, _ := stoppedTrail(t, 5)
	name := filepath.Join(dir, auditFile)
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 9))
	means := func(data []byte) string { return string(bytes.ReplaceAll(data, []byte(" \n"), []byte("\n"))) }
	try := func(what string, data []byte) {
		t.Helper()
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if r := verify(t, dir); len(r.Problems) == 0 && means(data) != means(whole) {
			t.Errorf("%s: nothing was found in\n%s", what, data)
		}
	}
	for range 300 {
		data := bytes.Clone(whole)
		i := random.IntN(len(data))
		switch random.IntN(4) {
		case 0:
			data[i] ^= byte(1 << random.IntN(8))
		case 1:
			data = append(data[:i:i], data[i+1:]...)
		case 2:
			data = append(data[:i:i], append([]byte{data[i]}, data[i:]...)...)
		case 3:
			data = data[:i]
		}
		if !bytes.Equal(data, whole) {
			try(fmt.Sprint("byte ", i), data)
		}
	}
	lines := bytes.SplitAfter(whole, []byte("\n"))
	lines = lines[:len(lines)-1]
	for i := range lines {
		try("without a line", bytes.Join(append(lines[:i:i], lines[i+1:]...), nil))
		for j := range i {
			swapped := append([][]byte{}, lines...)
			swapped[i], swapped[j] = swapped[j], swapped[i]
			try("swapped", bytes.Join(swapped, nil))
		}
	}
	try("nothing", nil)
	try("a line more", append(bytes.Clone(whole), `{"id":"aud_x"}`+"\n"...))
}

// TestTrailGoesOnBehindLoss opens a store whose trail lost its end. The chain continues from the last checkpoint, so
// the gap remains visible.
func TestTrailGoesOnBehindLoss(t *testing.T) {
	t.Parallel()
	dir, head := stoppedTrail(t, 3)
	name := filepath.Join(dir, auditFile)
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	cut := bytes.LastIndexByte(whole[:len(whole)-1], '\n') + 1
	if err := os.WriteFile(name, whole[:cut], 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir, testOptions(t))
	if err := s.AppendAudit(t.Context(), agent.AuditEntry{ID: "aud_later"}); err != nil {
		t.Fatal(err)
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	r := verify(t, dir, NotedHead{Namespace: agent.DefaultNamespace, Hash: head.Hash})
	if text := strings.Join(r.Problems, "\n"); !strings.Contains(text,
		"1 entries are missing before entry 4 (aud_later)") || !strings.Contains(text, "has the noted hash") {
		t.Errorf("got %q, want that entry 3 is missing", r.Problems)
	}
}

// TestVerifyAuditOfAKill verifies a killed store, whose chain ends in the journal, and then tampers with the journal.
func TestVerifyAuditOfAKill(t *testing.T) {
	t.Parallel()
	dir, o := t.TempDir(), testOptions(t)
	o.Flush = -1
	s := open(t, dir, o)
	for i := range 6 {
		if err := s.AppendAudit(t.Context(), agent.AuditEntry{ID: fmt.Sprint("aud_", i)}); err != nil {
			t.Fatal(err)
		}
		switch i {
		case 1:
			if err := s.checkpoint(); err != nil {
				t.Fatal(err)
			}
		case 3: // the file is ahead of the checkpoint
			if err := s.Sync(); err != nil {
				t.Fatal(err)
			}
		}
	}
	head, err := s.AuditHead(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.kill()
	if r := verify(t, dir); len(r.Problems) > 0 || len(r.Audit) != 1 || r.Audit[0].Head != head ||
		r.Audit[0].Entries != 6 {
		t.Errorf("got %+v, want 6 entries and the head %v", r, head)
	}
	s = open(t, dir, o)
	storetest.Chained(t, agent.DefaultNamespace, s)
	if now, err := s.AuditHead(t.Context()); err != nil || now != head {
		t.Errorf("opened again: got the head %v, %v, want %v", now, err, head)
	}
}

// TestChainBehindEarlierEntries opens a trail without hashes, in the file and in the journal, as an earlier version
// left it. The chain begins after these entries and covers them.
func TestChainBehindEarlierEntries(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"v1-stopped", "v1-killed"} {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata/directories", name))); err != nil {
			t.Fatal(err)
		}
		s := open(t, dir, testOptions(t))
		before, err := s.Audit(t.Context(), store.AuditQuery{Limit: 100})
		if err != nil || len(before) == 0 {
			t.Fatalf("got %v, %v, want the entries of an earlier version", before, err)
		}
		for i := range 2 {
			if err := s.AppendAudit(t.Context(), agent.AuditEntry{ID: fmt.Sprint("aud_", i)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.close(); err != nil {
			t.Fatal(err)
		}
		r := verify(t, dir)
		if len(r.Problems) > 0 || len(r.Audit) == 0 || r.Audit[0].Entries != 2 ||
			r.Audit[0].Earlier != int64(len(before)) {
			t.Errorf("%s: got %+v, want two entries behind %d earlier ones", name, r, len(before))
		}
		file := filepath.Join(dir, auditFile)
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		data[bytes.IndexByte(data, ':')+2] ^= 1
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if r := verify(t, dir); len(r.Problems) == 0 {
			t.Errorf("%s: an altered entry of an earlier version was not found", name)
		}
	}
}

// TestVerifyNames checks that verify reports names that an earlier version stored in another Unicode form, but not as
// problems.
func TestVerifyNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, testOptions(t))
	for _, role := range []string{"add", "cafe\u0301", "caf\u00e9", "o\u0308l"} {
		if _, err := s.PutTool(t.Context(), agent.Tool{Role: role}, store.AnyRevision, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	r := verify(t, dir)
	if len(r.Problems) != 0 || r.Tools != 4 || len(r.OtherForms) != 2 ||
		!strings.Contains(r.OtherForms[0], "stored beside it") ||
		!strings.Contains(r.OtherForms[1], "nothing has that name") {
		t.Errorf("got %d tools, %q, problems %q", r.Tools, r.OtherForms, r.Problems)
	}
	again := open(t, dir, testOptions(t))
	defer again.close()
	for _, role := range []string{"cafe\u0301", "caf\u00e9"} {
		if got, err := again.Tool(t.Context(), role); err != nil || got.Role != role {
			t.Errorf("%+q: %+v, %v", role, got, err)
		}
	}
}
