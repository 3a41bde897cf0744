package store

import (
	"maps"
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// ToolChange is a change of the registry. It creates an unknown tool if Register is set.
type ToolChange struct {
	Role     string          `json:"role"`
	At       time.Time       `json:"at"`
	Used     int64           `json:"used,omitempty"`      // added to the usage count
	Register *agent.Contract `json:"register,omitempty"`  // the new contract
	IfAbsent bool            `json:"if_absent,omitempty"` // apply Register only if the role is unknown
	ByUse    bool            `json:"by_use,omitempty"`    // the role is registered by its first program
	Owner    string          `json:"owner,omitempty"`     // owner of the call that registers the role
}

// Apply returns the tool after the change, and whether there is anything to store. It returns nil, false if the role is
// unknown and the change does not register it. old may be nil and stays as it is.
func (c *ToolChange) Apply(old *agent.Tool) (*agent.Tool, bool) {
	if old == nil && c.Register == nil {
		return nil, false
	}
	next := agent.Tool{Role: c.Role, CreatedAt: c.At, LastUsedAt: c.At}
	if old != nil {
		next = *old
	}
	if c.Register != nil && (old == nil || !c.IfAbsent) {
		next.Contract, next.Owner, next.ByUse = *c.Register, c.Owner, c.ByUse
	}
	next.UsageCount += c.Used
	if c.Used > 0 && c.At.After(next.LastUsedAt) {
		next.LastUsedAt = c.At
	}
	next.Revision++
	return &next, true
}

// ReplaceTool returns the tool that PutTool stores in place of old: t's contracts with old's usage. old is nil if there
// is none. ErrConflict if old has another revision.
func ReplaceTool(old *agent.Tool, t agent.Tool, revision int64, now time.Time) (*agent.Tool, error) {
	have := int64(0)
	if old != nil {
		have = old.Revision
	}
	if !Matches(revision, have) {
		return nil, ErrConflict
	}
	if old != nil {
		t.CreatedAt, t.LastUsedAt, t.UsageCount = old.CreatedAt, old.LastUsedAt, old.UsageCount
	} else {
		if t.CreatedAt.IsZero() {
			t.CreatedAt = now
		}
		if t.LastUsedAt.IsZero() {
			t.LastUsedAt = t.CreatedAt
		}
	}
	t.Revision = have + 1
	return &t, nil
}

// ToolBytes calls add with the bytes of a registered role. Its contracts count for its owner, a proposed contract for
// the owner of the call. A nil tool has none.
func ToolBytes(t *agent.Tool, add func(owner string, b Bytes)) {
	if t == nil {
		return
	}
	n := roleFixed + contractBytes(&t.Contract)
	for name, c := range t.Methods {
		n += int64(len(name)) + contractBytes(&c)
	}
	if p := t.Proposals; p != nil {
		for _, checked := range p.Rejected {
			n += int64(len(checked))
		}
		for i := range p.Open {
			o := &p.Open[i]
			add(o.Owner, Bytes{Tools: roleFixed + int64(len(o.ID)+len(o.Checked)+len(o.By)) +
				contractBytes(&o.Contract)})
		}
	}
	add(t.Owner, Bytes{Tools: n})
}

func contractBytes(c *agent.Contract) int64 {
	return int64(len(c.Purpose)) + jsonBytes(c.Deliverable, c.Acceptance, c.FailurePolicy, c.Signature)
}

// SameBody reports whether a change left the artifact as it was, except for counters, states and streaks. Artifacts are
// never changed in place, so comparing slices and pointers by identity is enough. It may report false for equal
// artifacts.
func SameBody(a, b *agent.Artifact) bool {
	return a.Code == b.Code && len(a.Generations) == len(b.Generations) && a.Manifest == b.Manifest &&
		sameList(a.Rejections, b.Rejections) && sameList(a.Displaced, b.Displaced) &&
		sameList(a.Examples, b.Examples) &&
		sameList(a.Verdicts, b.Verdicts) && sameList(a.Failures, b.Failures) && sameList(a.Drifts, b.Drifts) &&
		slices.EqualFunc(a.Generations, b.Generations, sameProgram)
}

func sameProgram(g, h *agent.Generation) bool {
	return g == h || g.ID == h.ID && g.Code == h.Code && g.Interface == h.Interface && g.Effects == h.Effects &&
		g.MadeFor == h.MadeFor && g.Asked == h.Asked &&
		sameList(g.Facts, h.Facts) && sameList(g.ChangedAnswers, h.ChangedAnswers) &&
		sameList(g.SolverShape, h.SolverShape) &&
		sameList(g.Fixtures, h.Fixtures) && maps.Equal(g.Shapes, h.Shapes) && maps.Equal(g.Outlines, h.Outlines)
}

// sameList reports whether two slices are the same, not only equal.
func sameList[V any](a, b []V) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
