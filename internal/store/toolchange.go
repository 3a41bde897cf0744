package store

import (
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
