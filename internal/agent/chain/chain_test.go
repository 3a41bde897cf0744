package chain_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/chain"
)

// trail returns the lines of a trail, beginning with those of an earlier version.
func trail(t testing.TB, earlier, entries int) (lines [][]byte) {
	t.Helper()
	v := chain.NewVerifier("acme", nil)
	for i := range earlier {
		line := []byte(fmt.Sprintf(`{"id":"old_%d","actor":"ann"}`, i))
		v.Add(line)
		lines = append(lines, line)
	}
	head := v.Next()
	for i := range entries {
		e := entry(i)
		var err error
		if head, err = chain.Link(head, &e); err != nil {
			t.Fatal(err)
		}
		line, err := chain.Line(&e)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
	return lines
}

func entry(i int) agent.AuditEntry {
	e := agent.AuditEntry{ID: fmt.Sprint("aud_", i), Timestamp: "2026-11-22T10:00:00.000Z", Actor: "ann",
		Action: "policy.change", Target: "policy",
		Before: json.RawMessage(`{"a": 1}`), After: json.RawMessage(`{"a": "<&> ` + fmt.Sprint(i) + `"}`)}
	if i%2 == 1 {
		e.Action, e.SessionID, e.Reason = "context.patch", "sess_1", "not \xff UTF-8, \u2028 and \ufffd"
	}
	return e
}

func check(lines [][]byte) *chain.Verifier {
	v := chain.NewVerifier("acme", nil)
	for _, line := range lines {
		v.Add(line)
	}
	return v
}

func erase(t testing.TB, line []byte) []byte {
	t.Helper()
	var e agent.AuditEntry
	if err := json.Unmarshal(line, &e); err != nil {
		t.Fatal(err)
	}
	bare := chain.Erase(e)
	short, err := chain.Line(&bare)
	if err != nil {
		t.Fatal(err)
	}
	return append(short, bytes.Repeat([]byte(" "), len(line)-len(short))...)
}

func TestChain(t *testing.T) {
	lines := trail(t, 2, 5)
	v := check(lines)
	if len(v.Found) > 0 || v.Earlier != 2 || v.Entries != 5 || v.Head.Seq != 5 {
		t.Fatalf("a sound trail: got %+v", v)
	}
	last := v.Head
	lines[3] = erase(t, lines[3])
	if v := check(lines); len(v.Found) > 0 || v.Erased != 1 || v.Head != last {
		t.Errorf("with an erased body: got %+v, want it sound with the head %v", v, last)
	}
	if bytes.Contains(lines[3], []byte("sess_1")) || bytes.Contains(lines[3], []byte("salt")) {
		t.Errorf("an erased entry keeps %s", lines[3])
	}
}

// Every kind of change to a trail is found, and the message names the place.
func TestChainFinds(t *testing.T) {
	forge := func(line []byte, change func(e *agent.AuditEntry)) []byte { // as an attacker who recomputes hashes does
		var e agent.AuditEntry
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		before := chain.Head{Seq: e.Seq - 1, Hash: e.PrevHash}
		change(&e)
		if _, err := chain.Link(before, &e); err != nil {
			t.Fatal(err)
		}
		out, err := chain.Line(&e)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for _, c := range []struct {
		name, want string
		change     func(l [][]byte) [][]byte
	}{
		{"altered", "entry 2 (aud_1) was altered", func(l [][]byte) [][]byte {
			l[3] = bytes.Replace(l[3], []byte(`"policy"`), []byte(`"Policy"`), 1)
			return l
		}},
		{"another principal", "entry 2 (aud_1) was altered", func(l [][]byte) [][]byte {
			l[3] = bytes.Replace(l[3], []byte(`"principal":"ann"`), []byte(`"principal":"bob"`), 1)
			return l
		}},
		{"another actor", "entry 2 (aud_1) was altered", func(l [][]byte) [][]byte {
			l[3] = bytes.Replace(l[3], []byte(`"actor":"ann"`), []byte(`"actor":"bob"`), 1)
			return l
		}},
		{"an ignored member", "entry 2 (aud_1) was altered", func(l [][]byte) [][]byte {
			l[3] = bytes.Replace(l[3], []byte(`{`), []byte(`{"note":"x",`), 1)
			return l
		}},
		{"altered and hashed anew", "entry 3 (aud_2) does not continue entry 2", func(l [][]byte) [][]byte {
			l[3] = forge(l[3], func(e *agent.AuditEntry) { e.Reason = "another" })
			return l
		}},
		{"removed", "1 entries are missing before entry 3 (aud_2)",
			func(l [][]byte) [][]byte { return append(l[:3], l[4:]...) }},
		{"swapped", "entry 2 (aud_1) stands behind entry 3", func(l [][]byte) [][]byte {
			l[3], l[4] = l[4], l[3]
			return l
		}},
		{"inserted", "entry 3 (aud_2) stands behind entry 3: it was inserted", func(l [][]byte) [][]byte {
			fake := forge(l[4], func(e *agent.AuditEntry) { e.Reason = "fake" })
			return append(l[:4:4], append([][]byte{fake}, l[4:]...)...)
		}},
		{"doubled", "entry 2 (aud_1) stands behind entry 2",
			func(l [][]byte) [][]byte { return append(l[:4:4], l[3:]...) }},
		{"an earlier entry altered", "does not continue what stands before the chain", func(l [][]byte) [][]byte {
			l[0] = bytes.Replace(l[0], []byte("ann"), []byte("bob"), 1)
			return l
		}},
		{"an earlier entry removed", "does not continue what stands before the chain",
			func(l [][]byte) [][]byte { return l[1:] }},
		{"one without a link", "is not linked, and stands behind entry 2", func(l [][]byte) [][]byte {
			return append(l[:4:4], append([][]byte{[]byte(`{"id":"fake"}`)}, l[4:]...)...)
		}},
		{"marked as erased", "entry 2 (aud_1) was altered", func(l [][]byte) [][]byte {
			l[3] = bytes.Replace(l[3], []byte(`"hash":`), []byte(`"erased":true,"hash":`), 1)
			return l
		}},
		{"the body taken out", "entry 3 (aud_2) was altered: its body was taken out", func(l [][]byte) [][]byte {
			l[4] = erase(t, l[4])
			return l
		}},
		{"no JSON", "line 4 does not parse", func(l [][]byte) [][]byte {
			l[3] = l[3][:len(l[3])-1]
			return l
		}},
	} {
		v := check(c.change(trail(t, 2, 5)))
		if !strings.Contains(strings.Join(v.Found, "\n"), c.want) {
			t.Errorf("%s: got %q, want %q", c.name, v.Found, c.want)
		}
	}
	v := chain.NewVerifier("other", nil)
	for _, line := range trail(t, 0, 2) {
		v.Add(line)
	}
	if len(v.Found) != 1 {
		t.Errorf("another namespace's trail: got %q, want that it is", v.Found)
	}
}

// A change of any byte of a trail is found, except in blanks after an erased entry.
func TestChainFindsEveryByte(t *testing.T) {
	lines := trail(t, 1, 4)
	lines[2] = erase(t, lines[2])
	whole := append(bytes.Join(lines, []byte("\n")), '\n')
	head := check(lines).Head
	random := rand.New(rand.NewPCG(3, 4))
	for i := range whole {
		for range 3 {
			data := bytes.Clone(whole)
			if data[i] = byte(random.IntN(256)); data[i] == whole[i] {
				continue
			}
			v := check(split(data))
			if len(v.Found) == 0 && v.Head == head && !bytes.Equal(withoutPadding(data), withoutPadding(whole)) {
				t.Fatalf("byte %d: %q became %q, and nothing was found:\n%s", i, whole[i], data[i], data)
			}
		}
	}
}

func split(data []byte) [][]byte {
	return bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n"))
}

func withoutPadding(data []byte) []byte {
	lines := split(data)
	for i := range lines {
		lines[i] = bytes.TrimRight(lines[i], " ")
	}
	return bytes.Join(lines, []byte("\n"))
}

// FuzzVerify feeds arbitrary lines. None causes a panic, and the entries of a trail that passes encode to the same
// lines again.
func FuzzVerify(f *testing.F) {
	f.Add(bytes.Join(trail(f, 1, 3), []byte("\n")))
	f.Add([]byte(`{"seq":1,"hash":"x","before":{"a" : [1]}}`))
	f.Add([]byte(`{"erased":true,"seq":-1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		v := check(bytes.Split(data, []byte("\n")))
		if len(v.Found) > 0 || v.Entries == 0 {
			return
		}
		for i, line := range bytes.Split(data, []byte("\n"))[v.Earlier:] {
			var e agent.AuditEntry
			if err := json.Unmarshal(line, &e); err != nil {
				t.Fatal(err)
			}
			if again, err := chain.Line(&e); err != nil || !bytes.Equal(again, bytes.TrimRight(line, " ")) {
				t.Errorf("line %d: %q is written as %q, %v", i, line, again, err)
			}
		}
	})
}
