package disk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/chain"
	"github.com/recurgentd/recurgentd/internal/store"
)

// A trailLife is a store with an audit trail, and the heads of it that were noted.
type trailLife struct {
	*testing.T
	dir   string
	s     *testStore
	noted []NotedHead
	n     int
}

func (l *trailLife) ok(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// add appends an entry about the session and notes the head. "" means no session.
func (l *trailLife) add(session string) {
	l.Helper()
	l.n++
	l.ok(l.s.AppendAudit(l.Context(), agent.AuditEntry{ID: fmt.Sprint("aud_", l.n),
		Timestamp: "2026-11-22T10:00:00.000Z", Actor: "ann", Action: "context.patch", Target: "t", SessionID: session,
		After: json.RawMessage(`{"a":1}`)}))
	head, err := l.s.AuditHead(l.Context())
	l.ok(err)
	l.noted = append(l.noted, NotedHead{Namespace: agent.DefaultNamespace, Hash: head.Hash})
}

// forged returns an entry that is correctly linked to the line, as an attacker who knows the format can make it.
func (l *trailLife) forged(line []byte) []byte {
	var e agent.AuditEntry
	l.ok(json.Unmarshal(line, &e))
	fake := agent.AuditEntry{ID: "aud_fake", Actor: "bob", Action: "policy.change", Target: "policy"}
	_, err := chain.Link(chain.Head{Seq: e.Seq, Hash: e.Hash}, &fake)
	l.ok(err)
	out, err := chain.Line(&fake)
	l.ok(err)
	return append(out, '\n')
}

// rewritten returns the trail as an attacker with full write access can make it: with another principal in the middle
// and all hashes computed again.
func (l *trailLife) rewritten(lines [][]byte) (out []byte, head chain.Head) {
	head = chain.Start(agent.DefaultNamespace, 0, "")
	for i, line := range lines {
		var e agent.AuditEntry
		l.ok(json.Unmarshal(line, &e))
		if i == len(lines)/2 {
			e.Actor, e.Principal = "eve", "eve" // same length as ann
		}
		var err error
		head, err = chain.Link(head, &e)
		l.ok(err)
		text, err := chain.Line(&e)
		l.ok(err)
		out = append(append(out, text...), '\n')
	}
	return out, head
}

// sound verifies the stopped store against all noted heads. It then tampers with the trail in each way and checks that
// verify finds it.
func (l *trailLife) sound(stage string) {
	l.Helper()
	if r := verify(l.T, l.dir, l.noted...); len(r.Problems) > 0 {
		l.Fatalf("%s: %q", stage, r.Problems)
	}
	name := filepath.Join(l.dir, auditFile)
	whole, err := os.ReadFile(name)
	l.ok(err)
	lines := bytes.SplitAfter(whole, []byte("\n"))
	lines = lines[:len(lines)-1]
	mid := len(lines) / 2
	with := func(at int, drop int, in ...[]byte) []byte {
		return bytes.Join(slices.Replace(slices.Clone(lines), at, at+drop, in...), nil)
	}
	anew, _ := l.rewritten(lines)
	for what, data := range map[string][]byte{
		"altered": with(mid, 1, bytes.Replace(lines[mid], []byte(`"principal":"ann"`),
			[]byte(`"principal":"bob"`), 1)),
		"removed":           with(mid, 1),
		"the first removed": with(0, 1),
		"inserted":          with(mid, 0, l.forged(lines[mid-1])),
		"moved":             with(mid, 2, lines[mid+1], lines[mid]),
		"truncated":         with(len(lines)-1, 1),
		"in a line":         whole[:len(whole)-5],
		"one more":          with(len(lines), 0, l.forged(lines[len(lines)-1])),
		"computed anew":     anew,
	} {
		l.ok(os.WriteFile(name, data, 0o600))
		if r := verify(l.T, l.dir); len(r.Problems) == 0 {
			l.Errorf("%s: %s: nothing was found", stage, what)
		}
	}
	l.ok(os.WriteFile(name, whole, 0o600))
}

// TestTrailThroughItsLife takes a trail through everything that happens to a store. After each step the trail is sound,
// has every noted head, and tampering is found.
func TestTrailThroughItsLife(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	o := testOptions(t)
	o.Now = func() time.Time { return now }
	o.LogSegment, o.Segment = 4<<10, 1<<12
	l := &trailLife{T: t, dir: t.TempDir()}
	stages := []struct {
		name string
		do   func()
	}{
		{"made", func() {
			for i := range 4 {
				id := fmt.Sprint("sess_", i)
				l.ok(l.s.CreateSession(t.Context(), agent.Session{ID: id, CreatedAt: now, UpdatedAt: now}, nil))
				l.add(id)
				l.add("")
			}
		}},
		{"checkpoint", func() { l.ok(l.s.checkpoint()) }},
		{"killed", func() { l.s.kill(); l.s = open(t, l.dir, o) }},
		{"killed behind a checkpoint", func() {
			l.ok(l.s.checkpoint())
			l.add("sess_3")
			l.s.kill()
			l.s = open(t, l.dir, o)
		}},
		{"a session deleted", func() {
			l.ok(l.s.DeleteSession(t.Context(), "sess_0", &agent.AuditEntry{ID: "aud_gone", Actor: "ann",
				Action: "session.delete", Target: "sess_0"}))
		}},
		{"a session deleted, and killed", func() {
			l.add("sess_1")
			l.ok(l.s.DeleteSession(t.Context(), "sess_1", nil))
			l.s.kill()
			l.s = open(t, l.dir, o)
		}},
		{"retention", func() {
			p := agent.DefaultPolicy()
			p.Retention.SessionDays = 1
			l.ok(l.s.SetPolicy(t.Context(), p, store.AnyRevision, &agent.AuditEntry{ID: "aud_policy", Actor: "ann"}))
			now = now.AddDate(0, 0, 30)
			if n, err := l.s.Expire(t.Context(), now); n != 2 || err != nil {
				t.Fatalf("%d sessions expired, %v, want 2", n, err)
			}
		}},
		{"a namespace made and erased", func() {
			_, err := l.s.CreateNamespace(t.Context(), "acme", &agent.AuditEntry{ID: "aud_made", Actor: "ann"})
			l.ok(err)
			acme, err := l.s.Namespace("acme")
			l.ok(err)
			l.ok(acme.AppendAudit(t.Context(), agent.AuditEntry{ID: "aud_acme"}))
			l.ok(l.s.EraseNamespace(t.Context(), "acme", &agent.AuditEntry{ID: "aud_erased", Actor: "ann"}))
		}},
		{"repaired", func() {
			l.ok(l.s.close())
			_, err := Repair(t.Context(), l.dir, o, &agent.AuditEntry{ID: "aud_repair", Actor: "local"})
			l.ok(err)
			l.s = open(t, l.dir, o)
		}},
		{"exported and imported", func() {
			var archive bytes.Buffer
			l.ok(l.s.Export(t.Context(), &archive, ""))
			l.ok(l.s.close())
			l.dir = filepath.Join(t.TempDir(), "imported")
			_, err := Import(t.Context(), l.dir, &archive, o, &agent.AuditEntry{ID: "aud_import", Actor: "local"})
			l.ok(err)
			l.s = open(t, l.dir, o)
		}},
	}
	l.s = open(t, l.dir, o)
	for _, stage := range stages {
		stage.do()
		l.add("")
		l.ok(l.s.close())
		l.sound(stage.name)
		l.s = open(t, l.dir, o)
	}
	l.ok(l.s.close())
	if r := verify(t, l.dir); r.Audit[0].Erased != 6 || r.Audit[0].Namespace != agent.DefaultNamespace {
		t.Errorf("got %+v, want the six entries about sessions erased", r.Audit)
	}
}

// TestNotedHeadShowsATrailMadeAnew rewrites the whole chain, including the head in the checkpoint. Nothing in the store
// can reveal that; a noted head does.
func TestNotedHeadShowsATrailMadeAnew(t *testing.T) {
	t.Parallel()
	l := &trailLife{T: t, dir: t.TempDir()}
	l.s = open(t, l.dir, testOptions(t))
	for range 4 {
		l.add("")
	}
	l.ok(l.s.close())
	name, checkpoint := filepath.Join(l.dir, auditFile), filepath.Join(l.dir, checkpointFile)
	whole, err := os.ReadFile(name)
	l.ok(err)
	lines := bytes.SplitAfter(whole, []byte("\n"))
	anew, head := l.rewritten(lines[:len(lines)-1])
	l.ok(os.WriteFile(name, anew, 0o600))
	doc, err := os.ReadFile(checkpoint)
	l.ok(err)
	doc = bytes.ReplaceAll(doc, []byte(l.noted[3].Hash), []byte(head.Hash))
	l.ok(os.WriteFile(checkpoint, doc, 0o600))
	if r := verify(t, l.dir); len(r.Problems) > 0 {
		t.Errorf("a chain that was computed anew: got %q; this test has to be changed, and what the documents say of it", r.Problems)
	}
	if r := verify(t, l.dir, l.noted[2]); len(r.Problems) != 1 {
		t.Errorf("against a noted head: got %q, want that the trail does not have it", r.Problems)
	}
}

// TestNotedHeadShowsALostJournal removes what a killed store had only in its journal.
func TestNotedHeadShowsALostJournal(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	o.Flush = -1
	l := &trailLife{T: t, dir: t.TempDir()}
	l.s = open(t, l.dir, o)
	l.add("")
	l.ok(l.s.checkpoint())
	l.add("")
	l.s.kill()
	if r := verify(t, l.dir, l.noted...); len(r.Problems) > 0 {
		t.Fatalf("killed: got %q", r.Problems)
	}
	segments, err := filepath.Glob(filepath.Join(l.dir, journalDir, "*"))
	l.ok(err)
	for _, name := range segments {
		l.ok(os.Remove(name))
	}
	if r := verify(t, l.dir, l.noted[0]); len(r.Problems) > 0 {
		t.Errorf("against what the checkpoint has: got %q", r.Problems)
	}
	if r := verify(t, l.dir, l.noted...); len(r.Problems) != 1 {
		t.Errorf("against the last head: got %q, want that the trail does not have it", r.Problems)
	}
}
