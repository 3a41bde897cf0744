package agent

import (
	"cmp"
	"encoding/json"
	"time"
)

// Session is one conversation: a default role, a JSON context, a history. The context and the history are kept
// apart from it (store.Store).
type Session struct {
	ID       string            `json:"id"`
	Role     string            `json:"role"`
	Model    string            `json:"model,omitempty"`    // overrides the daemon's model
	Contract *Contract         `json:"contract,omitempty"` // default for calls of the session's role
	Debug    bool              `json:"debug"`
	Metadata map[string]string `json:"metadata,omitempty"`
	Owner    string            `json:"owner,omitempty"` // the access token's name; "local" where there is none
	// made for a call that named no session; see ids.NewSession
	Ephemeral   bool      `json:"ephemeral,omitempty"`
	CreatedAt   time.Time `json:"created_at"`
	UpdatedAt   time.Time `json:"updated_at"`
	HistorySize int       `json:"history_size"` // records, nested ones included
	Revision    int64     `json:"revision"`
}

// LocalOwner is the owner of what is done without an access token.
const LocalOwner = "local"

// OwnedBy reports whether the session is the owner's.
func (s *Session) OwnedBy(owner string) bool {
	return cmp.Or(s.Owner, LocalOwner) == cmp.Or(owner, LocalOwner)
}

// LoggedOwner returns the owner as log entries hold it.
func LoggedOwner(owner string) string {
	if owner == LocalOwner {
		return ""
	}
	return owner
}

// OwnerOf returns the owner that an entry of this process names.
func OwnerOf(e *LogEntry) string { return cmp.Or(e.Owner, LocalOwner) }

// ContextChange is what a call did to the top-level keys of its session's context.
type ContextChange struct {
	Set    map[string]json.RawMessage `json:"set,omitempty"`
	Delete []string                   `json:"delete,omitempty"`
}

// Empty reports whether nothing changes.
func (c *ContextChange) Empty() bool { return c == nil || len(c.Set) == 0 && len(c.Delete) == 0 }

// Apply changes the context in place.
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

// Contract is what a role or method promises (seed 003). Deliverable is machine-checked, in the seeds' constraint
// form or as JSON Schema 2020-12; Acceptance and FailurePolicy are prose for the model.
type Contract struct {
	Purpose       string          `json:"purpose,omitempty"`
	Deliverable   json.RawMessage `json:"deliverable,omitempty"`
	Acceptance    json.RawMessage `json:"acceptance,omitempty"`
	FailurePolicy json.RawMessage `json:"failure_policy,omitempty"`
	Signature     json.RawMessage `json:"signature,omitempty"` // {inputs, outputs}
}

// Empty reports whether the contract says nothing.
func (c *Contract) Empty() bool {
	return c == nil || c.Purpose == "" && len(c.Deliverable) == 0 && len(c.Acceptance) == 0 &&
		len(c.FailurePolicy) == 0 && len(c.Signature) == 0
}

// Tool is a registry entry: a role that programs and clients know of (seed 001's data model).
type Tool struct {
	Role string `json:"role"`
	Contract
	Methods    map[string]Contract `json:"methods,omitempty"` // contracts per method, over the role's
	CreatedAt  time.Time           `json:"created_at"`
	LastUsedAt time.Time           `json:"last_used_at"`
	UsageCount int64               `json:"usage_count"`
	// who registered the contract, or whose call did; "" in older files
	Owner string `json:"owner,omitempty"`
	// a person registered the role's contract: it wins over what programs delegate with
	ByPerson bool `json:"by_person,omitempty"`
	// nobody registered the role: its first program did when it was called
	ByUse     bool       `json:"by_use,omitempty"`
	Proposals *Proposals `json:"proposals,omitempty"` // of stricter contracts, by programs
	Revision  int64      `json:"revision"`
}

// Implied returns the registry entry that stored programs stand for where nobody registered their role and no call used it yet: a person put them in. It returns nil
// without a program.
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
