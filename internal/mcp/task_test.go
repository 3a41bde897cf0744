package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/recurgentd/recurgentd/internal/access"
	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/runtime/files"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
)

// taskRuntime has a single call, of ann.
type taskRuntime struct {
	Runtime
	policy agent.Policy
	view   operator.CallView
}

func (f *taskRuntime) PolicyInForce() *agent.Policy { return &f.policy }

func (f *taskRuntime) CallOwner(context.Context, string) (string, error) { return "ann", nil }

func (f *taskRuntime) CallView(context.Context, string) (operator.CallView, error) {
	return f.view, nil
}

// The message of a task describes the call's stage in the words of progress notifications.
func TestStageOfATask(t *testing.T) {
	t.Parallel()
	s := &Server{o: Options{Runtime: &taskRuntime{policy: agent.DefaultPolicy()}}}
	for _, c := range []struct{ kind, data, task, notification string }{
		{progress.Queued, `{"ahead":2}`, "queued behind earlier calls of the session",
			"queued behind 2 calls of the session"},
		{progress.Selected, `{"decision":"forge","reason":"absent"}`, underWay, "selected: forge (absent)"},
		{progress.Forging, `{"kind":"repair"}`, "a model writes the program", "a model repairs the program"},
		{progress.Gate, `{}`, "the program is checked", "the program is checked"},
		{progress.Building, `{}`, "the stored program is compiled", "the stored program is compiled"},
		{progress.Running, `{}`, "the program runs", "the program runs"},
		{progress.AttemptFailed, `{"stage":"execution","error_type":"x"}`, underWay, "failed in execution: x"},
		{"", `{}`, underWay, ""},
	} {
		e := agent.LogEntry{CallID: ids.New("call"), OutcomeStatus: agent.StatusRunning, Stage: c.kind}
		if got := s.state(&e, coreTasks).message; got != c.task {
			t.Errorf("%q: the task is %q, want %q", c.kind, got, c.task)
		}
		if got := stage(progress.Event{Type: c.kind, Data: json.RawMessage(c.data)}); got != c.notification {
			t.Errorf("%q: the notification is %q, want %q", c.kind, got, c.notification)
		}
	}
}

// A task can be retrieved as long as the policy keeps outcomes, and not longer, even if its call still runs.
func TestTasksExpireAsOutcomesDo(t *testing.T) {
	t.Parallel()
	id := ids.New("call")
	ended := agent.Outcome{}
	for name, c := range map[string]struct {
		hours   int
		after   time.Duration
		outcome *agent.Outcome
		status  string
		fine    bool
	}{
		"fresh":                        {24, time.Hour, &ended, agent.StatusOK, true},
		"at its end":                   {24, 24*time.Hour + time.Second, &ended, agent.StatusOK, false},
		"its outcome is erased":        {24, time.Hour, nil, agent.StatusOK, false},
		"running":                      {24, time.Hour, nil, agent.StatusRunning, true},
		"running for longer than that": {1, 2 * time.Hour, nil, agent.StatusRunning, false},
		"kept for ever":                {0, 10_000 * time.Hour, &ended, agent.StatusOK, true},
	} {
		f := &taskRuntime{policy: agent.DefaultPolicy()}
		f.policy.Retention.ValueHours = c.hours
		f.view = operator.CallView{LogEntry: agent.LogEntry{CallID: id, SessionID: "sess_x", OutcomeStatus: c.status},
			Outcome: c.outcome}
		s := &Server{o: Options{Runtime: f, Now: func() time.Time { return ids.Time(id).Add(c.after) }}}
		ctx := WithPrincipal(t.Context(), access.Principal{Name: "ann"})
		view, err := s.task(ctx, id)
		var rpc *jsonrpc.Error
		if c.fine && (err != nil || view.CallID != id) || !c.fine &&
			(!errors.As(err, &rpc) || rpc.Code != jsonrpc.CodeInvalidParams) {
			t.Errorf("%s: %v, %v", name, view, err)
		}
		if state := s.state(&f.view.LogEntry, coreTasks); (state.ttl == nil) != (c.hours == 0) {
			t.Errorf("%s: its time is %v", name, state.ttl)
		}
		if _, err := s.task(WithPrincipal(t.Context(), access.Principal{Name: "ben"}),
			id); !errors.As(err, &rpc) || rpc.Message != unknownTask {
			t.Errorf("%s, another's: %v", name, err)
		}
	}
}

// A tool's own error has a different status in the two forms. A canceled call is canceled in both.
func TestStatusOfATask(t *testing.T) {
	t.Parallel()
	s := &Server{o: Options{Runtime: &taskRuntime{policy: agent.DefaultPolicy()}}}
	for _, c := range []struct {
		status, errorType string
		authored          bool
		core, extension   string
	}{
		{agent.StatusRunning, "", false, taskWorking, taskWorking},
		{agent.StatusOK, "", false, taskCompleted, taskCompleted},
		{agent.StatusError, "not_today", true, taskFailed, taskCompleted},
		{agent.StatusError, agent.ErrTimeout, false, taskFailed, taskCompleted},
		{agent.StatusError, agent.ErrCanceled, false, taskCancelled, taskCancelled},
		{agent.StatusError, agent.ErrCanceled, true, taskFailed, taskCompleted}, // the program's own error
	} {
		e := agent.LogEntry{CallID: ids.New("call"), OutcomeStatus: c.status, OutcomeErrorType: c.errorType,
			OutcomeAuthored: c.authored, DurationMs: 1500}
		core, extension := s.state(&e, coreTasks), s.state(&e, extensionTasks)
		if core.status != c.core || extension.status != c.extension {
			t.Errorf("%s %s: %s and %s, want %s and %s", c.status, c.errorType, core.status, extension.status, c.core,
				c.extension)
		}
		if took := core.updated.Sub(core.created); c.status == agent.StatusRunning && took != 0 ||
			c.status != agent.StatusRunning && took != 1500*time.Millisecond {
			t.Errorf("%s: updated after %v", c.status, took)
		}
	}
}

// For a client with the extension, a call becomes a task when a model is asked or after a while. Otherwise the result
// is returned.
func TestWhenACallIsATask(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		act  func(stages *progress.Log, done chan runtime.CallResult)
		long bool
		took time.Duration
	}{
		"quick": {func(stages *progress.Log, done chan runtime.CallResult) {
			stages.Add(progress.Running, struct{}{})
			stages.End()
			done <- runtime.CallResult{CallID: "call_1"}
		}, false, 0},
		"a model is asked": {func(stages *progress.Log, _ chan runtime.CallResult) {
			stages.Add(progress.Selected, struct{}{})
			stages.Add(progress.Forging, struct{}{})
		}, true, 0},
		"its program runs long": {func(stages *progress.Log, _ chan runtime.CallResult) {
			stages.Add(progress.Running,
				struct{}{})
		}, true, taskAfter},
		"its result comes late": {func(stages *progress.Log, done chan runtime.CallResult) {
			stages.End()
			time.Sleep(time.Second)
			done <- runtime.CallResult{CallID: "call_1"}
		}, false, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				stages, done, began := &progress.Log{}, make(chan runtime.CallResult, 1), time.Now()
				go c.act(stages, done)
				res, long, err := untilLong(t.Context(), stages, done)
				if err != nil || long != c.long || (res.CallID == "") != long || time.Since(began) != c.took {
					t.Errorf("%+v, a task: %v, %v, after %v", res, long, err, time.Since(began))
				}
			})
		})
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, long, err := untilLong(gone, &progress.Log{}, make(chan runtime.CallResult)); err == nil || long {
		t.Errorf("a client that has gone: %v, %v", long, err)
	}
}

// Both forms of a task match their schemas: required members are present even if there is no time.
func TestTasksOnTheWire(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 6_000_000, time.UTC)
	state := taskState{id: "call_1", status: taskWorking, created: at, updated: at}
	for want, v := range map[string]any{
		`{"taskId":"call_1","status":"working","createdAt":"2026-01-02T03:04:05.006Z","lastUpdatedAt":"2026-01-02T03:04:05.006Z","ttl":null,"pollInterval":1000}`:                         &coreTaskResult{coreTask: state.core()},
		`{"resultType":"task","taskId":"call_1","status":"working","createdAt":"2026-01-02T03:04:05.006Z","lastUpdatedAt":"2026-01-02T03:04:05.006Z","ttlMs":null,"pollIntervalMs":1000}`: state.extension(resultTask),
		`{"tasks":[]}`:              &taskList{Tasks: []coreTask{}},
		`{"resultType":"complete"}`: &acknowledged{ResultType: resultComplete},
	} {
		if got, err := json.Marshal(v); err != nil || string(got) != want {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
}

// readable is a runtime with a single file.
type readable struct {
	Runtime
	text string
}

func (f *readable) OpenFile(ctx context.Context, _, id string) (*files.Reader, error) {
	sum := sha256.Sum256([]byte(f.text))
	return files.NewReader(ctx, agent.File{ID: id, Bytes: int64(len(f.text)), SHA256: hex.EncodeToString(sum[:]),
		MediaType: "text/plain"}, closing{strings.NewReader(f.text)}), nil
}

func (f *readable) Settled() error { return nil }

type closing struct{ io.ReaderAt }

func (closing) Close() error { return nil }

// A resource is read only if there is space for the reply, including all copies.
func TestResourcesTakeRoom(t *testing.T) {
	t.Parallel()
	s := &Server{o: Options{Runtime: &readable{text: strings.Repeat("x", 1000)}}}
	req := &sdk.ReadResourceRequest{Params: &sdk.ReadResourceParams{URI: resourcePrefix + "file_0"}}
	for _, enough := range []bool{true, false} {
		asked := int64(0)
		ctx := WithHost(t.Context(), Host{Room: func(n int64) bool {
			asked += n
			return enough
		}})
		got, err := s.readResource(ctx, req)
		var rpc *jsonrpc.Error
		if enough && (err != nil || len(got.Contents[0].Text) != 1000) || !enough &&
			(!errors.As(err, &rpc) || rpc.Code != codeUnavailable) {
			t.Errorf("room: %v: %v, %v", enough, got, err)
		}
		if asked < 2000 {
			t.Errorf("room for %d bytes was asked for", asked)
		}
	}
}
