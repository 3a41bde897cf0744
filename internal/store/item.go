package store

import (
	"encoding/json"
	"io"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// An Item is one part of a namespace's content, for copying the namespace into another store. Exactly one field besides
// Namespace is set. The items of a namespace are contiguous: its Space comes first, a session before its records;
// calls, values and audit entries come in the order of their commits, contents from the least recently used on.
type Item struct {
	Namespace agent.Namespace

	Space      *NamespaceInfo
	Policy     *ItemPolicy
	Connection *agent.Connection
	Tool       *agent.Tool
	Artifact   *agent.Artifact
	Archived   *ItemArchived
	Program    *string // source text
	Session    *ItemSession
	Record     *ItemRecord
	Call       json.RawMessage // an entry of the call log
	Value      *ItemValue
	Pattern    *agent.PatternEvent
	Evidence   *agent.MethodEvidence
	Content    *Kept
	File       *ItemFile
	Spent      *Spent
	Audit      json.RawMessage // a line of the trail, exactly as the chain covers it
}

// ItemPolicy is a policy that differs from the default.
type ItemPolicy struct {
	Policy   json.RawMessage
	Revision int64
}

// ItemArchived is an archived tool or artifact; the other field is nil.
type ItemArchived struct {
	By       string // audit id of the operation that archived it
	At       time.Time
	Deleted  bool // it can be restored for DeletedLife only
	Tool     *agent.Tool
	Artifact *agent.Artifact
}

// ItemSession is a session with its context.
type ItemSession struct {
	agent.Session
	Context map[string]json.RawMessage
}

// ItemRecord is one record of a session's history.
type ItemRecord struct {
	SessionID string
	Record    json.RawMessage
}

// ItemValue is the part of a call that is kept for a limited time.
type ItemValue struct {
	CallID, SessionID string
	At                time.Time
	Owner             string // as in log entries; "" if it is unknown
	Outcome, Effects  json.RawMessage
	Key               *Idempotent // with the reply; nil means none
	Debug             int64       // size of the log entry's debug fields, which expire with the values
}

// ItemFile is a file. Open opens its bytes. It is called at most once, before the next item.
type ItemFile struct {
	agent.File
	Open func() (io.ReadCloser, error) `json:"-"`
}
