package disk

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// maxPatterns bounds the pattern events of all roles together. Above it, the roles without an event for the longest
// time lose theirs.
const maxPatterns = 20_000

// patterns is the part that holds the pattern events.
type patterns struct {
	n *namespace

	roles map[string][]agent.PatternEvent // oldest first; guarded by shared.mu, as all below
	count int                             // number of events of all roles
	doc   held
}

// patternsDoc is patterns.json.
type patternsDoc struct {
	head
	Roles map[string][]agent.PatternEvent `json:"roles"`
}

func newPatterns(n *namespace) *patterns {
	p := &patterns{n: n, roles: map[string][]agent.PatternEvent{}}
	p.doc = held{name: patternsFile, render: func(h head) (any, error) {
		return patternsDoc{h, maps.Clone(p.roles)},
			nil
	}}
	return p
}

func (p *patterns) load() (corrupt bool, err error) {
	var doc patternsDoc
	corrupt, err = readOptional(p.n.files, patternsFile, &doc, nil)
	p.doc.lsn = doc.LSN
	for role, events := range doc.Roles {
		if len(events) > 0 {
			p.roles[role] = events
			p.count += len(events)
		}
	}
	return corrupt, err
}

// add adds an event. The caller holds shared.mu, as in the next two methods.
func (p *patterns) add(e *agent.PatternEvent) {
	events := append(p.roles[e.Role], *e)
	p.count++
	if len(events) > store.PatternsKept {
		p.count -= len(events) - store.PatternsKept
		events = events[len(events)-store.PatternsKept:]
	}
	p.roles[e.Role] = events
	p.doc.lags = true
	if p.count > maxPatterns {
		p.thin()
	}
}

// thin drops the events of the roles that went without one for the longest time, until a tenth of the room is free.
func (p *patterns) thin() {
	newest := func(role string) string { e := p.roles[role]; return e[len(e)-1].Timestamp }
	roles := slices.SortedFunc(maps.Keys(p.roles), func(a, b string) int {
		return strings.Compare(newest(a),
			newest(b))
	})
	for _, role := range roles {
		if p.count <= maxPatterns*9/10 {
			return
		}
		p.count -= len(p.roles[role])
		delete(p.roles, role)
	}
}

// forget drops the events of a session.
func (p *patterns) forget(session string) {
	for role, events := range p.roles {
		kept := slices.DeleteFunc(slices.Clone(events),
			func(e agent.PatternEvent) bool { return e.SessionID == session })
		if len(kept) == len(events) {
			continue
		}
		p.count -= len(events) - len(kept)
		p.doc.lags = true
		if p.roles[role] = kept; len(kept) == 0 {
			delete(p.roles, role)
		}
	}
}

// Patterns is part of store.Namespace.
func (p *patterns) Patterns(_ context.Context, role string) ([]agent.PatternEvent, error) {
	p.n.mu.RLock()
	defer p.n.mu.RUnlock()
	return append([]agent.PatternEvent{}, p.roles[role]...), nil
}
