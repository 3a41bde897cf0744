package api

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/runtime/overview"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
	"github.com/recurgentd/recurgentd/internal/runtime/why"
	"github.com/recurgentd/recurgentd/internal/store"
)

// owned is a Runtime restricted to one owner. Sessions and calls of others are store.ErrNotFound, as if they did not
// exist. Principals without the scope operate get one. Methods without a comment check the owner, and otherwise do what
// Runtime's do.
type owned struct {
	Shared
	all   Runtime
	owner string
}

// maxCallsRead bounds how many log entries are read for one page of an owner's calls.
const maxCallsRead = 10_000

// session returns store.ErrNotFound unless the session is the owner's.
func (o *owned) session(ctx context.Context, id string) error {
	s, err := o.all.Session(ctx, id)
	if err == nil && !s.OwnedBy(o.owner) {
		err = store.ErrNotFound
	}
	return err
}

// call returns store.ErrNotFound unless the call ran in a session of the owner.
func (o *owned) call(ctx context.Context, id string) error {
	owner, err := o.all.CallOwner(ctx, id)
	if err == nil && owner != o.owner {
		err = store.ErrNotFound
	}
	return err
}

func (o *owned) Session(ctx context.Context, id string) (agent.Session, error) {
	s, err := o.all.Session(ctx, id)
	if err == nil && !s.OwnedBy(o.owner) {
		return agent.Session{}, store.ErrNotFound
	}
	return s, err
}

func (o *owned) DeleteSession(ctx context.Context, id, actor string) error {
	if err := o.session(ctx, id); err != nil {
		return err
	}
	return o.all.DeleteSession(ctx, id, actor)
}

func (o *owned) ListSessions(ctx context.Context, q runtime.SessionQuery) ([]agent.Session, string, error) {
	q.Owner = o.owner
	return o.all.ListSessions(ctx, q)
}

func (o *owned) Context(ctx context.Context, id string) (map[string]json.RawMessage, error) {
	if err := o.session(ctx, id); err != nil {
		return nil, err
	}
	return o.all.Context(ctx, id)
}

func (o *owned) PatchContext(ctx context.Context, id string, patch json.RawMessage,
	actor string) (map[string]json.RawMessage, error) {
	if err := o.session(ctx, id); err != nil {
		return nil, err
	}
	return o.all.PatchContext(ctx, id, patch, actor)
}

func (o *owned) History(ctx context.Context, id string, q store.HistoryQuery) (store.HistoryPage, error) {
	if err := o.session(ctx, id); err != nil {
		return store.HistoryPage{}, err
	}
	return o.all.History(ctx, id, q)
}

func (o *owned) Responds(ctx context.Context, id, method string) (runtime.Introspection, error) {
	if err := o.session(ctx, id); err != nil {
		return runtime.Introspection{}, err
	}
	return o.all.Responds(ctx, id, method)
}

func (o *owned) Here(ctx context.Context, id string) error {
	if err := o.session(ctx, id); err != nil {
		return err
	}
	return o.all.Here(ctx, id)
}

func (o *owned) CallView(ctx context.Context, id string) (operator.CallView, error) {
	if err := o.call(ctx, id); err != nil {
		return operator.CallView{}, err
	}
	view, err := o.all.CallView(ctx, id)
	view.LogEntry = view.WithoutOthers()
	return view, err
}

// ListCalls bounds how many entries it reads, since most may be others'. The page may then be incomplete, with a
// cursor.
func (o *owned) ListCalls(ctx context.Context, q store.CallQuery) ([]agent.LogEntry, error) {
	q.Owner = o.owner
	if q.Scan != nil {
		q.Scan.Most = maxCallsRead
	}
	entries, err := o.all.ListCalls(ctx, q)
	for i := range entries {
		entries[i] = entries[i].WithoutOthers()
	}
	return entries, err
}

// Preview needs no check: the entries come from ListCalls or History.
func (o *owned) Preview(ctx context.Context, entries []agent.LogEntry) error {
	return o.all.Preview(ctx, entries)
}

func (o *owned) Cancel(ctx context.Context, id, actor string) error {
	if err := o.call(ctx, id); err != nil {
		return err
	}
	return o.all.Cancel(ctx, id, actor)
}

func (o *owned) Replay(ctx context.Context, id string) (operator.ReplayReport, error) {
	if err := o.call(ctx, id); err != nil {
		return operator.ReplayReport{}, err
	}
	return o.all.Replay(ctx, id)
}

func (o *owned) Why(ctx context.Context, id string, asker why.Asker) (*why.Explanation, error) {
	if err := o.call(ctx, id); err != nil {
		return nil, err
	}
	return o.all.Why(ctx, id, asker)
}

func (o *owned) CallEvents(ctx context.Context, id, after string, emit func(progress.Event) error) error {
	if err := o.call(ctx, id); err != nil {
		return err
	}
	return o.all.CallEvents(ctx, id, after, func(e progress.Event) error {
		// the event carries the whole entry of the call, so filter it as CallView does
		if e.Type == progress.Finished {
			view, err := o.CallView(ctx, id)
			if err != nil {
				return err
			}
			if e.Data, err = json.Marshal(view); err != nil {
				return err
			}
		}
		return emit(e)
	})
}

func (o *owned) Events(ctx context.Context, q operator.EventQuery, emit func(progress.Event) error) error {
	q.Owner = o.owner
	return o.all.Events(ctx, q, emit)
}

func (o *owned) Judge(ctx context.Context, id string,
	j operator.Judgement) (operator.JudgedCall, <-chan struct{}, error) {
	if err := o.call(ctx, id); err != nil {
		return operator.JudgedCall{}, nil, err
	}
	return o.all.Judge(ctx, id, j)
}

func (o *owned) Verdict(ctx context.Context, id string) (operator.JudgedCall, error) {
	if err := o.call(ctx, id); err != nil {
		return operator.JudgedCall{}, err
	}
	return o.all.Verdict(ctx, id)
}

func (o *owned) DropVerdict(ctx context.Context, id, actor string, mayOperate bool) error {
	if err := o.call(ctx, id); err != nil {
		return err
	}
	return o.all.DropVerdict(ctx, id, actor, mayOperate)
}

// Artifact removes what single calls have left in the artifact.
func (o *owned) Artifact(ctx context.Context, role, method string) (*agent.Artifact, error) {
	a, err := o.all.Artifact(ctx, role, method)
	if err != nil {
		return nil, err
	}
	return a.WithoutCalls(), nil
}

// Recommendations lists only the owner's calls as evidence. The reason still counts all of them.
func (o *owned) Recommendations(ctx context.Context, status string,
	_ func(context.Context, string) bool) ([]operator.Advice, error) {
	return o.all.Recommendations(ctx, status, o.sees)
}

func (o *owned) sees(ctx context.Context, callID string) bool { return o.call(ctx, callID) == nil }

// Examples returns the method's examples. Active ones are visible to everyone, without the calls of others that they
// come from. A proposed example is visible only to the owner of its call.
func (o *owned) Examples(ctx context.Context, role, method string) ([]agent.Example, error) {
	all, err := o.all.Examples(ctx, role, method)
	out := make([]agent.Example, 0, len(all))
	for _, x := range all {
		if x.CallID == "" || o.sees(ctx, x.CallID) {
			out = append(out, x)
		} else if x.State == agent.ExampleActive {
			out = append(out, x.WithoutCall())
		}
	}
	return out, err
}

// PatternReport lists only the events of the owner's calls. The patterns cover everyone's.
func (o *owned) PatternReport(ctx context.Context, role string) (operator.PatternReport, error) {
	report, err := o.all.PatternReport(ctx, role)
	report.Events = slices.DeleteFunc(slices.Clone(report.Events),
		func(e agent.PatternEvent) bool { return !o.sees(ctx, e.CallID) })
	return report, err
}

// HistoryUsage counts everyone's calls, as Trends does. Error types that programs define are counted together, since
// their names may contain data.
func (o *owned) HistoryUsage(ctx context.Context, since, until time.Time) (operator.HistoryUsage, error) {
	u, err := o.all.HistoryUsage(ctx, since, until)
	u.ByAccess.With.ErrorTypes, u.ByAccess.Without.ErrorTypes = ofRuntime(u.ByAccess.With.ErrorTypes),
		ofRuntime(u.ByAccess.Without.ErrorTypes)
	return u, err
}

func (o *owned) Trends(ctx context.Context, window time.Duration) (operator.Trends, error) {
	t, err := o.all.Trends(ctx, window)
	t.Total.ErrorType = ofRuntime(t.Total.ErrorType)
	for i := range t.Buckets {
		t.Buckets[i].ErrorType = ofRuntime(t.Buckets[i].ErrorType)
	}
	return t, err
}

// ofRuntime counts all error types that the runtime does not define as "other".
func ofRuntime(types map[string]int) map[string]int {
	out := make(map[string]int, len(types))
	for name, n := range types {
		if !slices.Contains(agent.ErrorTypes(), name) {
			name = "other"
		}
		out[name] += n
	}
	return out
}

// Tool returns the tool as cut leaves it.
func (o *owned) Tool(ctx context.Context, role string) (operator.KnownTool, error) {
	t, err := o.all.Tool(ctx, role)
	o.cut(&t)
	return t, err
}

// cut removes what the owner may not see of a tool: details of single calls in its health, and another owner's name.
func (o *owned) cut(t *operator.KnownTool) {
	if t.Health = t.Health.WithoutCalls(); t.Owner != o.owner {
		t.Owner = ""
	}
}

// FindTools omits spending, which includes that of others.
func (o *owned) FindTools(ctx context.Context, q overview.Query) ([]operator.KnownTool, string, error) {
	q.Spent = false
	tools, next, err := o.all.FindTools(ctx, q)
	for i := range tools {
		o.cut(&tools[i])
	}
	return tools, next, err
}

func (o *owned) Inbox(ctx context.Context, q operator.InboxQuery) ([]operator.Waiting, string, error) {
	q.Sees, q.Owner = o.sees, o.owner
	return o.all.Inbox(ctx, q)
}

func (o *owned) SimulatePolicy(ctx context.Context, q operator.SimulationQuery) (operator.Simulation, error) {
	q.Owner, q.Scan = o.owner, &store.Scan{Most: maxCallsRead}
	return o.all.SimulatePolicy(ctx, q)
}
