package runtime

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/runtime/history"
	"github.com/recurgentd/recurgentd/internal/runtime/predict"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// turnsPrefix begins the context keys under which a session keeps its turns of a signature.
const turnsPrefix = "turns:"

// maxTurnBytes bounds what a session keeps of its turns of one signature; the oldest go.
const maxTurnBytes = 256 << 10

// ErrModel means that the model gave no answer, or none that fits. *PredictError says more.
var ErrModel = errors.New("the model gave no answer that fits")

// codeUnfitting is the code of a PredictError whose replies did not fit the signature.
const codeUnfitting = "unfitting_reply"

// PredictError says how a prediction failed after the model was asked.
type PredictError struct {
	Code   string // provider, or unfitting_reply
	Detail string
	Usage  agent.Usage
}

func (e *PredictError) Error() string { return e.Detail }

// Is makes errors.Is(err, ErrModel) work.
func (e *PredictError) Is(target error) bool { return target == ErrModel }

// PredictRequest asks for the outputs of a signature (design.md section 8).
type PredictRequest struct {
	Name      string          // of a named signature, or "": then Signature is taken
	Signature json.RawMessage // {instructions?, inputs, outputs}
	Inputs    map[string]json.RawMessage
	Demos     []json.RawMessage // nil takes those of the named signature, an empty list none
	Model     string            // "" is the session's or the daemon's
	Adapter   string            // lines, json, json_schema
	SessionID string            // its earlier turns of the same signature are the history, and the new turn is kept; "" for none
	Debug     bool              // tell the messages
	Owner     string
	TraceID   string

	TraceParent string // the whole header that TraceID is from, or ""
}

// PredictReply is the answer.
type PredictReply struct {
	Outputs  json.RawMessage  `json:"outputs"` // an object, in the signature's order
	Usage    agent.Usage      `json:"usage"`
	Attempts int              `json:"attempts"` // 2 when the first reply did not fit
	CallID   string           `json:"call_id,omitempty"`
	Messages []PredictMessage `json:"messages,omitempty"` // with Debug
}

// PredictMessage is one message of the conversation.
type PredictMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Predict answers by a signature. Whatever is wrong with the request is found before the model is asked, as an
// *InputError. Without a session nothing is kept.
func (r *Runtime) Predict(ctx context.Context, q PredictRequest) (PredictReply, error) {
	if err := r.Ready(); err != nil {
		return PredictReply{}, err
	}
	sig, err := r.predictSignature(ctx, &q)
	if err != nil {
		return PredictReply{}, err
	}
	ctx, end := context.WithTimeoutCause(ctx, r.o.CallTimeout, errCallTimeout)
	defer end()
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	defer context.AfterFunc(r.life, func() { cut(errShutdown) })()
	if q.TraceID == "" {
		q.TraceID = agent.NewTraceID()
	}
	p := predict.Request{Signature: sig, Inputs: q.Inputs, Demos: q.Demos, Model: orElse(q.Model, r.o.Model), Adapter: q.Adapter,
		Limits: history.DefaultLimits()}
	if q.SessionID == "" {
		return r.predict(ctx, q, p)
	}
	return r.predictInSession(ctx, q, p)
}

// predictSignature returns the signature asked for; a named one brings its demos where the request has none of its own.
func (r *Runtime) predictSignature(ctx context.Context, q *PredictRequest) (contract.Signature, error) {
	if q.Name == "" {
		return parseSignature(q.Signature, "/signature")
	}
	named, err := r.Signature(ctx, q.Name)
	if q.Demos == nil {
		q.Demos = named.Demos
	}
	return named.Signature, err
}

// predict asks the model and tells metrics of it.
func (r *Runtime) predict(ctx context.Context, q PredictRequest, p predict.Request) (PredictReply, error) {
	if _, err := predict.Messages(p); err != nil {
		return PredictReply{}, predictFault(err)
	}
	began := r.o.Now()
	span := r.o.Tracer.Start(telemetry.SpanStart{Name: "predict", TraceID: q.TraceID, TraceParent: q.TraceParent, At: began})
	question := span.Ask(p.Model, began)
	p.TraceParent = traceParent(question, q.TraceID)
	res, err := predict.Run(ctx, r.model, p)
	outcome, usage := asked(err, res.Usage)
	ended := r.o.Now()
	question.Answered(outcome, "", usage, ended)
	r.metrics.ObserveProvider(outcome, ended.Sub(began), usage, q.TraceID)
	if err != nil {
		span.EndFailed(outcome, ended)
		return PredictReply{}, predictFault(err)
	}
	span.End(ended)
	reply := PredictReply{Outputs: res.JSON, Usage: res.Usage, Attempts: res.Attempts}
	if q.Debug {
		for _, m := range res.Messages {
			reply.Messages = append(reply.Messages, PredictMessage{m.Role, m.Content})
		}
	}
	return reply, nil
}

// predictFault turns the errors of predict into those of the runtime.
func predictFault(err error) error {
	var bad *predict.InputError
	var odd *predict.ReplyError
	var failed *provider.Error
	switch {
	case errors.As(err, &bad):
		return &InputError{Code: bad.Code, Pointer: bad.Pointer, Detail: bad.Detail, Meta: bad.Meta}
	case errors.As(err, &odd):
		return &PredictError{Code: codeUnfitting, Detail: odd.Error(), Usage: odd.Usage}
	case errors.As(err, &failed):
		return &PredictError{Code: "provider", Detail: failed.Message, Usage: failed.Usage}
	}
	return err
}

// predictInSession takes the session's turn, so that turns of a session follow each other.
func (r *Runtime) predictInSession(ctx context.Context, q PredictRequest, p predict.Request) (PredictReply, error) {
	session, err := r.store.Session(ctx, q.SessionID)
	if err != nil {
		return PredictReply{}, err
	}
	if q.Model == "" && session.Model != "" {
		p.Model = session.Model
	}
	if err := r.sessions.enter(ctx, session.ID, r.o.MaxQueue, nil); err != nil {
		return PredictReply{}, err
	}
	defer r.sessions.leave(session.ID)
	memory, err := r.store.Context(ctx, session.ID)
	if err != nil {
		return PredictReply{}, err
	}
	key := turnsKey(p.Signature)
	var turns []json.RawMessage
	_ = json.Unmarshal(memory[key], &turns) // what somebody wrote there by hand and is no list counts for nothing
	t := turn{q: q, session: session, sig: p.Signature, model: p.Model, began: r.o.Now()}
	reply, err := r.predict(ctx, q, withTurns(p, turns))
	var bad *InputError
	switch {
	case errors.As(err, &bad):
		return PredictReply{}, err // nothing was asked: no turn
	case err != nil:
		return PredictReply{}, errors.Join(err, r.keepFailure(ctx, t, err))
	}
	return r.keepTurn(t, memory, key, turns, reply)
}

// turnsKey names the turns of a signature: its fields tell it, not its instructions.
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
	raw := encoded(fields)
	sum := sha256.Sum256(raw)
	return turnsPrefix + hex.EncodeToString(sum[:6])
}

// withTurns gives the request the newest turns that fit, unless it brings a history of its own. A signature without a
// history field gets one, which shows in no message.
func withTurns(p predict.Request, turns []json.RawMessage) predict.Request {
	field := p.Signature.HistoryField()
	if field == "" {
		field = "session turns"
		p.Signature.Inputs = append(slices.Clone(p.Signature.Inputs), contract.Field{Name: field, Type: contract.TypeHistory})
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

// boundTurns is the newest turns that fit their own bound and the context's.
func (r *Runtime) boundTurns(memory map[string]json.RawMessage, key string, turns []json.RawMessage) json.RawMessage {
	room := r.o.MaxContext
	for k, v := range memory {
		if k != key {
			room -= len(k) + len(v) + 4
		}
	}
	lim := history.Limits{Elements: history.DefaultLimits().Elements, Bytes: max(64, min(maxTurnBytes, room-len(key)-4))}
	var kept struct {
		Messages json.RawMessage `json:"messages"`
	}
	if json.Unmarshal(history.Newest(turns, lim), &kept) != nil {
		return json.RawMessage("[]") // cannot be: Newest writes an object of messages
	}
	return kept.Messages
}
