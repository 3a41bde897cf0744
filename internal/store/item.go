package store

import (
	"encoding/json"
	"io"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// An Item is one part of what a namespace holds, for carrying all of it into another store: exactly one of its fields behind the namespace is
// set. The items of a namespace come together, its Space first, a session before its records, calls, values and audit entries in the order of
// their commits, contents with the least recently used first.
type Item struct {
	Namespace agent.Namespace

	Space      *NamespaceInfo
	Policy     *ItemPolicy
	Connection *agent.Connection
	Tool       *agent.Tool
	Artifact   *agent.Artifact
	Archived   *ItemArchived
	Program    *string // its text
	Session    *ItemSession
	Record     *ItemRecord
	Call       json.RawMessage // an entry of the call log
	Value      *ItemValue
	Pattern    *agent.PatternEvent
	Evidence   *agent.MethodEvidence
	Content    *Kept
	File       *ItemFile
	Spent      *Spent
	Audit      json.RawMessage // a line of the trail, as the chain covers it
}

// ItemPolicy is a policy that somebody changed.
type ItemPolicy struct {
	Policy   json.RawMessage
	Revision int64
}

// ItemArchived is an archived tool or artifact; the other one is nil.
type ItemArchived struct {
	By       string // the audit id of the operation
	At       time.Time
	Deleted  bool // it is gone for good DeletedLife later
	Tool     *agent.Tool
	Artifact *agent.Artifact
}

// ItemSession is a session with its context.
type ItemSession struct {
	agent.Session
	Context map[string]json.RawMessage
}

// ItemRecord is a record of a session's history.
type ItemRecord struct {
	SessionID string
	Record    json.RawMessage
}

// ItemValue is what is kept of a call for a while.
type ItemValue struct {
	CallID, SessionID string
	At                time.Time
	Owner             string // as in log entries; "" also where it is not known
	Outcome, Effects  json.RawMessage
	Key               *Idempotent // with the reply; nil for none
	Debug             int64       // bytes of the log entry that go with it
}

// ItemFile is a file. Open opens its bytes; it is called at most once, before the next item.
type ItemFile struct {
	agent.File
	Open func() (io.ReadCloser, error) `json:"-"`
}
