package disk

// held is a document whose content is held in memory in full.
type held struct {
	name   string
	lsn    uint64                  // of the file when the store was opened: the file includes the entries up to it
	render func(head) (any, error) // returns the document; the caller holds shared.mu

	behind bool // the file lacks something that people look at; guarded by shared.mu
	lags   bool // the file lacks only figures, which wait for a checkpoint; guarded by shared.mu
}

// heldDoc is a rendered document that is to be written.
type heldDoc struct {
	held         *held
	doc          any
	err          error // of rendering it
	behind, lags bool  // the flags of held before it was rendered
}

// gather renders the document if it is behind, or if it lags and full is set. Otherwise it returns nil. The caller
// holds shared.mu.
func (h *held) gather(at head, full bool) *heldDoc {
	if !h.behind && !(full && h.lags) {
		return nil
	}
	d := &heldDoc{held: h, behind: h.behind, lags: h.lags}
	d.doc, d.err = h.render(at)
	h.behind, h.lags = false, false
	return d
}

// write writes the document. If that fails, the document is pending again.
func (d *heldDoc) write(f *files) error {
	err := d.err
	if err == nil {
		err = f.writeDoc(d.held.name, d.doc)
	}
	if err != nil {
		d.giveBack(f.shared)
	}
	return err
}

// giveBack marks the document as pending again.
func (d *heldDoc) giveBack(s *shared) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d.held.behind, d.held.lags = d.held.behind || d.behind, d.held.lags || d.lags
}

// Names of the documents that are held in memory, the checkpoint and the audit trail.
const (
	registryFile    = "tools/registry.json"
	indexFile       = "tools/index.json"
	policyFile      = "policy.json"
	patternsFile    = "patterns.json"
	evidenceFile    = "evidence.json"
	contentFile     = "content.json"
	filesFile       = "files.json"
	connectionsFile = "connections.json"
	spendFile       = "spend.json"
	checkpointFile  = "journal/checkpoint.json"
	auditFile       = "audit.jsonl"
)
