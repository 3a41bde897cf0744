// Package provider gives access to the model. A Provider turns a prompt into a program's text, or a conversation into a
// reply: openai speaks to any OpenAI-compatible server, replay answers from a recording, and record wraps another
// Provider and writes a recording. The package handles retries, backoff and time limits. The caller decides whether a
// request may be sent (Charge).
//
// The package treats a model's reply as untrusted text and checks only its outer shape. It knows nothing of runners or
// stores.
package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/fair"
	"github.com/recurgentd/recurgentd/internal/runtime/provider/reply"
)

// Values of Request.Kind.
const (
	KindForge  = "forge"
	KindRepair = "repair"
)

// Message is one message of a conversation. Role is system, user or assistant.
type Message struct{ Role, Content string }

// Request asks for a program.
type Request struct {
	Kind         string // KindForge or KindRepair
	Role, Method string // the method that the program implements; recordings are keyed by them
	MayKeep      bool   // the model may answer that the program shown in Messages is kept
	Model        string
	Messages     []Message
	TraceParent  string      // W3C traceparent to forward; "" means none
	Owner        agent.Owner // whose share of concurrent requests it uses; not sent
	Charge       Charge      // asked before each request is sent; nil means that requests need no permission
}

// Reply is a program as the model gave it. Code is not blank unless Unchanged is set, which means that the program is
// kept. Unchanged is set only if Request.MayKeep was.
type Reply struct {
	Code        string
	Unchanged   bool `json:",omitempty"`
	Notes       string
	SolverShape json.RawMessage `json:",omitempty"` // an object or nil, never a JSON null
	Declaration agent.Declaration
	Form        reply.Form // how the reply held the program; "" from a recording
	Model       string     // the model that answered
	Usage       agent.Usage
}

// ChatRequest asks for plain text (seed 002). If Schema is set, it asks for structured output if the server supports
// that.
type ChatRequest struct {
	Model       string
	Messages    []Message
	Schema      json.RawMessage
	TraceParent string
	Owner       agent.Owner // as in Request
	Charge      Charge      // as in Request
}

// ChatReply is a model's reply to a ChatRequest.
type ChatReply struct {
	Content string
	Model   string
	Usage   agent.Usage
}

// Provider asks a model. It is safe for concurrent use. It calls the request's Charge before each request that it
// sends. An error is an *Error, a *ChargeError, or the cause of ctx. In the last case the reply holds the usage of what
// was sent.
type Provider interface {
	Program(ctx context.Context, r Request) (Reply, error)
	Chat(ctx context.Context, r ChatRequest) (ChatReply, error)
	// Name returns openai, replay or record, for logs and metrics.
	Name() string
}

// ErrInvalidPayload matches an *Error whose server answered without anything that could be a program: the payload was
// nil, blank or unparsable.
var ErrInvalidPayload = errors.New("invalid payload")

// An Error is a request to the model that failed after all retries.
type Error struct {
	Type string // agent.ErrProvider or agent.ErrInvalidCode
	// Reason is one of a closed set, for metrics: rate_limited, server_error, network, timeout, rejected, no_answer,
	// invalid_payload, cut_off.
	Reason  string
	Message string      // without secrets
	Usage   agent.Usage // the cost of the failed requests; ModelRequests counts every attempt that reached a server
	Unread  bool        // a reply arrived but could not be read; see Again

	status int  // HTTP status of the reply; 0 without a reply
	step   step // the step of a check that it shows to be wrong
	// final means that no request succeeds until a person changes something: the key, the credit, an address.
	final      bool
	transient  bool          // the same request may succeed soon
	loading    bool          // the same request may succeed once the server has loaded its model
	retryAfter time.Duration // when the server asked to retry; 0 if it did not
	free       bool          // no model worked on the request, so it cost nothing
	refusal    *refusal      // the parsed refusal; nil if there is none
	said       string        // the model's unreadable text, if it is known
}

func (e *Error) Error() string { return e.Message }

// Final reports whether requests fail until a person changes something: the key, the credit, the model, an address.
func (e *Error) Final() bool { return e.final }

// FinallyFailed reports whether err is an *Error that is Final.
func FinallyFailed(err error) bool {
	var failed *Error
	return errors.As(err, &failed) && failed.Final()
}

// A ChargeError means that a request was not sent because its Charge returned Err.
type ChargeError struct {
	Err   error
	Usage agent.Usage // the cost of earlier requests of the question
}

func (e *ChargeError) Error() string { return e.Err.Error() }

func (e *ChargeError) Unwrap() error { return e.Err }

// Is makes errors.Is(err, ErrInvalidPayload) work.
func (e *Error) Is(target error) bool {
	return target == ErrInvalidPayload && e.Type == agent.ErrInvalidCode
}

// maxQuoted bounds how many bytes of an unreadable reply are quoted to the model.
const maxQuoted = 16 << 10

// Again returns a conversation that asks once more, if err is an unreadable reply. It quotes the reply, if it is known,
// and what was wrong with it: sending the same conversation would only pay for the same reply. It returns false for
// every other error, which another wording cannot cure.
func Again(messages []Message, err error) ([]Message, bool) {
	var failed *Error
	if !errors.As(err, &failed) || !failed.Unread || len(messages) == 0 {
		return nil, false
	}
	note := "Your last reply could not be used: " + failed.Message +
		". Answer again, the whole answer, in the form that was asked for."
	if said := strings.TrimSpace(failed.said); said != "" {
		if len(said) > maxQuoted {
			said = strings.ToValidUTF8(said[:maxQuoted], "") + "..."
		}
		return append(slices.Clip(messages), Message{"assistant", said}, Message{"user", note}), true
	}
	// Roles must alternate, so without a quotation the note is appended to the last message.
	again := slices.Clone(messages)
	last := &again[len(again)-1]
	last.Content += "\n\n" + note
	return again, true
}

// TooLong reports whether err means that the prompt does not fit the model's context.
func TooLong(err error) bool {
	var failed *Error
	return errors.As(err, &failed) && failed.step == stepContext
}

// Answered returns how a request to the model ended and what it cost, for metrics and traces. The outcome is "ok", the
// reason of an *Error, "not_sent" or "canceled". The cost is usage, or that of the error. A request that
// reached a server counts even without an answer.
func Answered(err error, usage agent.Usage) (outcome string, cost agent.Usage) {
	var failed *Error
	var refused *ChargeError
	switch {
	case err == nil:
		return "ok", usage
	case errors.As(err, &failed):
		return failed.Reason, failed.Usage
	case errors.As(err, &refused):
		return ReasonNotSent, refused.Usage
	}
	return "canceled", usage
}

// FormOf returns the form in which a reply held its program, for metrics. It is "" if no reply of a model arrived.
func FormOf(r Reply, err error) reply.Form {
	var failed *Error
	if errors.As(err, &failed) && (failed.Reason == ReasonInvalidPayload || failed.Reason == ReasonCutOff) {
		return reply.FormNone
	}
	return r.Form
}

// MaxRequests is the most concurrent requests of one owner. All owners together may have a third more.
const MaxRequests = 64

// Shared returns p with concurrent requests divided among owners. most bounds the requests of one owner; others have
// room left (see fair.Share). Further requests wait.
func Shared(p Provider, most int) Provider {
	return &shared{p, fair.NewShare[agent.Owner](int64(most))}
}

type shared struct {
	Provider
	places *fair.Share[agent.Owner]
}

func (s *shared) Program(ctx context.Context, r Request) (Reply, error) {
	if err := s.places.Enter(ctx, r.Owner, 1); err != nil {
		return Reply{}, err
	}
	defer s.places.Leave(r.Owner, 1)
	return s.Provider.Program(ctx, r)
}

func (s *shared) Chat(ctx context.Context, r ChatRequest) (ChatReply, error) {
	if err := s.places.Enter(ctx, r.Owner, 1); err != nil {
		return ChatReply{}, err
	}
	defer s.places.Leave(r.Owner, 1)
	return s.Provider.Chat(ctx, r)
}

// Options configures New.
type Options struct {
	Kind          string        // openai, replay or record
	OpenAI        OpenAIOptions // for openai, and for the provider that record wraps
	Recording     string        // path that replay reads and record appends to
	Embedded      []byte        // the recording that replay reads if Recording is ""
	OnRecordError func(error)   // see RecordOptions.OnError
}

// New returns the provider of a kind. If it is an io.Closer, the caller must close it.
func New(o Options) (Provider, error) {
	switch o.Kind {
	case "openai":
		return NewOpenAI(o.OpenAI)
	case "replay":
		if o.Recording != "" {
			return OpenReplay(o.Recording)
		}
		if len(o.Embedded) == 0 {
			return nil, errors.New("provider: replay needs a recording")
		}
		return NewReplay(bytes.NewReader(o.Embedded), "demo")
	case "record":
		inner, err := NewOpenAI(o.OpenAI)
		if err != nil {
			return nil, err
		}
		return NewRecord(RecordOptions{Inner: inner, Path: o.Recording, Secrets: inner.secrets,
			OnError: o.OnRecordError})
	}
	return nil, fmt.Errorf("provider: %q is not openai, replay or record", o.Kind)
}
