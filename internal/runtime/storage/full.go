package storage

import (
	"fmt"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Shares that can be full.
const (
	ShareOwner     = "owner"
	ShareNamespace = "namespace"
	ShareDaemon    = "daemon" // bound of all namespaces together
	ShareDisk      = "disk"
)

// A FullError names the full share and the kind of data.
type FullError struct {
	Of    string // kind of data, as in store.Kinds
	Share string
	Owner string

	Used, Limit int64 // in bytes; 0 for a disk
}

func (e *FullError) Error() string {
	who := "the namespace"
	switch e.Share {
	case ShareOwner:
		who = e.Owner
	case ShareDaemon:
		who = "all namespaces together"
	case ShareDisk:
		return "the disk is full"
	}
	return fmt.Sprintf("%s: %s has %d bytes of %d", e.Of, who, e.Used, e.Limit)
}

// Hint returns how to make room.
func (e *FullError) Hint() string {
	if e.Share == ShareNamespace {
		return e.hint() + " Those of others are deleted by whoever operates the namespace; GET /v1/usage says whose take how much."
	}
	return e.hint()
}

func (e *FullError) hint() string {
	whose := map[string]string{ShareOwner: " of " + e.Owner}[e.Share]
	switch e.Of {
	case store.KindFiles:
		return "Delete files" + whose +
			" (DELETE /v1/files/{id}, recurgentd files rm), or the sessions that they belong to, or let them expire (policy retention.file_hours)."
	case store.KindContexts:
		return "Set what is large in contexts" + whose +
			" to null (PATCH /v1/sessions/{id}/context), or delete sessions (DELETE /v1/sessions/{id})."
	case store.KindHistories:
		return "Delete sessions" + whose +
			" (DELETE /v1/sessions/{id}), or have them expire (policy retention.session_days)."
	case store.KindValues:
		return "Delete sessions" + whose +
			" (DELETE /v1/sessions/{id}), or wait: values are kept for retention.value_hours (policy)."
	case store.KindTools:
		return "Have tools" + whose +
			" archived that nobody uses (DELETE /v1/tools/{role}, recurgentd tools archive), or delete sessions whose calls are kept as tests."
	}
	return "Delete examples" + whose +
		" (PUT /v1/tools/{role}/methods/{method}/examples) or verdicts (DELETE /v1/calls/{id}/verdict)."
}

// Details returns the error's members on the wire.
func (e *FullError) Details() map[string]any {
	return map[string]any{"share": e.Share, "used": e.Used, "limit": e.Limit, "of": e.Of}
}

// Outcome returns the outcome of a call that failed because a share is full. It does not count against the program.
func (e *FullError) Outcome() agent.Outcome {
	o := agent.Failed(agent.ErrResourceExhausted, "there is no room for "+e.Error()+". "+e.Hint())
	o.Retriable, o.Metadata = false, e.Details()
	return o
}

// IsFull reports whether an outcome came from FullError.Outcome.
func IsFull(o *agent.Outcome) bool {
	return o.ErrorType == agent.ErrResourceExhausted && !o.Authored && o.Metadata["share"] != nil
}
