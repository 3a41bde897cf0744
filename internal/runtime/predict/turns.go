package predict

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/runtime/history"
	"github.com/recurgentd/recurgentd/internal/runtime/interrupt"
	"github.com/recurgentd/recurgentd/internal/store"
)

// predictMethod is the method_name of a prediction's record.
const predictMethod = "predict"

// A turn is a prediction in a session, of which a record is kept however it ends.
type turn struct {
	q       Query
	session agent.Session
	sig     contract.Signature // as it was asked for
	model   string
	began   time.Time
}

// keepTurn adds the turn to the session's context, secrets masked, and leaves a record, in one commit.
func (svc *Service) keepTurn(t turn, memory map[string]json.RawMessage, key string, turns []json.RawMessage, reply Answer) (Answer, error) {
	var outputs map[string]json.RawMessage
	if err := json.Unmarshal(reply.Outputs, &outputs); err != nil {
		return Answer{}, fmt.Errorf("read the outputs of a prediction: %w", err)
	}
	commit, err := svc.turnCommit(t, agent.Outcome{Status: agent.StatusOK, Value: reply.Outputs}, reply.Usage)
	if err != nil {
		return Answer{}, err
	}
	element, _ := history.Mask(history.Element(&t.sig, t.q.Inputs, outputs), svc.o.Calls.Policy().RedactKeys)
	commit.Context = &agent.ContextChange{Set: map[string]json.RawMessage{key: svc.boundTurns(memory, key, append(turns, element))}}
	if err := svc.store.CommitCall(context.Background(), &commit); err != nil {
		return Answer{}, err
	}
	svc.o.Calls.Feed().Publish(&commit.Log)
	reply.CallID = commit.Record.CallID
	return reply, nil
}

// keepFailure leaves a record of a prediction that the model was asked for in vain; it is no turn of the conversation.
func (svc *Service) keepFailure(ctx context.Context, t turn, failure error) error {
	o, _ := interrupt.Outcome(ctx)
	var failed *Failure
	if errors.As(failure, &failed) {
		o = agent.Failed(agent.ErrProvider, failed.Detail)
		if failed.Code == codeUnfitting {
			o = agent.Failed(agent.ErrParseFailed, failed.Detail)
		}
	} else {
		failed = &Failure{}
	}
	commit, err := svc.turnCommit(t, o, failed.Usage)
	if err != nil {
		return err
	}
	if err := svc.store.CommitCall(context.Background(), &commit); err != nil {
		return err
	}
	svc.o.Calls.Feed().Publish(&commit.Log)
	return nil
}

// turnCommit is the record and the log entry of a turn. The history that the request brought is no part of either.
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
	kwargs, _ := history.Mask(raw, svc.o.Calls.Policy().RedactKeys)
	o.ToolRole, o.MethodName = t.session.Role, predictMethod
	took := agent.Milliseconds(svc.o.Now().Sub(t.began))
	at, id := agent.FormatTime(t.began), agent.NewID("call")
	commit := store.CallCommit{SessionID: t.session.ID, Outcome: o,
		Record: agent.Record{CallID: id, Timestamp: at, Speaker: agent.SpeakerUser, Role: t.session.Role, MethodName: predictMethod, Args: []json.RawMessage{}, Kwargs: kwargs,
			OutcomeSummary: agent.Summarize(o), TraceID: t.q.TraceID, DurationMs: took, ErrorType: o.ErrorType, ErrorMessage: o.ErrorMessage, ProgramSource: agent.SourceNone},
		Log: agent.LogEntry{Timestamp: at, Runtime: "go", SessionID: t.session.ID, TraceID: t.q.TraceID, CallID: id, Role: t.session.Role, Model: t.model, Method: predictMethod,
			Args: []json.RawMessage{}, Kwargs: kwargs, DurationMs: took, OutcomeStatus: o.Status, OutcomeRetriable: o.Retriable, OutcomeErrorType: o.ErrorType, OutcomeErrorMessage: o.ErrorMessage,
			ContractSource: "none", ContractFingerprint: agent.FingerprintNone, ProgramSource: agent.SourceNone, Selection: agent.Selection{Decision: agent.DecideNone, Reason: predictMethod},
			HistoryRecordAppended: true, Usage: usage, SandboxLevel: svc.o.SandboxLevel, ReplayableReason: "no program ran"}}
	if o.OK() {
		commit.Log.OutcomeValueClass = agent.Kind(o.Value)
	}
	return commit, nil
}
