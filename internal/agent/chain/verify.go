package chain

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// A Verifier checks the lines of a trail in order. Make one with NewVerifier. It is not safe for concurrent use.
type Verifier struct {
	Entries int64    // linked entries
	Earlier int64    // entries of an earlier version, before the chain
	Erased  int64    // linked entries with an erased body
	Head    Head     // of the last linked entry
	Found   []string // faults, each naming its entry; at most maxFound

	name   agent.Namespace
	passed func(Head)
	lines  int64
	sum    hash.Hash // over the earlier lines
}

// maxFound bounds Verifier.Found: a badly damaged trail has faults everywhere.
const maxFound = 100

// NewVerifier returns a verifier of a namespace's trail. passed, unless nil, is called with the position of each linked
// entry.
func NewVerifier(name agent.Namespace, passed func(Head)) *Verifier {
	return &Verifier{name: name, passed: passed, sum: sha256.New()}
}

// Next returns the head that the next entry links to.
func (v *Verifier) Next() Head {
	if v.Entries > 0 {
		return v.Head
	}
	sum := ""
	if v.Earlier > 0 {
		sum = hex.EncodeToString(v.sum.Sum(nil))
	}
	return Start(v.name, v.Earlier, sum)
}

func (v *Verifier) found(format string, args ...any) {
	if len(v.Found) < maxFound {
		v.Found = append(v.Found, fmt.Sprintf(format, args...))
	}
}

// Add checks the next line, given without its newline. Faults go to Found.
func (v *Verifier) Add(line []byte) {
	v.lines++
	var e agent.AuditEntry
	if err := json.Unmarshal(line, &e); err != nil {
		v.found("line %d does not parse", v.lines)
		return
	}
	if e.Hash == "" && e.Seq == 0 {
		v.addEarlier(line, &e)
		return
	}
	v.follows(&e)
	v.itself(line, &e)
	v.Entries++
	v.Head = Head{e.Seq, e.Hash}
	if v.passed != nil {
		v.passed(v.Head)
	}
}

func (v *Verifier) addEarlier(line []byte, e *agent.AuditEntry) {
	if v.Entries > 0 {
		v.found("line %d (%s) is not linked, and stands behind entry %d, which is", v.lines, e.ID, v.Head.Seq)
		return
	}
	v.Earlier++
	_, _ = v.sum.Write(append(line[:len(line):len(line)], '\n')) // a hash never returns an error
}

// follows checks that the entry continues the chain.
func (v *Verifier) follows(e *agent.AuditEntry) {
	before := v.Next()
	switch {
	case e.Seq > before.Seq+1:
		v.found("%d entries are missing before entry %d (%s)", e.Seq-before.Seq-1, e.Seq, e.ID)
	case e.Seq <= before.Seq:
		v.found("entry %d (%s) stands behind entry %d: it was inserted or moved", e.Seq, e.ID, before.Seq)
	case e.PrevHash != before.Hash && v.Entries == 0:
		v.found("entry %d (%s) does not continue what stands before the chain: entries of an earlier version were altered, or the trail is another namespace's", e.Seq, e.ID)
	case e.PrevHash != before.Hash:
		v.found("entry %d (%s) does not continue entry %d: one of the two was altered or replaced", e.Seq, e.ID,
			before.Seq)
	}
}

// itself checks that the entry matches its hash. Its line must be exactly the encoding of the entry: anything that a
// decoder ignores also counts as an alteration.
func (v *Verifier) itself(line []byte, e *agent.AuditEntry) {
	want, err := Line(e)
	switch {
	case err != nil || e.Hash != hashEntry(e) || e.Actor != e.Principal:
		v.found("entry %d (%s) was altered: its hash is not that of its content", e.Seq, e.ID)
	case e.Erased:
		v.Erased++
		if bare := Erase(*e); !bytes.Equal(bytes.TrimRight(line, " "), want) || !sameEntry(&bare, e) {
			v.found("entry %d (%s) was altered: it is marked as erased and is not empty", e.Seq, e.ID)
		} else if !AboutSessions(e.Action) {
			v.found("entry %d (%s) was altered: its body was taken out, and an entry of %q is never erased", e.Seq,
				e.ID, e.Action)
		}
	case e.Digest != digestBody(e):
		v.found("entry %d (%s) was altered: its digest is not that of its body", e.Seq, e.ID)
	case !bytes.Equal(line, want):
		v.found("entry %d (%s) was altered: its line is not the one of such an entry", e.Seq, e.ID)
	}
}

func sameEntry(a, b *agent.AuditEntry) bool {
	x, err := Line(a)
	y, other := Line(b)
	return err == nil && other == nil && bytes.Equal(x, y)
}
