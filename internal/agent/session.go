package agent

import (
	"cmp"
	"encoding/json"
	"time"
)

// Session is a conversation: a default role, a JSON context and a history. The store keeps the context and the history
// separately (store.Store).
type Session struct {
	ID       string            `json:"id"`
	Role     string            `json:"role"`
	Model    string            `json:"model,omitempty"`    // overrides the daemon's model
	Contract *Contract         `json:"contract,omitempty"` // default for calls of the session's role
	Debug    bool              `json:"debug"`
	Metadata map[string]string `json:"metadata,omitempty"`
	Owner    string            `json:"owner,omitempty"` // the access token's name, or "local"
	// Ephemeral means that it was made for a call that named no session; see ids.NewSession.
	Ephemeral   bool      `json:"ephemeral,omitempty"`
	CreatedAt   time.Time `json:"created_at"`
	UpdatedAt   time.Time `json:"updated_at"`
	HistorySize int       `json:"history_size"` // number of records, including those of nested calls
	Revision    int64     `json:"revision"`
}

// LocalOwner is the owner of data created without an access token.
const LocalOwner = "local"

// OwnedBy reports whether the session belongs to the owner. "" counts as LocalOwner on both sides.
func (s *Session) OwnedBy(owner string) bool {
	return cmp.Or(s.Owner, LocalOwner) == cmp.Or(owner, LocalOwner)
}

// LoggedOwner returns the owner in the form of log entries: "" for LocalOwner.
func LoggedOwner(owner string) string {
	if owner == LocalOwner {
		return ""
	}
	return owner
}

// OwnerOf returns the owner of an entry: LocalOwner if it names none.
func OwnerOf(e *LogEntry) string { return cmp.Or(e.Owner, LocalOwner) }

// ContextChange holds a call's changes to the top-level keys of its session's context.
type ContextChange struct {
	Set    map[string]json.RawMessage `json:"set,omitempty"`
	Delete []string                   `json:"delete,omitempty"`
}

// Empty reports whether nothing changes. c may be nil.
func (c *ContextChange) Empty() bool { return c == nil || len(c.Set) == 0 && len(c.Delete) == 0 }

// Apply changes the context in place. c may be nil.
func (c *ContextChange) Apply(context map[string]json.RawMessage) {
	if c == nil {
		return
	}
	for k, v := range c.Set {
		context[k] = v
	}
	for _, k := range c.Delete {
		delete(context, k)
	}
}

// Contract describes what a role or method promises (seed 003). Deliverable is machine-checked, in the seeds'
// constraint form or as JSON Schema 2020-12. Acceptance and FailurePolicy are prose for the model.
type Contract struct {
	Purpose       string          `json:"purpose,omitempty"`
	Deliverable   json.RawMessage `json:"deliverable,omitempty"`
	Acceptance    json.RawMessage `json:"acceptance,omitempty"`
	FailurePolicy json.RawMessage `json:"failure_policy,omitempty"`
	Signature     json.RawMessage `json:"signature,omitempty"` // {inputs, outputs}
}

// Empty reports whether no member is set. c may be nil.
func (c *Contract) Empty() bool {
	return c == nil || c.Purpose == "" && len(c.Deliverable) == 0 && len(c.Acceptance) == 0 &&
		len(c.FailurePolicy) == 0 && len(c.Signature) == 0
}

// Tool is a registry entry: a role known to programs and clients (seed 001's data model).
type Tool struct {
	Role string `json:"role"`
	Contract
	Methods    map[string]Contract `json:"methods,omitempty"` // per method; they override the role's
	CreatedAt  time.Time           `json:"created_at"`
	LastUsedAt time.Time           `json:"last_used_at"`
	UsageCount int64               `json:"usage_count"`
	// Owner registered the contract, or made the call that did; "" in older files.
	Owner string `json:"owner,omitempty"`
	// ByPerson means that a person registered the role's contract, which takes precedence over contracts of delegating
	// programs.
	ByPerson bool `json:"by_person,omitempty"`
	// ByUse means that nobody registered the role; calling its first program did.
	ByUse     bool       `json:"by_use,omitempty"`
	Proposals *Proposals `json:"proposals,omitempty"` // contracts proposed by programs
	Revision  int64      `json:"revision"`
}

// Implied returns the registry entry for stored programs of a role that was neither registered nor called, because a
// person installed them. It returns nil if no artifact has a current program.
func Implied(all []*Artifact) (t *Tool) {
	for _, a := range all {
		if a.Current() == nil {
			continue
		}
		for _, g := range a.Generations {
			if t == nil || g.CreatedAt.Before(t.CreatedAt) {
				t = &Tool{Role: a.Role, CreatedAt: g.CreatedAt, Owner: a.Owner, ByUse: true}
			}
		}
	}
	return t
}
