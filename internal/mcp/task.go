package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/runtime/catalog"
	"github.com/recurgentd/recurgentd/internal/runtime/interrupt"
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

// declared adds tasks to the capabilities in a result, in the form of the version, since the SDK does not support them.
func declared(result sdk.Result) sdk.Result {
	switch r := result.(type) {
	case *sdk.InitializeResult:
		if r != nil && formOf(r.ProtocolVersion) == coreTasks {
			return &initialized{InitializeResult: r, Capabilities: &capabilities{ServerCapabilities: r.Capabilities,
				Tasks: callTasks}}
		}
	case *sdk.DiscoverResult:
		if r != nil {
			r.Capabilities.AddExtension(tasksExtension, nil)
		}
	}
	return result
}

// initialized is the result of initialize, with the capability of tasks in the core's form.
type initialized struct {
	*sdk.InitializeResult
	Capabilities *capabilities `json:"capabilities"`
}

// capabilities adds tasks to the SDK's capabilities.
type capabilities struct {
	*sdk.ServerCapabilities
	Tasks json.RawMessage `json:"tasks"`
}

// callTasks declares that a tools/call may become a task, and that tasks can be listed and canceled.
var callTasks = json.RawMessage(`{"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}`)

// A listedTool is a tool with the task support that version 2025-11-25 declares per tool.
type listedTool struct {
	*sdk.Tool
	Execution *execution `json:"execution,omitempty"`
}

// execution declares whether a tool supports tasks: optional means that the client chooses.
type execution struct {
	TaskSupport string `json:"taskSupport"`
}

// listedTools is the result of tools/list in version 2025-11-25.
type listedTools struct {
	*sdk.ListToolsResult
	Tools []listedTool `json:"tools"`
}

// withExecution declares task support for the tools that make a call. The others have no declaration, which means none.
func (s *Server) withExecution(r *sdk.ListToolsResult) sdk.Result {
	out := &listedTools{ListToolsResult: r, Tools: make([]listedTool, len(r.Tools))}
	for i, t := range r.Tools {
		out.Tools[i].Tool = t
		if x, extra := s.extras[t.Name]; !extra || x.of == catalog.CallInSession {
			out.Tools[i].Execution = &execution{"optional"}
		}
	}
	return out
}

// asksForTasks reports whether a subscription asks for notifications about tasks. They are not supported: clients poll.
func asksForTasks(ctx context.Context) bool {
	return only(only(requestOf(ctx).params, "notifications"), "taskIds") != nil
}

// taskAfter is how long a tools/call waits for its result before it becomes a task, if the client supports the
// extension and no model is asked.
const taskAfter = 5 * time.Second

// wantsTask reports whether the client asks for a task, as in version 2025-11-25. It validates the requested ttl but
// ignores it, since the policy determines it.
func wantsTask(ctx context.Context, req *sdk.CallToolRequest) (bool, error) {
	if formOf(version(req.Session)) != coreTasks {
		return false, nil
	}
	raw := taskMember(ctx)
	if raw == nil {
		return false, nil
	}
	var task struct {
		TTL *float64 `json:"ttl"`
	}
	if agent.Kind(raw) != "object" || json.Unmarshal(raw, &task) != nil || task.TTL != nil && *task.TTL < 0 {
		return false, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams,
			Message: "task must be an object; its optional ttl is a number of milliseconds"}
	}
	return true, nil
}

// create starts the call and returns it as a task.
func (s *Server) create(ctx context.Context, q runtime.CallRequest) (sdk.Result, error) {
	id, done, err := s.o.Runtime.Start(q)
	if err != nil {
		return nil, rpcError(err)
	}
	hold(ctx, done)
	t := s.begun(id)
	out := &createdTask{Task: t.core()}
	out.Meta = sdk.Meta{metaCall: id, metaSession: q.SessionID}
	return out, nil
}

// begun returns the initial state of a task. It is working even if the call has ended already.
func (s *Server) begun(id string) taskState {
	return s.state(&agent.LogEntry{CallID: id, OutcomeStatus: agent.StatusRunning}, coreTasks)
}

// hold makes the request count against limits until the call has ended.
func hold(ctx context.Context, done <-chan runtime.CallResult) {
	h := hostOf(ctx)
	if h.Hold == nil {
		return
	}
	release := h.Hold()
	go func() { // ends with the call
		<-done
		release()
	}()
}

// callOrTask runs the call for a client that supports the extension. It returns the result, or a task as soon as a
// model is asked for a program or the call has run for taskAfter.
func (s *Server) callOrTask(ctx context.Context, req *sdk.CallToolRequest, q runtime.CallRequest,
	tool *catalog.Tool) (sdk.Result, error) {
	var stages *progress.Log
	q.Follow = func(l *progress.Log) { stages = l } // Start calls it before it returns
	id, done, err := s.o.Runtime.Start(q)
	if err != nil {
		return nil, rpcError(err)
	}
	asked := requestOf(ctx)
	leave := func() { s.o.Runtime.CancelRunning(id) }
	watch, stop := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { report(watch, stages, asked, sayer(ctx, req.Session, req.Params.Meta), leave) })
	res, long, err := untilLong(ctx, stages, done)
	stop()
	watching.Wait() // no notification may follow the result
	switch {
	case err != nil:
		leave()
		return nil, err
	case long:
		hold(ctx, done)
		t := s.begun(id)
		out := t.extension(resultTask)
		out.Meta = sdk.Meta{metaCall: id, metaSession: q.SessionID}
		return out, nil
	case len(res.Body) == 0:
		return nil, rpcError(cmp.Or(res.Err, errNoReply))
	}
	return s.replied(ctx, req.Session, res.Body, tool)
}

// errNoReply is returned when an accepted call ended without a reply, which is a fault of the daemon.
var errNoReply = errors.New("a call ended without a reply")

// untilLong waits until the call has ended, or has taken long enough to become a task. The error is the cause of ctx's
// end.
func untilLong(ctx context.Context, stages *progress.Log,
	done <-chan runtime.CallResult) (res runtime.CallResult, long bool, err error) {
	patience := time.NewTimer(taskAfter)
	defer patience.Stop()
	for n := 0; ; {
		events, wait, _ := stages.Next(n)
		n += len(events)
		for _, e := range events {
			if e.Type == progress.Forging {
				return res, true, nil
			}
		}
		if len(events) > 0 {
			continue
		}
		select { // wait is nil once the log has ended; then the result follows
		case res = <-done:
			return res, false, nil
		case <-wait:
		case <-patience.C:
			return res, true, nil
		case <-ctx.Done():
			return res, false, cmp.Or(requestOf(ctx).why(ctx), interrupt.ErrCanceled)
		}
	}
}
