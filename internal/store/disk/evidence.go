package disk

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// rebuildCalls bounds the calls from which missing evidence is rebuilt: the newest ones in the log that are evidence.
const rebuildCalls = 20_000

// evidence is the part that aggregates the outcomes of each method's calls. The aggregates are derived from the call
// log and outlive it.
type evidence struct {
	n *namespace

	all *store.Evidence // guarded by shared.mu, as all below
	doc held
}

// evidenceDoc is evidence.json.
type evidenceDoc struct {
	head
	Methods []agent.MethodEvidence `json:"methods"`
}

func newEvidence(n *namespace) *evidence {
	p := &evidence{n: n, all: store.NewEvidence(nil)}
	p.doc = held{name: evidenceFile, render: func(h head) (any, error) { return evidenceDoc{h, p.all.All()}, nil }}
	return p
}

// load reads evidence.json. If it is missing, as in directories of earlier versions, rebuild must follow.
func (p *evidence) load() (corrupt bool, err error) {
	var doc evidenceDoc
	corrupt, err = readOptional(p.n.files, evidenceFile, &doc, nil)
	p.doc.lsn = doc.LSN
	p.all = store.NewEvidence(doc.Methods)
	return corrupt, err
}

// rebuild derives the evidence from the newest calls in the log if none was stored. It must run after the log is opened
// and before the journal is replayed.
func (p *evidence) rebuild() error {
	if p.doc.lsn > 0 {
		return nil
	}
	var newest []agent.LogEntry // newest first
	err := p.n.calls.entries.Backward(context.Background(), p.n.calls.entries.End(), func(line []byte) (bool, error) {
		var e agent.LogEntry
		if json.Unmarshal(line, &e) == nil && e.IsEvidence() {
			e.Args, e.Kwargs, e.Context, e.SolverShape = nil, nil, nil, nil
			newest = append(newest, e)
		}
		return len(newest) == rebuildCalls, nil
	})
	if err != nil {
		return err
	}
	for _, e := range slices.Backward(newest) {
		p.all.Add(&e)
	}
	for _, role := range p.n.catalog.ranking.Roles() {
		for _, method := range p.n.catalog.ranking.Methods(role) {
			// Verdicts are not in the log, so each method counts as judged.
			p.all.Judge(role, method)
		}
	}
	p.doc.lags = len(newest) > 0
	return nil
}

// add adds the call and the verdicts of a journal entry. The caller holds shared.mu.
func (p *evidence) add(e *entry) {
	if e.lsn <= p.doc.lsn {
		return
	}
	if e.call != nil && !e.skipLog {
		p.all.Add(&e.call.log)
		p.doc.lags = true
	}
	for i := range e.Artifacts {
		if c := &e.Artifacts[i]; c.Verdict != nil {
			p.all.Judge(c.Role, c.MethodName)
			p.doc.lags = true
		}
	}
}

// Evidence is part of store.Namespace.
func (p *evidence) Evidence(_ context.Context, role, method string) (agent.MethodEvidence, error) {
	p.n.mu.RLock()
	defer p.n.mu.RUnlock()
	return p.all.Of(role, method), nil
}

// AllEvidence is part of store.Namespace.
func (p *evidence) AllEvidence(_ context.Context) ([]agent.MethodEvidence, error) {
	p.n.mu.RLock()
	defer p.n.mu.RUnlock()
	return p.all.Remarkable(), nil
}
