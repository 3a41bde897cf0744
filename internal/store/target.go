package store

import (
	"strings"
	"time"
)

// Target names a tool with its artifacts (Method empty), the tool alone, or one artifact.
type Target struct {
	Role       string    `json:"role"`
	Method     string    `json:"method,omitempty"`
	ToolOnly   bool      `json:"tool_only,omitempty"`
	LastUsedAt time.Time `json:"last_used_at,omitzero"`

	Until    time.Time `json:"restorable_until,omitzero"` // of what was deleted; says it, and changes nothing
	From     string    `json:"from,omitempty"`            // see Maintenance.Restore
	Restored string    `json:"restored,omitempty"`        // see Maintenance.Archive
}

// String names the tool, or the artifact as role.method.
func (t Target) String() string { return strings.TrimSuffix(t.Role+"."+t.Method, ".") }

// Of reports whether the target means what has that name; an empty method is the tool itself.
func (t Target) Of(role, method string) bool {
	return role == t.Role && (t.Method == "" && !t.ToolOnly || method == t.Method)
}
