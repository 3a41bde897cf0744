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

// turnsPrefix begins the context keys under which a session keeps its turns of a signature.
const turnsPrefix = "turns:"

// maxTurnBytes bounds what a session keeps of its turns of one signature; the oldest go.
const maxTurnBytes = 256 << 10

// ErrModel means that the model gave no answer, or none that fits. *Failure says more.
var ErrModel = errors.New("the model gave no answer that fits")

// Codes of a Failure, as problems have them.
const (
	codeProvider  = "provider"
	codeUnfitting = "unfitting_reply"
	codeTimeout   = "timeout"
	codeBudget    = "budget_exceeded"
	codeDraining  = "draining"
)

// Failure says how a prediction failed after the model was asked.
type Failure struct {
	Code   string // provider, unfitting_reply, timeout, budget_exceeded, or draining when the daemon stops
	Detail string
	Usage  agent.Usage
	Final  bool         // of provider: the same fails until a person has changed something
	Over   *spend.Limit // of budget_exceeded: the cap
}

func (e *Failure) Error() string { return e.Detail }

// Is makes errors.Is(err, ErrModel) work.
func (e *Failure) Is(target error) bool { return target == ErrModel }

// Query asks for the outputs of a signature.
type Query struct {
	Name      string          // of a named signature, or "": then Signature is taken
	Signature json.RawMessage // {instructions?, inputs, outputs}
	Inputs    map[string]json.RawMessage
	Demos     []json.RawMessage // nil takes those of the named signature, an empty list none
	Model     string            // "" is the session's or the daemon's
	Adapter   string            // lines, json, json_schema
	// its earlier turns of the same signature are the history, and the new turn is kept; "" for none
	SessionID string
	Debug     bool // return the messages
	Owner     string
	Operates  bool // SessionID may be another's
	TraceID   string

	TraceParent string // the whole header that TraceID is from, or ""
}

// Answer is the answer.
type Answer struct {
	Outputs  json.RawMessage `json:"outputs"` // an object, in the signature's order
	Usage    agent.Usage     `json:"usage"`
	Attempts int             `json:"attempts"` // 2 when the first reply did not fit
	CallID   string          `json:"call_id"`
	Messages []Message       `json:"messages,omitempty"` // with Debug
}

// Message is one message of the conversation.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Predict answers by a signature. Whatever is wrong with the request is found before the model is asked, as an
// *agent.InputError. The call log keeps every prediction that the model was asked for; a session keeps a turn and a
// record of its own.
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

// signature returns the signature asked for; a named one brings its demos where the request has none of its own.
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

// predict asks the model and reports metrics of it.
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

func (svc *Service) charge(role string, q Query, model string) provider.Charge {
	return svc.o.Spend.Charge(spend.Request{Role: role, Method: predictMethod, Owner: q.Owner, Model: model})
}

// Answered names how the model answered, for metrics and traces, and returns what that cost.
func Answered(err error, usage agent.Usage) (outcome string, cost agent.Usage) {
	var odd *ReplyError
	if errors.As(err, &odd) {
		return "invalid_payload", odd.Usage
	}
	return provider.Answered(err, usage)
}

// fault turns the errors of predict into those of the runtime.
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

// interrupted is the Failure of a prediction whose context ended; during says what it was doing.
func interrupted(ctx context.Context, during string, usage agent.Usage) *Failure {
	o, _ := interrupt.Outcome(ctx)
	f := &Failure{Code: codeTimeout, Detail: during + ": " + o.ErrorMessage, Usage: usage}
	if errors.Is(context.Cause(ctx), interrupt.ErrShutdown) {
		f.Code = codeDraining
	}
	return f
}

// inSession takes the session's turn, so that turns of a session follow each other.
func (svc *Service) inSession(ctx context.Context, q Query, p Request) (Answer, error) {
	session, err := svc.store.Session(ctx, q.SessionID)
	if err == nil && !q.Operates && !session.OwnedBy(q.Owner) {
		err = store.ErrNotFound
	}
	if err != nil {
		return Answer{}, err
	}
	// before the model is paid
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
	_ = json.Unmarshal(memory[key], &turns) // what somebody wrote there by hand and is no list counts for nothing
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

// turnsKey names the turns of a signature, which its fields identify, not its instructions.
func turnsKey(s contract.Signature) string {
	fields := make([]contract.Field, 0, len(s.Inputs))
	for _, f := range s.Inputs {
		if f.Type != contract.TypeHistory {
			fields = append(fields, contract.Field{Name: f.Name, Type: f.Type})
		}
	}
	fields = append(fields, contract.Field{}) // inputs end here
	for _, f := range s.Outputs {
		fields = append(fields, contract.Field{Name: f.Name, Type: f.Type})
	}
	raw := agent.Encoded(fields)
	sum := sha256.Sum256(raw)
	return turnsPrefix + hex.EncodeToString(sum[:6])
}

// withTurns gives the request the newest turns that fit, unless it brings a history of its own. A signature without a
// history field gets one, which shows in no message.
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
