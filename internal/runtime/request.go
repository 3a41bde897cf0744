package runtime

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
)

// Errors of Call that mean no call took place: nothing was recorded.
var (
	ErrDraining  = errors.New("the daemon is shutting down")
	ErrQueueFull = errors.New("too many calls are waiting")
	ErrKeyReused = errors.New("the idempotency key was used with another request")
	ErrKeyInUse  = errors.New("a call with this idempotency key is still running")
)

// CallRequest is one call by a client.
type CallRequest struct {
	SessionID string
	Ephemeral bool   // the call makes the session of that id, for itself: ids.NewSession(true) gives one
	CallID    string // chosen by the caller when it must be known beforehand; "" for a new one
	Role      string // "" is the session's
	Method    string
	Args      []json.RawMessage
	Kwargs    json.RawMessage // an object; nil is {}
	Contract  *agent.Contract // over the session's and the registry's, by top-level key; nil for none
	History   json.RawMessage // the history input; nil for none
	Timeout   time.Duration   // of the whole call; 0 is the default, 10 minutes
	// once a model was asked for a program, the call goes on when its client goes without a word, so that the program is kept
	Outlives bool

	Owner          string // the access token's name, "local" without
	Operates       bool   // SessionID may be another's
	TraceID        string // from traceparent, or ""
	TraceParent    string // the whole header, when TraceID is from it
	IdempotencyKey string // scoped by owner and session; "" for none
	BodyHash       string // of the request, compared when the key comes again

	// is given what the call reports, before the call begins; nil: nobody follows it from there
	Follow func(*progress.Log)
}

// bytes is how much the call brings.
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

	// programs run, or asked of the model where more of them were refused than ran
	Attempts   int         `json:"attempts"`
	DurationMs float64     `json:"duration_ms"`
	Usage      agent.Usage `json:"usage"`
}

// Program says which program answered.
type Program struct {
	Source      string `json:"source"` // generated, persisted, repaired, none
	ArtifactHit bool   `json:"artifact_hit"`
	Generation  string `json:"generation,omitempty"`
	Checksum    string `json:"checksum,omitempty"`
	Trigger     string `json:"trigger,omitempty"`
	Doubted     bool   `json:"doubted,omitempty"` // a person called an answer of it wrong
	// purpose: a person has changed what the method is for since it was made, and no other could be had
	Stale     string          `json:"stale,omitempty"`
	Engine    string          `json:"engine,omitempty"`   // go, ssa or yaegi: what ran it
	Tier      string          `json:"tier,omitempty"`     // native for go, engine for another Engine
	BuildMs   float64         `json:"build_ms,omitempty"` // how long this call waited for the compiler
	Selection agent.Selection `json:"selection"`
}

// CallResult is what Call hands back: the reply encoded as it was committed, so that a replay under the same
// idempotency key is byte-equal, and what the API's headers need.
type CallResult struct {
	Body     []byte // JSON of Reply
	CallID   string
	TraceID  string
	Role     string // that was called; "" where it is answered from an earlier call
	Method   string
	OK       bool
	Replayed bool  // answered from an earlier call with the same idempotency key
	Err      error // of an asynchronous call: why it was not kept; then there is nothing else
}

// Introspection reports whether the daemon would answer a call of a method without a request to the model.
type Introspection struct {
	Responds bool    `json:"responds"`
	Via      *string `json:"via"` // setter or artifact; context, which does not respond; or null
}

// SessionRequest makes a session.
type SessionRequest struct {
	Role     string
	Model    string
	Contract *agent.Contract
	Context  json.RawMessage // an object or nil
	Debug    bool
	Metadata map[string]string
	Owner    string
}
