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

// A task of the protocol is a view of a call: its id is the call's, and what becomes of it is what the call log says. The server keeps nothing of it, so
// that a task outlives what a call outlives. Version 2025-11-25 has tasks in its core; later ones have them as an extension.

// A taskForm is how a client speaks of tasks.
type taskForm int

const (
	noTasks        taskForm = iota // the client does not know them
	coreTasks                      // as version 2025-11-25 has them
	extensionTasks                 // as the extension of later versions has them
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

// codeCapability is the code where a client has not declared what its request needs.
const codeCapability = -32021

// pollMs is how often a client should ask for a task, in milliseconds.
const pollMs = 1000

// taskMethods are the methods about tasks, with the forms that have them.
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

// tasksOf returns the form in which the client may be given a task: that of its version, if it has declared the extension where tasks are one.
func tasksOf(client *sdk.ServerSession, meta map[string]any) taskForm {
	form := formOf(version(client))
	if form == extensionTasks && !declaresTasks(meta) {
		return noTasks
	}
	return form
}

func declaresTasks(meta map[string]any) bool {
	capabilities, _ := meta[metaCapabilities].(map[string]any)
	extensions, _ := capabilities["extensions"].(map[string]any)
	_, declared := extensions[tasksExtension]
	return declared
}

// undeclared is the error for a request about tasks from a client that has not declared that it knows them.
func undeclared() error {
	return &jsonrpc.Error{Code: codeCapability, Message: "the request's clientCapabilities lack the extension " +
		tasksExtension,
		Data: agent.Encoded(map[string]any{"requiredCapabilities": map[string]any{"extensions": map[string]any{tasksExtension: struct{}{}}}})}
}

// A taskState is what both forms say of a task.
type taskState struct {
	id, status, message string
	created, updated    time.Time
	ttl                 *int64 // milliseconds from created; nil: for ever
}

// coreTask is a task as version 2025-11-25 has it.
type coreTask struct {
	TaskID        string `json:"taskId"`
	Status        string `json:"status"`
	StatusMessage string `json:"statusMessage,omitempty"`
	CreatedAt     string `json:"createdAt"`
	LastUpdatedAt string `json:"lastUpdatedAt"`
	TTL           *int64 `json:"ttl"`
	PollInterval  int    `json:"pollInterval"`
}

func (t *taskState) core() coreTask {
	return coreTask{t.id, t.status, t.message, agent.FormatTime(t.created), agent.FormatTime(t.updated), t.ttl, pollMs}
}

// coreTaskResult is the result of tasks/get and tasks/cancel.
type coreTaskResult struct {
	sdk.ResultBase
	coreTask
}

// createdTask is the result of a tools/call that became a task, in version 2025-11-25.
type createdTask struct {
	sdk.ResultBase
	Task coreTask `json:"task"`
}

// extensionTask is a task as the extension has it: the result of a tools/call that became one, and of tasks/get.
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

// Types of results.
const (
	resultTask     = "task"
	resultComplete = "complete"
)

func (t *taskState) extension(resultType string) *extensionTask {
	return &extensionTask{ResultType: resultType, TaskID: t.id, Status: t.status, StatusMessage: t.message,
		CreatedAt: agent.FormatTime(t.created), LastUpdatedAt: agent.FormatTime(t.updated),
		TTL: t.ttl, PollInterval: pollMs}
}

// acknowledged is the empty result of tasks/update and tasks/cancel of the extension.
type acknowledged struct {
	sdk.ResultBase
	ResultType string `json:"resultType"`
}

// ttl is how long a task can be asked for: as long as the outcomes of calls are kept.
func (s *Server) ttl() *int64 {
	hours := s.o.Runtime.PolicyInForce().Retention.ValueHours
	if hours == 0 {
		return nil
	}
	ms := int64(hours) * time.Hour.Milliseconds()
	return &ms
}

// state returns what a call's log entry says of the task. The two forms differ in what a tool's error is.
func (s *Server) state(e *agent.LogEntry, form taskForm) taskState {
	t := taskState{id: e.CallID, status: taskWorking, created: ids.Time(e.CallID), ttl: s.ttl()}
	t.updated = t.created
	if e.OutcomeStatus == agent.StatusRunning {
		t.message = stageNow(e.Stage)
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

// stageNow describes what a running call does, by the type of its newest event.
func stageNow(kind string) string {
	switch kind {
	case progress.Queued:
		return "queued behind earlier calls of the session"
	case progress.Forging:
		return "a model writes the program"
	case progress.Gate:
		return "the program is checked"
	case progress.Running:
		return "the program runs"
	}
	return "the call is under way"
}

// over reports whether the task's time is over.
func (s *Server) over(t *taskState) bool {
	return t.ttl != nil && !s.o.Now().Before(t.created.Add(time.Duration(*t.ttl)*time.Millisecond))
}

// noTask is the error where the client has no task of that id.
func noTask(why string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: why}
}

const unknownTask = "there is no task of that id"

// isTask reports whether a call can be a task: a client made it, and not another call.
func isTask(e *agent.LogEntry) bool { return e.Depth == 0 && e.SessionID != "" }

// task returns the call that the task is, which must be the client's own.
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
	if t := s.state(&view.LogEntry, coreTasks); s.over(&t) || ended(&view) && view.Outcome == nil {
		return view, noTask("the task has expired: its result is not kept any more")
	}
	return view, nil
}

func ended(view *operator.CallView) bool { return view.OutcomeStatus != agent.StatusRunning }

// isCallID reports whether a text can be the id of a call.
func isCallID(id string) bool { return strings.HasPrefix(id, "call_") && !ids.Time(id).IsZero() }

// taskOutcome returns the result of the call that has ended, as a tools/call has it.
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

// Task returns the id of the task that a message is about; "" where it is about none.
func Task(message []byte) string {
	if _, ok := taskMethods[text(only(message, "method"))]; !ok {
		return ""
	}
	return text(only(only(message, "params"), "taskId"))
}

// taskMember returns the member task of a request's params; nil where there is none.
func taskMember(ctx context.Context) json.RawMessage {
	params := requestOf(ctx).params
	if !bytes.Contains(params, []byte(`"task"`)) { // most calls are no tasks, and need not be read again
		return nil
	}
	return only(params, "task")
}
