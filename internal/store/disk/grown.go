package disk

import (
	"encoding/json"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// grown is how many bytes an entry adds to what an owner has stored; negative numbers subtract.
type grown struct {
	Owner     string `json:"o,omitempty"`
	Contexts  int64  `json:"c,omitempty"`
	Histories int64  `json:"h,omitempty"`
	Tools     int64  `json:"t,omitempty"`
	Examples  int64  `json:"x,omitempty"`
}

// grow records growth in the entry. A replay cannot compute it, because the files may already include the entry.
func (e *entry) grow(owner string, b store.Bytes) {
	for i := range e.Grown {
		if g := &e.Grown[i]; g.Owner == owner {
			*g = grown{owner, g.Contexts + b.Contexts, g.Histories + b.Histories, g.Tools + b.Tools,
				g.Examples + b.Examples}
			return
		}
	}
	e.Grown = append(e.Grown, grown{owner, b.Contexts, b.Histories, b.Tools, b.Examples})
}

// shrink is grow with the opposite sign.
func (e *entry) shrink(owner string, b store.Bytes) { e.grow(owner, store.Bytes{}.Minus(b)) }

// growErased records the growth by a record whose session has been erased from the files already. The session's
// deletion, a later entry, subtracts it again.
func (e *entry) growErased() error {
	if e.Record == nil {
		return nil
	}
	line, err := withSeq(e.Record, e.Seq)
	owner := ""
	if e.call != nil {
		owner = e.call.log.Owner
	}
	e.grow(owner, store.Bytes{Histories: int64(len(line))})
	return err
}

// growArtifact records by how much an artifact grows; old or next may be nil.
func (e *entry) growArtifact(old, next *agent.Artifact) {
	if old != nil && next != nil && store.SameBody(old, next) {
		return
	}
	store.ArtifactBytes(old, e.shrink)
	store.ArtifactBytes(next, e.grow)
}

// growTool records by how much a registered tool grows; old or next may be nil.
func (e *entry) growTool(old, next *agent.Tool) {
	if old != nil && next != nil && old.Owner == next.Owner && sameContract(old, next) {
		return
	}
	store.ToolBytes(old, e.shrink)
	store.ToolBytes(next, e.grow)
}

// growContext records by how much the context of the entry's session grows. It takes earlier entries of the batch into
// account.
func (b *batch) growContext(e *entry) {
	x := e.planned.session
	x.mu.RLock()
	defer x.mu.RUnlock()
	n := store.ContextGrowth(e.Context, func(key string) (json.RawMessage, bool) {
		for _, c := range slices.Backward(b.contexts) {
			if c.session != x {
				continue
			}
			if slices.Contains(c.change.Delete, key) {
				return nil, false
			}
			if v, set := c.change.Set[key]; set {
				return v, true
			}
		}
		v, has := x.context[key]
		return v, has
	})
	if n != 0 {
		e.grow(x.meta.Owner, store.Bytes{Contexts: n})
	}
	b.contexts = append(b.contexts, plannedContext{x, e.Context})
}

// growMoved records what is archived or restored. Only what is in use counts.
func (e *entry) growMoved() {
	for _, x := range e.away {
		x.each(e.shrink)
	}
	for _, x := range e.restored {
		x.each(e.grow)
	}
}

// each calls visit with the bytes that x takes while it is in use, by owner.
func (x archived) each(visit func(owner string, b store.Bytes)) {
	store.ToolBytes(x.tool, visit)
	if x.artifact != nil {
		store.ArtifactBytes(x.artifact.a, visit)
	}
}
