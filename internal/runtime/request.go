package runtime

import (
	"encoding/json"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/keys"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
	"github.com/recurgentd/recurgentd/internal/runtime/running"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Errors of Call that mean that no call took place and nothing was recorded.
var (
	ErrDraining  = running.ErrDraining
	ErrKeyReused = keys.ErrReused
	ErrKeyInUse  = keys.ErrInUse
)

// CallRequest is a client's request for a call.
type CallRequest struct {
	SessionID string
	Ephemeral bool   // the call creates the session SessionID for itself; ids.NewSession(true) returns such an ID
	CallID    string // set by a caller that must know it beforehand; "" generates one
	Role      string // "" means the session's role
	Method    string
	Args      []json.RawMessage
	Kwargs    json.RawMessage // an object; nil means {}
	// merged over the session's and the registry's contract, by top-level key; nil if there is none
	Contract *agent.Contract
	History  json.RawMessage // history input; nil if there is none
	Timeout  time.Duration   // limit of the whole call; 0 means Options.CallTimeout

	Owner          string // name of the access token; "local" without one
	Operates       bool   // SessionID may belong to another owner
	TraceID        string // from traceparent; "" generates one
	TraceParent    string // the whole header, if TraceID comes from it
	IdempotencyKey string // scoped by owner and session; "" if there is none
	BodyHash       string // hash of the request, compared when the key is used again

	// Follow receives the call's progress log before the call begins; nil means that nobody follows
	Follow func(*progress.Log)
}

// bytes returns the size of the call's inputs.
func (q *CallRequest) bytes() int {
	n := len(q.Kwargs) + len(q.History)
	for _, arg := range q.Args {
		n += len(arg)
	}
	return n
}

// Reply is the answer to a call.
type Reply struct {
	CallID    string        `json:"call_id"`
	SessionID string        `json:"session_id"`
	TraceID   string        `json:"trace_id"`
	Role      string        `json:"role"`
	Method    string        `json:"method"`
	Outcome   agent.Outcome `json:"outcome"`
	Program   Program       `json:"program"`

	// programs run, or programs requested from the model if that is more
	Attempts   int         `json:"attempts"`
	DurationMs float64     `json:"duration_ms"`
	Usage      agent.Usage `json:"usage"`
}

// Program describes the program that answered.
type Program struct {
	Source      string `json:"source"` // generated, persisted, repaired, none
	ArtifactHit bool   `json:"artifact_hit"`
	Generation  string `json:"generation,omitempty"`
	Checksum    string `json:"checksum,omitempty"`
	Trigger     string `json:"trigger,omitempty"`
	Doubted     bool   `json:"doubted,omitempty"` // a person judged one of its answers wrong
	// "purpose" if a person changed the method's purpose since the program was made, and no other could be obtained
	Stale     string          `json:"stale,omitempty"`
	Engine    string          `json:"engine,omitempty"`   // what ran the program: go, ssa or yaegi
	Tier      string          `json:"tier,omitempty"`     // native for go, engine for the other engines
	BuildMs   float64         `json:"build_ms,omitempty"` // time that this call waited for the compiler
	Selection agent.Selection `json:"selection"`
}

// CallResult is the result of Call. Body is the reply as it was committed, which makes a replay under the same
// idempotency key byte-equal. The other fields serve the API's headers.
type CallResult struct {
	Body     []byte // JSON of Reply
	CallID   string
	TraceID  string
	Role     string // role that was called; "" in a replay
	Method   string
	OK       bool
	Replayed bool  // answered from an earlier call with the same idempotency key
	Err      error // why an asynchronous call was not committed; then no other field is set
}

// replayed returns the stored answer of a call as a CallResult.
func replayed(was *store.Idempotent) CallResult {
	var reply struct {
		TraceID string `json:"trace_id"`
		Outcome struct {
			OK bool `json:"ok"`
		} `json:"outcome"`
	}
	_ = json.Unmarshal(was.Reply, &reply) // written by the daemon; if it fails, only headers are missing
	return CallResult{Body: was.Reply, CallID: was.CallID, TraceID: reply.TraceID, OK: reply.Outcome.OK, Replayed: true}
}

// Introspection reports whether the daemon would answer a call of a method without a model request.
type Introspection struct {
	Responds bool    `json:"responds"`
	Via      *string `json:"via"` // "setter" or "artifact"; "context", which does not respond; or nil
}
