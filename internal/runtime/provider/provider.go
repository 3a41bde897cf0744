// Package provider is the access to the model. A Provider turns a prompt into a program's text, or a conversation into a
// reply: openai speaks to any OpenAI-compatible server, replay answers from a recording, and record wraps another
// Provider and writes a recording. Retries, backoff and time limits are handled here; whether a request may be sent is
// the caller's decision (Charge).
//
// A model's reply is untrusted text, and the package checks only its outer shape. It knows nothing of runners or stores.
package provider

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/provider/reply"
)

// Kinds of a program request.
const (
	KindForge  = "forge"
	KindRepair = "repair"
)

// Message is one message of a conversation: Role is system, user or assistant.
type Message struct{ Role, Content string }

// Request asks for a program.
type Request struct {
	Kind         string // KindForge or KindRepair
	Role, Method string // whose program; recordings are keyed on them
	MayKeep      bool   // the answer may be that the program which the messages show is kept
	Model        string
	Messages     []Message
	TraceParent  string      // W3C traceparent to hand on, or ""
	Owner        agent.Owner // whose share of the requests at once it takes; not sent
	Charge       Charge      // asked before each request that is sent; nil: nobody is
}

// Reply is a program as the model gave it. Code is never blank, but where Unchanged says that the program is kept: only where that was asked.
type Reply struct {
	Code        string
	Unchanged   bool `json:",omitempty"`
	Notes       string
	SolverShape json.RawMessage `json:",omitempty"` // an object or nil; a null of JSON would come back as one
	Declaration agent.Declaration
	Form        reply.Form // in which the program was found; "" of a recording
	Model       string     // that answered
	Usage       agent.Usage
}

// ChatRequest asks for plain text (seed 002). Schema, when set, asks for structured output where the server has it.
type ChatRequest struct {
	Model       string
	Messages    []Message
	Schema      json.RawMessage
	TraceParent string
	Owner       agent.Owner // as that of Request
	Charge      Charge
}

// ChatReply is the text of the answer.
type ChatReply struct {
	Content string
	Model   string
	Usage   agent.Usage
}

// Provider is safe for concurrent use. It asks the request's Charge before each request that it sends. Errors are *Error,
// *ChargeError, or the context's cause: then the reply holds the usage of what was sent.
type Provider interface {
	Program(ctx context.Context, r Request) (Reply, error)
	Chat(ctx context.Context, r ChatRequest) (ChatReply, error)
	// Name is openai, replay or record, for logs and metrics.
	Name() string
}

// ErrInvalidPayload matches an *Error whose server answered, but with nothing that could be a program: nil, blank or
// unparsable payloads.
var ErrInvalidPayload = errors.New("invalid payload")

// An Error says how a request to the model failed after all retries.
type Error struct {
	Type string // agent.ErrProvider or agent.ErrInvalidCode
	// closed set for metrics: rate_limited, server_error, network, timeout, rejected, no_answer, invalid_payload, cut_off
	Reason  string
	Message string      // without secrets
	Usage   agent.Usage // what the failed requests cost; ModelRequests counts every try
	Unread  bool        // a reply came that cannot be read; see Again

	status int  // of the HTTP reply, 0 without one
	step   step // what it shows to be wrong
	// no later request succeeds before a person has changed something: the key, the credit, an address
	final      bool
	transient  bool          // the same request may succeed in a moment
	loading    bool          // ... when the server has loaded its model
	retryAfter time.Duration // as the server said; 0: it did not
	free       bool          // no model worked on the request
	refusal    *refusal      // what the server said in place of a reply; nil: nothing
	said       string        // what that reply said, as far as it is known
}

func (e *Error) Error() string { return e.Message }

// Final reports whether the same request fails until a person has changed something: the key, the credit, the model, an address.
func (e *Error) Final() bool { return e.final }

// FinallyFailed reports whether err says so of a request to the model.
func FinallyFailed(err error) bool {
	var failed *Error
	return errors.As(err, &failed) && failed.Final()
}

// A ChargeError says that a request was not sent because its Charge returned Err.
type ChargeError struct {
	Err   error
	Usage agent.Usage // of the requests before it
}

func (e *ChargeError) Error() string { return e.Err.Error() }

func (e *ChargeError) Unwrap() error { return e.Err }

// Is makes errors.Is(err, ErrInvalidPayload) work.
func (e *Error) Is(target error) bool {
	return target == ErrInvalidPayload && e.Type == agent.ErrInvalidCode
}
