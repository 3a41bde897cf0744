package disk

import (
	"encoding/json"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// grown is by how much an entry makes what an owner has larger, or smaller.
type grown struct {
	Owner     string `json:"o,omitempty"`
	Contexts  int64  `json:"c,omitempty"`
	Histories int64  `json:"h,omitempty"`
	Tools     int64  `json:"t,omitempty"`
	Examples  int64  `json:"x,omitempty"`
}

// grow notes growth that a replay could not work out: its files may have the entry already.
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

// shrink is grow of the opposite.
func (e *entry) shrink(owner string, b store.Bytes) { e.grow(owner, store.Bytes{}.Minus(b)) }

// growErased notes what the record of a session takes whose files are erased already: its deletion, further on, takes it away again.
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

// growArtifact notes what an artifact takes more than before; nil takes nothing.
func (e *entry) growArtifact(old, next *agent.Artifact) {
	if old != nil && next != nil && store.SameBody(old, next) {
		return
	}
	store.ArtifactBytes(old, e.shrink)
	store.ArtifactBytes(next, e.grow)
}

// growTool notes what a registered role takes more than before; nil takes nothing.
func (e *entry) growTool(old, next *agent.Tool) {
	if old != nil && next != nil && old.Owner == next.Owner && sameContract(old, next) {
		return
	}
	store.ToolBytes(old, e.shrink)
	store.ToolBytes(next, e.grow)
}

// growContext notes what the context of the entry's session takes more than before. Earlier entries of the batch count.
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

// growMoved notes what is archived or restored: only what is in use counts.
func (e *entry) growMoved() {
	for _, x := range e.away {
		x.each(e.shrink)
	}
	for _, x := range e.restored {
		x.each(e.grow)
	}
}

// each visits what it takes where it is in use.
func (x archived) each(visit func(owner string, b store.Bytes)) {
	store.ToolBytes(x.tool, visit)
	if x.artifact != nil {
		store.ArtifactBytes(x.artifact.a, visit)
	}
}
