package attempt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/runtime/history"
	"github.com/recurgentd/recurgentd/internal/runtime/predict"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/spend"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// maxAsked bounds the inputs of one question to the model, in bytes: a model reads text, not files.
const maxAsked = 128 << 10

// Types of the errors that a program gets instead of the model's answer, in addition to provider, denied and
// resource_exhausted.
const (
	errSignature = "invalid_signature" // the signature or the inputs are invalid
	errUnfitting = "unfitting_reply"   // the model's replies did not match the signature
)

// Predict asks the model on behalf of the program, within the budget of the program's run. Values of secret keys are
// masked before they are sent. Replays and dry runs never ask: a replay's journal answers before Predict is called.
func (h *Host) Predict(ctx context.Context, signature,
	inputs json.RawMessage) (json.RawMessage, *sandbox.AuthoredError) {
	if h.Recorded || h.Dry {
		h.Refused = true
		return nil, &sandbox.AuthoredError{Type: agent.ErrDenied,
			Message: "the model is not asked in a run of which nothing is kept"}
	}
	q, refused := h.question(signature, inputs)
	if refused != nil {
		return nil, refused
	}
	c := h.For
	began := c.Env.Now()
	span := c.Span.Ask(q.Model, began)
	q.TraceParent, q.Owner = telemetry.TraceParent(span, c.TraceID), c.Env.Owner(c.Owner)
	q.Charge = c.Charge()
	res, err := predict.Run(ctx, c.Env.Provider, q)
	outcome, cost := predict.Answered(err, res.Usage)
	ended := c.Env.Now()
	span.Answered(outcome, res.Model, cost, ended)
	c.Env.Metrics.ObserveProvider(outcome, ended.Sub(began), cost, c.TraceID)
	h.predicted.Add(cost)
	if err != nil {
		return nil, h.unasked(err)
	}
	return res.JSON, nil
}

// question decodes the program's question and deducts it from the budget of the run. Each run has a budget of its own,
// because a repaired program must not start with the budget that the failed one used up.
func (h *Host) question(signature, inputs json.RawMessage) (predict.Request, *sandbox.AuthoredError) {
	c := h.For
	q := predict.Request{Model: c.Model(), Limits: history.Limits{Elements: history.DefaultLimits().Elements,
		Bytes: maxAsked}}
	var err error
	if q.Signature, err = contract.ParseSignature(signature); err != nil {
		return q, &sandbox.AuthoredError{Type: errSignature, Message: err.Error()}
	}
	q.Bare = isAsk(q.Signature)
	masked, _ := c.MaskJSON(inputs)
	if err := json.Unmarshal(masked, &q.Inputs); err != nil {
		return q, &sandbox.AuthoredError{Type: errSignature, Message: "the inputs are no object: " + err.Error()}
	}
	if _, err := predict.Messages(q); err != nil {
		return q, h.unasked(err)
	}
	switch most := c.Policy.PredictBudget; {
	case most == 0:
		return q, &sandbox.AuthoredError{Type: agent.ErrDenied,
			Message: "programs may not ask the model here (policy predict_budget)"}
	case h.asked == most:
		h.overasked = true
		return q, &sandbox.AuthoredError{Type: agent.ErrResourceExhausted,
			Message: fmt.Sprintf("a call may ask the model %d times (policy predict_budget): put everything into one question", most)}
	}
	h.asked++
	return q, nil
}

// isAsk reports whether the signature is that of call.Ask: one text answer to one input, without labels.
func isAsk(s contract.Signature) bool {
	return len(s.Inputs) == 1 && s.Inputs[0].Name == "input" && len(s.Outputs) == 1 && s.Outputs[0].Name == "answer" &&
		s.Outputs[0].Type == contract.TypeString
}

// unasked returns the error that the program gets for a question without an answer. A failure of the model is not the
// program's fault.
func (h *Host) unasked(err error) *sandbox.AuthoredError {
	var bad *agent.InputError
	var odd *predict.ReplyError
	var failed *provider.Error
	out := &sandbox.AuthoredError{Type: agent.ErrCanceled, Message: "the call ended while the model was asked"}
	switch {
	case errors.As(err, &bad) && bad.Code == history.CodeTooLarge:
		h.overasked = true
		return &sandbox.AuthoredError{Type: agent.ErrResourceExhausted,
			Message: "the model is given too much: " + bad.Pointer + " " + bad.Detail}
	case errors.As(err, &bad):
		return &sandbox.AuthoredError{Type: errSignature, Message: bad.Pointer + " " + bad.Detail}
	case OverCap(err) != nil:
		out = &sandbox.AuthoredError{Type: agent.ErrBudgetExceeded, Message: OverCap(err).ErrorMessage}
	case errors.As(err, &odd):
		out = &sandbox.AuthoredError{Type: errUnfitting, Message: odd.Error()}
	case errors.As(err, &failed):
		out = &sandbox.AuthoredError{Type: agent.ErrProvider, Message: failed.Message}
	}
	h.modelFailed = true
	final := !Passes(out.Type) || provider.FinallyFailed(err)
	h.modelFinal = h.modelFinal || final
	h.excuse(out.Type, agent.ClassExtrinsic, !final)
	return out
}

// excuse records an error type that the program may pass on without being to blame, and whether the failure may pass by
// itself.
func (h *Host) excuse(errorType string, class agent.Class, retriable bool) {
	if h.failed == nil {
		h.failed = map[string]Excused{}
	}
	h.failed[errorType] = Excused{class, retriable}
}

// Excused describes a failure below a program for which the program is not to blame.
type Excused struct {
	Class     agent.Class
	Retriable bool
}

// OverCap returns the outcome of a call for which the model was not asked because of a spending cap, or nil for any
// other error. Such a failure is not evidence about a program.
func OverCap(err error) *agent.Outcome {
	var over *spend.ExceededError
	if !errors.As(err, &over) {
		return nil
	}
	out := agent.Failed(agent.ErrBudgetExceeded, over.Error())
	out.Metadata = over.Details()
	return &out
}

// Passes reports whether a failure of that type may end without a person: approvals, room and caps are granted by
// people.
func Passes(errorType string) bool {
	return errorType != agent.ErrDenied && errorType != agent.ErrResourceExhausted &&
		errorType != agent.ErrBudgetExceeded
}
