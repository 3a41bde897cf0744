package predict

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/runtime/history"
	"github.com/recurgentd/recurgentd/internal/runtime/interrupt"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/spend"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// turnsPrefix is the prefix of the context keys under which a session stores its turns per signature.
const turnsPrefix = "turns:"

// maxTurnBytes bounds the turns of one signature that a session stores; the oldest are dropped.
const maxTurnBytes = 256 << 10

// ErrModel matches every *Failure: the model gave no answer, or none that fits.
var ErrModel = errors.New("the model gave no answer that fits")

// Codes of a Failure, as used in problem details.
const (
	codeProvider  = "provider"
	codeUnfitting = "unfitting_reply"
	codeTimeout   = "timeout"
	codeBudget    = "budget_exceeded"
	codeDraining  = "draining"
)

// Failure describes how a prediction failed after the model was asked.
type Failure struct {
	Code   string // provider, unfitting_reply, timeout, budget_exceeded, or draining when the daemon stops
	Detail string
	Usage  agent.Usage
	Final  bool         // for provider: it fails again until a person changes something
	Over   *spend.Limit // for budget_exceeded: the cap
}

func (e *Failure) Error() string { return e.Detail }

// Is reports whether target is ErrModel, so that errors.Is matches it.
func (e *Failure) Is(target error) bool { return target == ErrModel }

// Query is a request for the outputs of a signature.
type Query struct {
	Name      string          // of a named signature; "" means that Signature is used
	Signature json.RawMessage // {instructions?, inputs, outputs}
	Inputs    map[string]json.RawMessage
	// Demos of nil uses those of the named signature; an empty list uses none.
	Demos   []json.RawMessage
	Model   string // "" means the session's or the daemon's
	Adapter string // lines, json, json_schema
	// SessionID, unless "", is the session whose earlier turns of the same signature are the history, and which stores
	// the new turn.
	SessionID string
	Debug     bool // return the conversation
	Owner     string
	Operates  bool // the session may belong to another owner
	TraceID   string

	TraceParent string // the whole header that TraceID comes from, or ""
}

// Answer is the answer to a Query.
type Answer struct {
	Outputs  json.RawMessage `json:"outputs"` // an object, in the signature's order
	Usage    agent.Usage     `json:"usage"`
	Attempts int             `json:"attempts"` // 2 if the first reply did not fit
	CallID   string          `json:"call_id"`
	Messages []Message       `json:"messages,omitempty"` // with Debug
}

// Message is one message of the conversation.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Predict answers by a signature. An invalid request gives an *agent.InputError before the model is asked. The call log
// stores every prediction for which the model was asked; a session also stores a record and, on success, a turn.
func (svc *Service) Predict(ctx context.Context, q Query) (Answer, error) {
	if err := svc.o.Calls.Ready(); err != nil {
		return Answer{}, err
	}
	sig, err := svc.signature(ctx, &q)
	if err != nil {
		return Answer{}, err
	}
	ctx, end := context.WithTimeoutCause(ctx, svc.o.Timeout, interrupt.ErrCallTimeout)
	defer end()
	// The daemon's shutdown also ends a prediction.
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	life := svc.o.Calls.Life()
	defer context.AfterFunc(life, func() { cut(context.Cause(life)) })()
	if q.TraceID == "" {
		q.TraceID = ids.NewTrace()
	}
	p := Request{Signature: sig, Inputs: q.Inputs, Demos: q.Demos, Model: cmp.Or(q.Model, svc.o.Model),
		Adapter: q.Adapter,
		Limits:  history.DefaultLimits()}
	p.Charge = svc.charge("", q, p.Model)
	if q.SessionID != "" {
		return svc.inSession(ctx, q, p)
	}
	if err := svc.o.Calls.Room(ctx, q.Owner, store.Bytes{Values: 1}); err != nil {
		return Answer{}, err
	}
	t := turn{q: q, sig: sig, model: p.Model, began: svc.o.Now()}
	reply, err := svc.ask(ctx, q, p)
	if err != nil {
		return Answer{}, svc.failed(ctx, t, err)
	}
	return svc.keep(ctx, t, nil, reply)
}

// signature returns the requested signature. The demos of a named one apply unless the request has its own.
func (svc *Service) signature(ctx context.Context, q *Query) (contract.Signature, error) {
	if q.Name == "" {
		return parseSignature(q.Signature, "/signature")
	}
	named, err := svc.Signature(ctx, q.Name)
	if q.Demos == nil {
		q.Demos = named.Demos
	}
	return named.Signature, err
}

// ask runs the prediction and reports metrics and traces.
func (svc *Service) ask(ctx context.Context, q Query, p Request) (Answer, error) {
	if _, err := Messages(p); err != nil {
		return Answer{}, fault(err)
	}
	began := svc.o.Now()
	span := svc.o.Tracer.Start(telemetry.SpanStart{Name: "predict", TraceID: q.TraceID, TraceParent: q.TraceParent,
		At: began})
	question := span.Ask(p.Model, began)
	p.TraceParent = telemetry.TraceParent(question, q.TraceID)
	p.Owner = agent.Owner{Namespace: svc.o.Namespace, Name: q.Owner}
	res, err := Run(ctx, svc.o.Provider, p)
	outcome, usage := Answered(err, res.Usage)
	ended := svc.o.Now()
	question.Answered(outcome, "", usage, ended)
	svc.o.Metrics.ObserveProvider(outcome, ended.Sub(began), usage, q.TraceID)
	if err != nil {
		span.EndFailed(outcome, ended)
		if outcome == "canceled" {
			return Answer{}, interrupted(ctx, "the model was still being asked", usage)
		}
		return Answer{}, fault(err)
	}
	span.End(ended)
	reply := Answer{Outputs: res.JSON, Usage: res.Usage, Attempts: res.Attempts}
	if q.Debug {
		for _, m := range res.Messages {
			reply.Messages = append(reply.Messages, Message{m.Role, m.Content})
		}
	}
	return reply, nil
}

// charge returns the charge function for a prediction. Outside of sessions the role is "".
func (svc *Service) charge(role string, q Query, model string) provider.Charge {
	return svc.o.Spend.Charge(spend.Request{Role: role, Method: predictMethod, Owner: q.Owner, Model: model})
}

// Answered returns how the model answered, as a label for metrics and traces, and the cost.
func Answered(err error, usage agent.Usage) (outcome string, cost agent.Usage) {
	var odd *ReplyError
	if errors.As(err, &odd) {
		return "invalid_payload", odd.Usage
	}
	return provider.Answered(err, usage)
}

// fault converts errors of Run to a *Failure. Other errors stay.
func fault(err error) error {
	var odd *ReplyError
	var failed *provider.Error
	var over *spend.ExceededError
	var unpaid *provider.ChargeError
	switch {
	case errors.As(err, &over):
		f := &Failure{Code: codeBudget, Detail: over.Error(), Over: &over.Limit}
		if errors.As(err, &unpaid) {
			f.Usage = unpaid.Usage
		}
		return f
	case errors.As(err, &odd):
		return &Failure{Code: codeUnfitting, Detail: odd.Error(), Usage: odd.Usage}
	case errors.As(err, &failed):
		return &Failure{Code: codeProvider, Detail: failed.Message, Usage: failed.Usage, Final: failed.Final()}
	}
	return err
}

// interrupted returns the Failure of a prediction whose context ended. during describes its progress.
func interrupted(ctx context.Context, during string, usage agent.Usage) *Failure {
	o, _ := interrupt.Outcome(ctx)
	f := &Failure{Code: codeTimeout, Detail: during + ": " + o.ErrorMessage, Usage: usage}
	if errors.Is(context.Cause(ctx), interrupt.ErrShutdown) {
		f.Code = codeDraining
	}
	return f
}

// inSession waits for the session's turn, so that the predictions of a session run one after another.
func (svc *Service) inSession(ctx context.Context, q Query, p Request) (Answer, error) {
	session, err := svc.store.Session(ctx, q.SessionID)
	if err == nil && !q.Operates && !session.OwnedBy(q.Owner) {
		err = store.ErrNotFound
	}
	if err != nil {
		return Answer{}, err
	}
	// Check before the model costs anything.
	if err := svc.o.Calls.Room(ctx, session.Owner, store.Bytes{Contexts: 1, Histories: 1, Values: 1}); err != nil {
		return Answer{}, err
	}
	if q.Model == "" && session.Model != "" {
		p.Model = session.Model
	}
	p.Charge = svc.charge(session.Role, q, p.Model)
	epoch, leave, err := svc.o.Calls.Turn(ctx, session.ID)
	if err != nil && ctx.Err() != nil {
		return Answer{}, interrupted(ctx, interrupt.NeverStarted, agent.Usage{})
	}
	if err != nil {
		return Answer{}, err
	}
	defer leave()
	memory, err := svc.store.Context(ctx, session.ID)
	if err != nil {
		return Answer{}, err
	}
	key := turnsKey(p.Signature)
	var turns []json.RawMessage
	// A hand-written value that is not a list counts as empty.
	_ = json.Unmarshal(memory[key], &turns)
	t := turn{q: q, session: session, epoch: epoch, sig: p.Signature, model: p.Model, began: svc.o.Now()}
	reply, err := svc.ask(ctx, q, withTurns(p, turns))
	if err != nil {
		return Answer{}, svc.failed(ctx, t, err)
	}
	element, err := svc.element(t, reply)
	if err != nil {
		return Answer{}, err
	}
	return svc.keep(ctx, t, &agent.ContextChange{Set: map[string]json.RawMessage{key: svc.boundTurns(memory, key,
		append(turns, element))}}, reply)
}

// turnsKey returns the context key for the turns of a signature. Names and types of its fields identify it, not its
// instructions.
func turnsKey(s contract.Signature) string {
	fields := make([]contract.Field, 0, len(s.Inputs))
	for _, f := range s.Inputs {
		if f.Type != contract.TypeHistory {
			fields = append(fields, contract.Field{Name: f.Name, Type: f.Type})
		}
	}
	fields = append(fields, contract.Field{}) // separates inputs from outputs
	for _, f := range s.Outputs {
		fields = append(fields, contract.Field{Name: f.Name, Type: f.Type})
	}
	raw := agent.Encoded(fields)
	sum := sha256.Sum256(raw)
	return turnsPrefix + hex.EncodeToString(sum[:6])
}

// withTurns adds the newest turns that fit as the history, unless the request has its own. A signature without a
// history field gets one, which does not appear in any message.
func withTurns(p Request, turns []json.RawMessage) Request {
	field := p.Signature.HistoryField()
	if field == "" {
		field = "session turns"
		p.Signature.Inputs = append(slices.Clone(p.Signature.Inputs),
			contract.Field{Name: field, Type: contract.TypeHistory})
	}
	if len(turns) == 0 || agent.Kind(p.Inputs[field]) != "null" && len(p.Inputs[field]) > 0 {
		return p
	}
	inputs := make(map[string]json.RawMessage, len(p.Inputs)+1)
	maps.Copy(inputs, p.Inputs)
	inputs[field] = history.Newest(turns, p.Limits)
	p.Inputs = inputs
	return p
}
