package operator

import (
	"context"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/store"
)

// ReplayReport is the result of running a recorded call again.
type ReplayReport struct {
	CallID     string `json:"call_id"`
	Replayable bool   `json:"replayable"`
	Reason     string `json:"reason,omitempty"` // why it cannot be replayed, or how the runs differ
	Equal      bool   `json:"equal"`            // both runs ended in the same bytes
	Recorded   string `json:"recorded,omitempty"`
	Replayed   string `json:"replayed,omitempty"`
}

// maxEnding bounds an ending in a report, in bytes.
const maxEnding = 2000

// Replay runs the program of an ended call again, on the same input and its recorded effects, and compares the results.
// It has no effects and stores nothing. It returns store.ErrNotFound for an unknown call.
func (o *Operator) Replay(ctx context.Context, callID string) (ReplayReport, error) {
	got, err := o.store.Call(ctx, callID)
	if err != nil {
		return ReplayReport{}, err
	}
	report := ReplayReport{CallID: callID}
	if report.Reason = o.unreplayable(ctx, &got); report.Reason != "" {
		return report, nil
	}
	session, err := o.store.Session(ctx, got.Log.SessionID)
	if err != nil {
		report.Reason = "the session is gone"
		return report, nil
	}
	report.Replayable = true
	compared, err := sandbox.Replay(ctx, o.box, o.recording(&got, session.Owner), o.calls.RecordedHost(session))
	if err != nil {
		report.Replayable, report.Reason = false, err.Error()
		return report, nil
	}
	report.Equal, report.Recorded, report.Replayed = compared.Equal, runtime.Clip(compared.Recorded, maxEnding),
		runtime.Clip(compared.Replayed, maxEnding)
	if compared.Diverged != "" {
		report.Reason = compared.Diverged
	}
	return report, nil
}

// unreplayable returns why the call cannot be replayed, or "". It also adds the program's code to the log entry.
func (o *Operator) unreplayable(ctx context.Context, got *store.Call) string {
	e := &got.Log
	if e.Code == "" && e.CodeChecksum != "" {
		e.Code = o.codeOf(ctx, *e)
	}
	ownFailure := []string{agent.ErrExecution, agent.ErrTimeout, agent.ErrResourceExhausted, agent.ErrRunnerCrash,
		agent.ErrNonSerializable}
	switch {
	case !e.Replayable && e.ReplayableReason != "":
		return e.ReplayableReason
	case !e.Replayable:
		return agent.ReasonNoProgram
	case e.Code == "" || agent.Checksum(e.Code) != e.CodeChecksum:
		return "the program is no longer kept"
	case e.OutcomeStatus == agent.StatusOK && got.Outcome == nil:
		return "the value has expired"
	case e.OutcomeStatus != agent.StatusOK && !e.OutcomeAuthored && !slices.Contains(ownFailure, e.OutcomeErrorType):
		return "the call did not end in its program: " + e.OutcomeErrorType
	}
	return ""
}

// recording returns the call as the sandbox replays it.
func (o *Operator) recording(got *store.Call, owner string) sandbox.Recording {
	e := &got.Log
	rec := sandbox.Recording{Journal: got.Effects, Request: sandbox.Request{
		Canonical: runtime.Canonical(o.calls.Rules()), Program: sandbox.Program{Source: e.Code,
			Checksum: e.CodeChecksum}, Owner: o.calls.Owner(owner), Role: e.Role, Method: e.Method, CallID: e.CallID,
		TraceID: e.TraceID,
		Depth:   e.Depth, Args: e.Args, Kwargs: e.Kwargs, Seed: runtime.Seed(e.CallID), Timeout: o.calls.RunTimeout()}}
	// the program got other arguments than the call
	if e.ProgramKwargs != nil {
		rec.Request.Args, rec.Request.Kwargs = e.ProgramArgs, e.ProgramKwargs
	}
	switch {
	case e.OutcomeStatus == agent.StatusOK:
		rec.Value = got.Outcome.Value
	case e.OutcomeAuthored:
		rec.Authored = &sandbox.AuthoredError{Type: e.OutcomeErrorType, Message: e.OutcomeErrorMessage}
	default:
		rec.FailureType = e.OutcomeErrorType
	}
	return rec
}
