package store

import (
	"strings"
	"time"
)

// Target names a tool with its artifacts (empty Method), the tool alone (ToolOnly), or one artifact.
type Target struct {
	Role       string    `json:"role"`
	Method     string    `json:"method,omitempty"`
	ToolOnly   bool      `json:"tool_only,omitempty"`
	LastUsedAt time.Time `json:"last_used_at,omitzero"`

	Until    time.Time `json:"restorable_until,omitzero"` // deadline for restoring what was deleted; output only
	From     string    `json:"from,omitempty"`            // see Maintenance.Restore
	Restored string    `json:"restored,omitempty"`        // see Maintenance.Archive
}

// String returns the role, or role.method for an artifact.
func (t Target) String() string { return strings.TrimSuffix(t.Role+"."+t.Method, ".") }

// Of reports whether the target covers that artifact or, if method is empty, that tool.
func (t Target) Of(role, method string) bool {
	return role == t.Role && (t.Method == "" && !t.ToolOnly || method == t.Method)
}
