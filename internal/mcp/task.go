package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/runtime/catalog"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
	"github.com/recurgentd/recurgentd/internal/store"
)

// A task of the protocol is a view of a call. Its id is the call's id, and its state comes from the call log. The
// server stores nothing about tasks, so a task survives whatever its call survives. Tasks are in the core of version
// 2025-11-25, and an extension of later versions.

// A taskForm is the variant of tasks that a client uses.
type taskForm int

const (
	noTasks        taskForm = iota // the client does not support tasks
	coreTasks                      // as in the core of version 2025-11-25
	extensionTasks                 // as in the extension of later versions
)

// Names of the protocol.
const (
	firstWithTasks = "2025-11-25"
	tasksExtension = "io.modelcontextprotocol/tasks"
	metaTask       = "io.modelcontextprotocol/related-task"

	methodTaskGet    = "tasks/get"
	methodTaskResult = "tasks/result"
	methodTaskList   = "tasks/list"
	methodTaskCancel = "tasks/cancel"
	methodTaskUpdate = "tasks/update"
)

// Statuses of a task.
const (
	taskWorking   = "working"
	taskCompleted = "completed"
	taskFailed    = "failed"
	taskCancelled = "cancelled"
)

// codeCapability is the error code for a request that needs a capability which the client has not declared.
const codeCapability = -32021

// pollMs is the recommended polling interval, in milliseconds.
const pollMs = 1000

// taskMethods are the methods about tasks, and the forms that have them.
var taskMethods = map[string][]taskForm{
	methodTaskGet: {coreTasks, extensionTasks}, methodTaskCancel: {coreTasks, extensionTasks},
	methodTaskResult: {coreTasks}, methodTaskList: {coreTasks}, methodTaskUpdate: {extensionTasks},
}

// formOf returns the form of tasks in a version of the protocol.
func formOf(version string) taskForm {
	switch {
	case version < firstWithTasks:
		return noTasks
	case version < newestVersion:
		return coreTasks
	}
	return extensionTasks
}

// tasksOf returns the form of tasks that the client supports: that of its version. With extensionTasks, the client must
// have declared the extension.
func tasksOf(client *sdk.ServerSession, meta map[string]any) taskForm {
	form := formOf(version(client))
	if form == extensionTasks && !declaresTasks(meta) {
		return noTasks
	}
	return form
}

// declaresTasks reports whether the client declares the tasks extension in _meta.
func declaresTasks(meta map[string]any) bool {
	capabilities, _ := meta[metaCapabilities].(map[string]any)
	extensions, _ := capabilities["extensions"].(map[string]any)
	_, declared := extensions[tasksExtension]
	return declared
}

// undeclared returns the error for a request about tasks by a client that has not declared the extension.
func undeclared() error {
	return &jsonrpc.Error{Code: codeCapability, Message: "the request's clientCapabilities lack the extension " +
		tasksExtension,
		Data: agent.Encoded(map[string]any{"requiredCapabilities": map[string]any{"extensions": map[string]any{tasksExtension: struct{}{}}}})}
}

// A taskState is the state of a task, independent of its form.
type taskState struct {
	id, status, message string
	created, updated    time.Time
	ttl                 *int64 // milliseconds from created; nil: unlimited
}

// coreTask is a task in the format of version 2025-11-25.
type coreTask struct {
	TaskID        string `json:"taskId"`
	Status        string `json:"status"`
	StatusMessage string `json:"statusMessage,omitempty"`
	CreatedAt     string `json:"createdAt"`
	LastUpdatedAt string `json:"lastUpdatedAt"`
	TTL           *int64 `json:"ttl"`
	PollInterval  int    `json:"pollInterval"`
}

// core returns the task in the core's format.
func (t *taskState) core() coreTask {
	return coreTask{t.id, t.status, t.message, agent.FormatTime(t.created), agent.FormatTime(t.updated), t.ttl, pollMs}
}

// coreTaskResult is the result of tasks/get and tasks/cancel in version 2025-11-25.
type coreTaskResult struct {
	sdk.ResultBase
	coreTask
}

// createdTask is the result of a tools/call that became a task, in version 2025-11-25.
type createdTask struct {
	sdk.ResultBase
	Task coreTask `json:"task"`
}

// extensionTask is a task in the format of the extension. It is the result of tasks/get, and of a tools/call that
// became a task.
type extensionTask struct {
	sdk.ResultBase
	ResultType    string              `json:"resultType"`
	TaskID        string              `json:"taskId"`
	Status        string              `json:"status"`
	StatusMessage string              `json:"statusMessage,omitempty"`
	CreatedAt     string              `json:"createdAt"`
	LastUpdatedAt string              `json:"lastUpdatedAt"`
	TTL           *int64              `json:"ttlMs"`
	PollInterval  int                 `json:"pollIntervalMs"`
	Result        *sdk.CallToolResult `json:"result,omitempty"`
}

// Values of resultType.
const (
	resultTask     = "task"
	resultComplete = "complete"
)

// extension returns the task in the extension's format, with that resultType.
func (t *taskState) extension(resultType string) *extensionTask {
	return &extensionTask{ResultType: resultType, TaskID: t.id, Status: t.status, StatusMessage: t.message,
		CreatedAt: agent.FormatTime(t.created), LastUpdatedAt: agent.FormatTime(t.updated),
		TTL: t.ttl, PollInterval: pollMs}
}

// acknowledged is the empty result of tasks/update and of the extension's tasks/cancel.
type acknowledged struct {
	sdk.ResultBase
	ResultType string `json:"resultType"`
}

// ttl returns how long a task can be retrieved, in milliseconds: as long as outcomes are kept. nil means unlimited.
func (s *Server) ttl() *int64 {
	hours := s.o.Runtime.PolicyInForce().Retention.ValueHours
	if hours == 0 {
		return nil
	}
	ms := int64(hours) * time.Hour.Milliseconds()
	return &ms
}

// state returns the state of the task for a call's log entry. An error of the tool is a failed task in the core's form,
// and a completed one in the extension's.
func (s *Server) state(e *agent.LogEntry, form taskForm) taskState {
	t := taskState{id: e.CallID, status: taskWorking, created: ids.Time(e.CallID), ttl: s.ttl()}
	t.updated = t.created
	if e.OutcomeStatus == agent.StatusRunning {
		t.message = cmp.Or(stage(progress.Event{Type: e.Stage}), underWay)
		return t
	}
	t.status, t.updated = taskCompleted, t.created.Add(time.Duration(e.DurationMs*float64(time.Millisecond)))
	if e.OutcomeStatus == agent.StatusOK {
		return t
	}
	t.message = e.OutcomeErrorType + ": " + e.OutcomeErrorMessage
	switch {
	case e.OutcomeErrorType == agent.ErrCanceled && !e.OutcomeAuthored:
		t.status = taskCancelled
	case form == coreTasks:
		t.status = taskFailed
	}
	return t
}

// over reports whether the task has expired.
func (s *Server) over(t *taskState) bool {
	return t.ttl != nil && !s.o.Now().Before(t.created.Add(time.Duration(*t.ttl)*time.Millisecond))
}

// noTask returns the error for a task that the client does not have.
func noTask(why string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: why}
}

const unknownTask = "there is no task of that id"

// isTask reports whether a call can be a task. Nested calls cannot.
func isTask(e *agent.LogEntry) bool { return e.Depth == 0 && e.SessionID != "" }

// task returns the call of a task. It must be the principal's own, even with the scope operate.
func (s *Server) task(ctx context.Context, id string) (operator.CallView, error) {
	if !isCallID(id) {
		return operator.CallView{}, noTask(unknownTask)
	}
	whose, err := s.o.Runtime.CallOwner(ctx, id)
	var view operator.CallView
	if err == nil && whose == owner(ctx) {
		view, err = s.o.Runtime.CallView(ctx, id)
	}
	switch {
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrGone), err == nil &&
		(view.CallID == "" || !isTask(&view.LogEntry)):
		return view, noTask(unknownTask)
	case err != nil:
		return view, rpcError(fmt.Errorf("the task cannot be read: %w", err))
	}
	// retention may have dropped the outcome before the entry
	if t := s.state(&view.LogEntry, coreTasks); s.over(&t) || ended(&view) && view.Outcome == nil {
		return view, noTask("the task has expired: its result is not kept any more")
	}
	return view, nil
}

// ended reports whether the call has ended.
func ended(view *operator.CallView) bool { return view.OutcomeStatus != agent.StatusRunning }

// isCallID reports whether a text has the form of a call id.
func isCallID(id string) bool { return strings.HasPrefix(id, "call_") && !ids.Time(id).IsZero() }

// taskOutcome returns the result of a call that has ended, as tools/call would have returned it.
func (s *Server) taskOutcome(ctx context.Context, client *sdk.ServerSession,
	view *operator.CallView) (*sdk.CallToolResult, error) {
	tool, err := s.o.Tools.Of(ctx, reader(ctx), catalog.Method{Role: view.Role, Name: view.Method})
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, rpcError(err)
	}
	r := callReply{CallID: view.CallID, SessionID: view.SessionID, Outcome: agent.Encoded(view.Outcome)}
	r.Program.Source = cmp.Or(view.ProgramSource, agent.SourceNone)
	if err := room(ctx, int64(len(r.Outcome))); err != nil {
		return nil, err
	}
	return s.result(ctx, client, r, tool)
}

// Task returns the id of the task that a message is about, or "" if it is not about a task.
func Task(message []byte) string {
	if _, ok := taskMethods[text(only(message, "method"))]; !ok {
		return ""
	}
	return text(only(only(message, "params"), "taskId"))
}

// taskMember returns the member task of a request's params, or nil if there is none.
func taskMember(ctx context.Context) json.RawMessage {
	params := requestOf(ctx).params
	if !bytes.Contains(params, []byte(`"task"`)) { // avoids parsing the params of most calls
		return nil
	}
	return only(params, "task")
}
