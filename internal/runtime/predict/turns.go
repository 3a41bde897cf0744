package predict

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/agent/mask"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/runtime/history"
	"github.com/recurgentd/recurgentd/internal/runtime/interrupt"
	"github.com/recurgentd/recurgentd/internal/store"
)

// predictMethod is the method name in the records of predictions.
const predictMethod = "predict"

// A turn is a prediction for which the model was asked. The call log gets an entry however it ends; its session, if
// any, also a record.
type turn struct {
	q       Query
	session agent.Session      // the zero value if there is none
	epoch   int64              // the fence of the session's owner
	sig     contract.Signature // as requested
	model   string
	began   time.Time
}

// element returns the turn as an element of the session's history, with secrets masked.
func (svc *Service) element(t turn, reply Answer) (json.RawMessage, error) {
	var outputs map[string]json.RawMessage
	if err := json.Unmarshal(reply.Outputs, &outputs); err != nil {
		return nil, fmt.Errorf("read the outputs of a prediction: %w", err)
	}
	element, _ := svc.o.Calls.Rules().JSON(history.Element(&t.sig, t.q.Inputs, outputs))
	return element, nil
}

// keep commits an answered prediction together with the change to its session's context.
func (svc *Service) keep(ctx context.Context, t turn, change *agent.ContextChange, reply Answer) (Answer, error) {
	commit, err := svc.turnCommit(t, agent.Outcome{Status: agent.StatusOK, Value: reply.Outputs}, reply.Usage)
	if err != nil {
		return Answer{}, err
	}
	commit.Context = change
	if err := svc.commit(ctx, &commit); err != nil {
		return Answer{}, err
	}
	reply.CallID = commit.Log.CallID
	return reply, nil
}

// failed commits a prediction that failed after the model was asked, and returns its failure. It adds no turn to the
// session. An invalid request leaves no trace.
func (svc *Service) failed(ctx context.Context, t turn, failure error) error {
	var bad *agent.InputError
	if errors.As(failure, &bad) {
		return failure
	}
	o, _ := interrupt.Outcome(ctx)
	var failed *Failure
	if !errors.As(failure, &failed) {
		failed = &Failure{}
	}
	switch failed.Code {
	case codeProvider:
		o = agent.Failed(agent.ErrProvider, failed.Detail)
		o.Retriable = !failed.Final
	case codeBudget:
		o = agent.Failed(agent.ErrBudgetExceeded, failed.Detail)
	case codeUnfitting:
		o = agent.Failed(agent.ErrParseFailed, failed.Detail)
	}
	commit, err := svc.turnCommit(t, o, failed.Usage)
	if err == nil {
		err = svc.commit(ctx, &commit)
	}
	return errors.Join(failure, err)
}

// commitTimeout bounds one commit.
const commitTimeout = 30 * time.Second

// commit commits even if the client disconnects or the prediction's time is over meanwhile.
func (svc *Service) commit(ctx context.Context, c *store.CallCommit) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	return svc.store.CommitCall(ctx, c)
}

// turnCommit returns the log entry of a turn and, in a session, its record. Neither includes the history in the
// request.
func (svc *Service) turnCommit(t turn, o agent.Outcome, usage agent.Usage) (store.CallCommit, error) {
	inputs := map[string]json.RawMessage{}
	for name, v := range t.q.Inputs {
		if name != t.sig.HistoryField() {
			inputs[name] = v
		}
	}
	raw, err := json.Marshal(inputs)
	if err != nil {
		return store.CallCommit{}, fmt.Errorf("encode the inputs of a prediction: %w", err)
	}
	// Secrets found in the inputs are also masked in the outputs and in the error message.
	rules := svc.o.Calls.Rules()
	shown := rules.Call(nil, raw, nil, nil)
	kwargs, known := shown.Kwargs, mask.NewKnown(shown.Secrets...)
	o.Value, _ = known.JSON(o.Value) // masked for storage; the caller gets the original
	o.ErrorMessage = known.String(rules.Text(o.ErrorMessage))
	o.ToolRole, o.MethodName = t.session.Role, predictMethod
	took := agent.Milliseconds(svc.o.Now().Sub(t.began))
	at, id := agent.FormatTime(t.began), ids.New("call")
	commit := store.CallCommit{SessionID: t.session.ID, Fence: t.epoch, Outcome: o,
		Log: agent.LogEntry{Timestamp: at, Runtime: "go", SessionID: t.session.ID,
			Owner: agent.LoggedOwner(cmp.Or(t.session.Owner, t.q.Owner)), TraceID: t.q.TraceID, CallID: id,
			Role: t.session.Role, Model: t.model, Method: predictMethod,
			Args: []json.RawMessage{}, Kwargs: kwargs, DurationMs: took, OutcomeStatus: o.Status,
			OutcomeRetriable: o.Retriable, OutcomeErrorType: o.ErrorType, OutcomeErrorMessage: o.ErrorMessage,
			ContractSource: "none", ContractFingerprint: agent.FingerprintNone, ProgramSource: agent.SourceNone,
			Selection: agent.Selection{Decision: agent.DecideNone, Reason: predictMethod},
			Usage:     usage, SandboxLevel: svc.o.SandboxLevel, ReplayableReason: agent.ReasonNoProgram}}
	if o.OK() {
		commit.Log.OutcomeValueClass = agent.Kind(o.Value)
	}
	if t.session.ID != "" {
		commit.Log.HistoryRecordAppended = true
		commit.Record = agent.Record{CallID: id, Timestamp: at, Speaker: agent.SpeakerUser, Role: t.session.Role,
			MethodName: predictMethod, Args: []json.RawMessage{}, Kwargs: kwargs,
			OutcomeSummary: agent.Summarize(o), TraceID: t.q.TraceID, DurationMs: took, ErrorType: o.ErrorType,
			ErrorMessage: o.ErrorMessage, ProgramSource: agent.SourceNone}
	}
	return commit, nil
}

// boundTurns returns the newest turns that fit both maxTurnBytes and the context's bound.
func (svc *Service) boundTurns(memory map[string]json.RawMessage, key string, turns []json.RawMessage) json.RawMessage {
	room := svc.o.MaxContext
	for k, v := range memory {
		if k != key {
			room -= len(k) + len(v) + 4
		}
	}
	lim := history.Limits{Elements: history.DefaultLimits().Elements,
		Bytes: max(64, min(maxTurnBytes, room-len(key)-4))}
	var kept struct {
		Messages json.RawMessage `json:"messages"`
	}
	if json.Unmarshal(history.Newest(turns, lim), &kept) != nil {
		return json.RawMessage("[]") // unreachable: Newest writes an object with messages
	}
	return kept.Messages
}
