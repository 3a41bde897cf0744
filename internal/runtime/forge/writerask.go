package forge

import (
	"context"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/attempt"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// answer renders the request and asks the model. If the model's context proves too small, it retries once with a
// shorter request.
func (w *writer) answer(ctx context.Context, q Request) (provider.Reply, error) {
	render := func() []provider.Message {
		messages, tools := w.prompt(ctx, q, append(w.earlier[:len(w.earlier):len(w.earlier)], w.result.Attempts...))
		w.result.Tools = tools
		w.result.System, w.result.User = promptTexts(messages)
		return messages
	}
	messages := render()
	reply, err := w.ask(ctx, q, messages)
	if provider.TooLong(err) {
		if shorter := render(); !slices.Equal(shorter, messages) {
			return w.ask(ctx, q, shorter)
		}
	}
	return reply, err
}

// ask asks the model. After an unreadable reply it asks once more and includes the reason, if the policy allows another
// attempt.
func (w *writer) ask(ctx context.Context, q Request, messages []provider.Message) (provider.Reply, error) {
	res := &w.result
	for try := 1; ; try++ {
		began := w.Env.Now()
		question := w.forgeSpan.Ask(w.Model(), began)
		answered := w.spent.sent()
		reply, err := w.Env.Provider.Program(ctx, provider.Request{Kind: q.Kind, MayKeep: q.mayKeep(), Role: w.Role,
			Method: w.Method, Model: w.Model(),
			Messages: messages, TraceParent: telemetry.TraceParent(question, w.TraceID), Owner: w.Env.Owner(w.Owner),
			Charge: w.Charge()})
		res.Requested++
		outcome, usage := provider.Answered(err, reply.Usage)
		res.Usage.Add(usage)
		answered(usage)
		ended := w.Env.Now()
		question.Answered(outcome, reply.Model, usage, ended)
		w.Env.Metrics.ObserveProvider(outcome, ended.Sub(began), usage, w.TraceID)
		w.Env.Metrics.ObserveReply(string(provider.FormOf(reply, err)))
		if err == nil {
			return reply, nil
		}
		again, ok := provider.Again(messages, err)
		if !ok || try >= min(2, w.Policy.MaxGenerationAttempts) {
			return provider.Reply{}, err
		}
		messages = again
		res.Attempts = append(res.Attempts, agent.AttemptFailure{AttemptID: w.ID + ".p", Stage: attempt.StageValidation,
			ErrorType: agent.ErrInvalidCode, ErrorMessage: agent.Clip(err.Error(), 400)})
	}
}
