package disk

import (
	"bytes"
	"path"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/chain"
)

// AuditReport is the result of verifying the audit trail of one namespace.
type AuditReport struct {
	Namespace agent.Namespace
	Entries   int64 // linked entries
	Earlier   int64 // entries of an earlier version, which precede the chain
	Erased    int64 // entries whose body was erased; they count as linked, too
	// end of the chain. Somebody should note its hash elsewhere: a trail that was truncated together with its
	// checkpoint is detected only against a noted hash.
	Head chain.Head
}

// NotedHead is the hash of an audit entry as somebody noted it.
type NotedHead struct {
	Namespace agent.Namespace
	Hash      string

	found bool
}

// notedHeads reports the noted hashes that no trail has.
func (v *verifier) notedHeads() {
	for _, n := range v.noted {
		if !n.found {
			v.problem(path.Join(namespaceDir(n.Namespace), auditFile),
				"no entry of namespace %s has the noted hash %s: the trail was cut off or altered", n.Namespace, n.Hash)
		}
	}
}

// name returns the namespace of the directory.
func (v *namespaceVerifier) name() agent.Namespace {
	if v.files.dir == "." {
		return agent.DefaultNamespace
	}
	return agent.Namespace(path.Base(v.files.dir))
}

// audit verifies the chain of the trail: first up to where the last checkpoint left the file, then the entries in the
// journal.
func (v *namespaceVerifier) audit() error {
	data, _, err := v.files.readFound(auditFile)
	if err != nil {
		return err
	}
	hashes := map[string]bool{}
	c := chain.NewVerifier(v.name(), func(h chain.Head) { hashes[h.Hash] = true })
	at := v.checkpoint.of(v.name())
	if at != nil {
		data = v.toCheckpoint(c, data, at)
	}
	addLines(c, data)
	for _, a := range v.audits[v.name()] {
		if at == nil && hashes[a.Hash] {
			// The checkpoint is lost, so the journal repeats what the file has.
			continue
		}
		line, err := chain.Line(a)
		if err != nil {
			return err
		}
		c.Add(line)
	}
	for _, found := range c.Found {
		v.problem(auditFile, "%s", found)
	}
	for i := range v.noted {
		if n := &v.noted[i]; n.Namespace == v.name() && hashes[n.Hash] {
			n.found = true
		}
	}
	if c.Entries+c.Earlier > 0 {
		v.r.Audit = append(v.r.Audit, AuditReport{v.name(), c.Entries, c.Earlier, c.Erased, c.Head})
	}
	return nil
}

// toCheckpoint adds the lines that the last checkpoint covers and returns the rest, or nil if the journal has the same
// entries.
func (v *namespaceVerifier) toCheckpoint(c *chain.Verifier, data []byte, at *checkpointed) (rest []byte) {
	known := min(at.Audit, int64(len(data)))
	addLines(c, data[:known])
	switch {
	case at.Audit > known:
		v.problem(auditFile, "has %d bytes; the last checkpoint left %d", known, at.Audit)
	case at.AuditHead != nil && c.Head != *at.AuditHead:
		v.problem(auditFile, "ends with entry %d (%s); the last checkpoint left it at entry %d (%s)", c.Head.Seq,
			c.Head.Hash, at.AuditHead.Seq, at.AuditHead.Hash)
	}
	if v.replayed {
		return nil
	}
	rest = data[known:]
	if len(bytes.TrimSpace(rest)) > 0 {
		v.problem(auditFile, "%d bytes stand behind where the last checkpoint left it", len(rest))
	}
	return rest
}

func addLines(c *chain.Verifier, data []byte) {
	for line := range bytes.Lines(data) {
		c.Add(bytes.TrimSuffix(line, []byte("\n")))
	}
}

// erasedInJournal reports whether the next start removes the directory of a namespace.
func (v *verifier) erasedInJournal(dir string) bool {
	return strings.HasSuffix(dir, erasedSuffix) || v.erased[agent.Namespace(path.Base(dir))] > 0
}
