package operator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/attempt"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/why"
	"github.com/recurgentd/recurgentd/internal/store"
)

// CallView is a call as GET /v1/calls/{id} returns it: its log entry and, while it is kept, its outcome.
type CallView struct {
	agent.LogEntry
	Outcome *agent.Outcome `json:"outcome"`
}

// CallView returns a call, which may be running. It returns store.ErrNotFound for an unknown call.
func (o *Operator) CallView(ctx context.Context, callID string) (CallView, error) {
	if e, running := o.calls.Running(callID); running {
		return CallView{LogEntry: filled(e)}, nil
	}
	got, err := o.store.Call(ctx, callID)
	if err == nil {
		err = o.o.Store.Settled()
	}
	if err != nil {
		return CallView{}, err
	}
	if got.Log.Code == "" && got.Log.CodeChecksum != "" {
		got.Log.Code = o.codeOf(ctx, got.Log)
	}
	view := CallView{LogEntry: filled(got.Log), Outcome: got.Outcome}
	if root := view.RootCallID; root != "" {
		view.CorrectedBy = o.correctionOf(ctx, root)
	}
	view.Verdict = o.verdictsOf().on(ctx, &view.LogEntry)
	return view, nil
}

// CallOwner returns the owner of the call: that of its session or, without one, whoever made the call. It is "" if that
// is not known any more. It returns store.ErrNotFound for an unknown call.
func (o *Operator) CallOwner(ctx context.Context, callID string) (string, error) {
	e, running := o.calls.Running(callID)
	if running {
		return agent.OwnerOf(&e), nil
	}
	invoke, err := o.store.Call(ctx, callID)
	if err != nil {
		return "", err
	}
	return o.ownerOf(ctx, &invoke.Log), nil
}

// ownerOf returns the owner of a call: that of the entry, else that of its session, or "" if neither is known.
func (o *Operator) ownerOf(ctx context.Context, e *agent.LogEntry) string {
	if e.Owner != "" {
		return e.Owner
	}
	s, err := o.store.Session(ctx, e.SessionID)
	if err != nil {
		return ""
	}
	return cmp.Or(s.Owner, agent.LocalOwner)
}

// codeOf returns the program of a log entry that has only its checksum, or "" if the program is not kept.
func (o *Operator) codeOf(ctx context.Context, e agent.LogEntry) string {
	if g := o.generationOf(ctx, e); g != nil {
		return g.Code
	}
	return ""
}

// generationOf returns the generation that ran in a call, or nil if it is not kept.
func (o *Operator) generationOf(ctx context.Context, e agent.LogEntry) *agent.Generation {
	a, err := o.store.Artifact(ctx, e.Role, e.Method)
	if err != nil {
		return nil
	}
	for _, g := range a.Generations {
		if g.CodeChecksum == e.CodeChecksum {
			return g
		}
	}
	return nil
}

// varies reports whether the program that ran in a call uses what a library may do in another way each time.
func (o *Operator) varies(ctx context.Context, e agent.LogEntry) bool {
	var facts report.Facts
	g := o.generationOf(ctx, e)
	return g != nil && json.Unmarshal(g.Facts, &facts) == nil && facts.Nondeterministic
}

// ListCalls returns log entries, newest first. Running calls come first, unless the query excludes them.
func (o *Operator) ListCalls(ctx context.Context, q store.CallQuery) ([]agent.LogEntry, error) {
	var out []agent.LogEntry
	// running calls come before all ended ones, so they belong only to the first pages
	under := q.Before == "" || q.Status == agent.StatusRunning || o.isRunning(q.Before)
	if under && (q.Status == "" || q.Status == agent.StatusRunning) && q.ErrorType == "" && q.WeakSuccess == nil &&
		q.HistoryAccess == nil && q.Source == "" {
		out = o.runningEntries(q)
	}
	if under && q.Status != agent.StatusRunning {
		q.Before = "" // all ended calls come after a running one
	}
	if q.Status == agent.StatusRunning {
		return out, nil
	}
	if q.Limit > 0 && len(out) >= q.Limit {
		return out[:q.Limit], nil
	}
	if q.Limit > 0 {
		q.Limit -= len(out)
	}
	ended, err := o.store.ListCalls(ctx, q)
	if err != nil {
		return nil, err
	}
	// a call that ended between the two reads is in both lists
	out = slices.DeleteFunc(out, func(e agent.LogEntry) bool {
		return slices.ContainsFunc(ended, func(d agent.LogEntry) bool { return d.CallID == e.CallID })
	})
	out = append(out, ended...)
	o.linkTrees(ctx, out)
	judged := o.verdictsOf()
	for i := range out {
		out[i] = filled(out[i])
		out[i].Verdict = judged.on(ctx, &out[i])
	}
	return out, nil
}

// Preview sets ValuePreview of entries whose values are kept. It checks no rights: a reader of an entry may read its
// value.
func (o *Operator) Preview(ctx context.Context, entries []agent.LogEntry) error {
	var ids []string
	for i := range entries {
		if entries[i].OutcomeStatus == agent.StatusOK {
			ids = append(ids, entries[i].CallID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	values, err := o.store.Previews(ctx, ids)
	if err == nil {
		err = o.o.Store.Settled()
	}
	if err != nil {
		return err
	}
	for i := range entries {
		entries[i].ValuePreview = values[entries[i].CallID]
	}
	return nil
}

// filled replaces nil lists by empty ones, and sets the code of the reason why the call is not replayable.
func filled(e agent.LogEntry) agent.LogEntry {
	for _, list := range []*[]string{&e.HistoryQueryPatterns, &e.CapabilityPatterns, &e.WeakSuccessReasons} {
		if *list == nil {
			*list = []string{}
		}
	}
	if e.AttemptFailures == nil {
		e.AttemptFailures = []agent.AttemptFailure{}
	}
	if e.Args == nil {
		e.Args = []json.RawMessage{}
	}
	if len(e.Kwargs) == 0 {
		e.Kwargs = json.RawMessage("{}")
	}
	e.ReplayableCode = agent.ReasonCode(e.ReplayableReason)
	return e
}

// isRunning reports whether the call runs at this replica.
func (o *Operator) isRunning(callID string) bool {
	_, running := o.calls.Running(callID)
	return running
}

// runningEntries returns the running calls that match the query, newest first.
func (o *Operator) runningEntries(q store.CallQuery) []agent.LogEntry {
	is := func(want, got string) bool { return want == "" || want == got }
	since, until := agent.FormatTime(q.Since), agent.FormatTime(q.Until)
	out := slices.DeleteFunc(o.calls.RunningCalls(), func(e agent.LogEntry) bool {
		matches := (q.Before == "" || e.CallID < q.Before) && is(q.SessionID, e.SessionID) && is(q.Role, e.Role) &&
			is(q.Method, e.Method) &&
			is(q.Owner, agent.OwnerOf(&e)) && is(q.TraceID, e.TraceID) && is(q.ParentCallID, e.ParentCallID) &&
			(q.Since.IsZero() || e.Timestamp >= since) && (q.Until.IsZero() || e.Timestamp < until)
		return !matches
	})
	slices.SortFunc(out, func(a, b agent.LogEntry) int { return strings.Compare(b.CallID, a.CallID) })
	return out
}

// Cancel ends a running call as canceled, even if the audit entry cannot be written. It returns nil if the call has
// ended already, and store.ErrNotFound for an unknown call.
func (o *Operator) Cancel(ctx context.Context, callID, actor string) error {
	if e, _ := o.calls.Running(callID); o.calls.CancelRunning(callID) {
		entry := o.audit(actor, opCancel, callID, "")
		entry.SessionID = e.SessionID
		if err := o.store.AppendAudit(ctx, entry); err != nil {
			o.o.Logger.Warn().Err(err).Str("call_id", callID).Str("actor",
				actor).Msg("the audit trail lacks that a call was canceled")
		}
		return nil
	}
	_, err := o.store.Call(ctx, callID)
	if errors.Is(err, store.ErrGone) {
		return nil
	}
	return err
}

// maxNested bounds the nested calls in an explanation.
const maxNested = 64

// nested returns the calls that the call's program made, as many as its journal contains. They precede the call in the
// log.
func (o *Operator) nested(ctx context.Context, invoke *store.Call) ([]agent.LogEntry, error) {
	n := 0
	for _, d := range sandbox.DoneIn(invoke.Effects) {
		if d.Calls() {
			n++
		}
	}
	if n == 0 {
		return nil, nil
	}
	return o.store.ListCalls(ctx, store.CallQuery{Before: invoke.Log.CallID, ParentCallID: invoke.Log.CallID,
		Limit: min(n, maxNested)})
}

// Why explains a call, which may be running, to the asker. It returns store.ErrNotFound for an unknown call.
func (o *Operator) Why(ctx context.Context, callID string, asker why.Asker) (*why.Explanation, error) {
	now := o.calls.Policy()
	in := why.Input{Asker: asker, Policy: &now, PolicyNow: &now, Select: o.calls.Reselect, Price: o.o.Cost}
	e, running := o.calls.Running(callID)
	if running {
		in.Call.Log = e
		return why.Explain(&in), nil
	}
	var err error
	if in.Call, err = o.store.Call(ctx, callID); err == nil {
		err = o.o.Store.Settled()
	}
	if err != nil {
		return nil, err
	}
	log := &in.Call.Log
	if log.RootCallID != "" {
		log.CorrectedBy = o.correctionOf(ctx, log.RootCallID)
	}
	log.Verdict = o.verdictsOf().on(ctx, log)
	all, err := o.store.ListArtifacts(ctx, log.Role)
	if err != nil {
		return nil, err
	}
	for _, a := range all {
		if len(a.Generations) > 0 {
			in.Methods = append(in.Methods, a.MethodName)
		}
	}
	if in.Artifact, err = o.store.Artifact(ctx, log.Role,
		log.Method); err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	if in.Nested, err = o.nested(ctx, &in.Call); err != nil {
		return nil, err
	}
	earlier, err := o.policiesSince(ctx, log.Timestamp, &now)
	if err != nil {
		return nil, err
	}
	in.Policy, in.PolicyKnown = earlier.at(log.Timestamp)
	return why.Explain(&in), nil
}

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
	out := ReplayReport{CallID: callID}
	if out.Reason = o.unreplayable(ctx, &got); out.Reason != "" {
		return out, nil
	}
	session, err := o.store.Session(ctx, got.Log.SessionID)
	if err != nil {
		out.Reason = "the session is gone"
		return out, nil
	}
	out.Replayable = true
	compared, err := sandbox.Replay(ctx, o.box, o.recording(&got, session.Owner), o.calls.RecordedHost(session))
	if err != nil {
		out.Replayable, out.Reason = false, err.Error()
		return out, nil
	}
	out.Equal, out.Recorded, out.Replayed = compared.Equal, agent.Clip(compared.Recorded, maxEnding),
		agent.Clip(compared.Replayed, maxEnding)
	switch {
	case compared.Diverged != "":
		out.Reason = compared.Diverged
	case !compared.Equal && o.varies(ctx, got.Log):
		out.Reason = "a library that the program uses may yield something else each time"
	}
	return out, nil
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
		Canonical: call.Canonical(o.calls.Rules()), Program: sandbox.Program{Source: e.Code,
			Checksum: e.CodeChecksum}, Owner: o.calls.Owner(owner), Role: e.Role, Method: e.Method, CallID: e.CallID,
		TraceID: e.TraceID,
		Depth:   e.Depth, Args: e.Args, Kwargs: e.Kwargs, Seed: attempt.Seed(e.CallID), Timeout: o.calls.RunTimeout()}}
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
