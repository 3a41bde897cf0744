package mcp

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
	"github.com/recurgentd/recurgentd/internal/store"
)

// taskParams are the params of all methods about tasks.
type taskParams struct {
	sdk.ParamsBase
	TaskID string `json:"taskId"`
	Cursor string `json:"cursor"`
}

// taskList is the result of tasks/list.
type taskList struct {
	sdk.ResultBase
	Tasks      []coreTask `json:"tasks"`
	NextCursor string     `json:"nextCursor,omitempty"`
}

// maxTasksRead bounds how many log entries are read for a page of tasks.
const maxTasksRead = 10_000

// addTasks registers the methods about tasks. Each is rejected if the client's version does not have it, or if the
// client has not declared the extension.
func (s *Server) addTasks() error {
	for method, handle := range map[string]func(context.Context, *sdk.ServerSession, *taskParams) (sdk.Result, error){
		methodTaskGet: s.getTask, methodTaskResult: s.taskResult, methodTaskList: s.listTasks,
		methodTaskCancel: s.cancelTask, methodTaskUpdate: s.updateTask,
	} {
		handler := func(ctx context.Context, client *sdk.ServerSession, p *taskParams) (sdk.Result, error) {
			if p == nil {
				p = &taskParams{}
			}
			switch form := formOf(version(client)); {
			case !slices.Contains(taskMethods[method], form):
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "there is no method " + method}
			case form != tasksOf(client, p.Meta):
				return nil, undeclared()
			}
			return handle(ctx, client, p)
		}
		if err := sdk.AddReceivingCustomMethod(s.mcp, method, handler); err != nil {
			return err
		}
	}
	return nil
}

// getTask is tasks/get. In the extension's form it includes the result of a completed task.
func (s *Server) getTask(ctx context.Context, client *sdk.ServerSession, p *taskParams) (sdk.Result, error) {
	view, err := s.task(ctx, p.TaskID)
	if err != nil {
		return nil, err
	}
	form := formOf(version(client))
	t := s.state(&view.LogEntry, form)
	if form == coreTasks {
		return &coreTaskResult{coreTask: t.core()}, nil
	}
	out := t.extension(resultComplete)
	if t.status == taskCompleted {
		out.Result, err = s.taskOutcome(ctx, client, &view)
	}
	return out, err
}

// taskResult is tasks/result: it waits until the task has ended, and returns the result of the call.
func (s *Server) taskResult(ctx context.Context, client *sdk.ServerSession, p *taskParams) (sdk.Result, error) {
	view, err := s.task(ctx, p.TaskID)
	if err == nil && !ended(&view) {
		view, err = s.awaitTask(ctx, client, p)
	}
	if err != nil {
		return nil, err
	}
	out, err := s.taskOutcome(ctx, client, &view)
	if err == nil {
		out.Meta[metaTask] = map[string]string{"taskId": p.TaskID}
	}
	return out, err
}

// awaitTask waits until the task has ended, and reports its progress as for a call.
func (s *Server) awaitTask(ctx context.Context, client *sdk.ServerSession, p *taskParams) (operator.CallView, error) {
	if stages := s.o.Runtime.Progress(p.TaskID); stages != nil {
		waiting, stop := context.WithCancel(ctx)
		defer stop()
		// canceling this request only stops the waiting; the call goes on
		report(waiting, stages, requestOf(ctx), sayer(ctx, client, p.Meta), stop)
		if waiting.Err() != nil {
			return operator.CallView{}, requestOf(ctx).why(waiting)
		}
	}
	view, err := s.task(ctx, p.TaskID)
	if err == nil && !ended(&view) {
		err = rpcError(fmt.Errorf("call %s is still running, but its progress is not available", p.TaskID))
	}
	return view, err
}

// listTasks returns a page of the principal's tasks, newest first. The first page also contains all tasks that run at
// other replicas. A cursor encodes the id of the last call that was read for a page.
func (s *Server) listTasks(ctx context.Context, _ *sdk.ServerSession, p *taskParams) (sdk.Result, error) {
	q := store.CallQuery{Owner: owner(ctx), Limit: pageSize + 1, Scan: &store.Scan{Most: maxTasksRead}}
	if ttl := s.ttl(); ttl != nil {
		q.Since = s.o.Now().Add(-time.Duration(*ttl) * time.Millisecond)
	}
	if p.Cursor != "" {
		id, err := base64.RawURLEncoding.DecodeString(p.Cursor)
		if err != nil || !isCallID(string(id)) {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams,
				Message: "the cursor does not belong to this list"}
		}
		q.Before = string(id)
	}
	entries, err := s.o.Runtime.ListCalls(ctx, q)
	if err == nil {
		err = s.o.Runtime.Settled()
	}
	if err != nil {
		return nil, rpcError(fmt.Errorf("the tasks cannot be listed: %w", err))
	}
	// filtering may end a page early; the log goes on from there
	next := q.Scan.Next
	if len(entries) > pageSize {
		entries = entries[:pageSize]
		next = entries[pageSize-1].CallID
	}
	if elsewhere := hostOf(ctx).Elsewhere; elsewhere != nil && p.Cursor == "" {
		more, err := elsewhere(ctx)
		if err != nil {
			return nil, rpcError(fmt.Errorf("the tasks of other replicas cannot be listed: %w", err))
		}
		for i := range more {
			if agent.OwnerOf(&more[i]) == owner(ctx) {
				entries = append(entries, more[i])
			}
		}
	}
	out := &taskList{Tasks: s.tasks(entries)}
	if next != "" {
		out.NextCursor = base64.RawURLEncoding.EncodeToString([]byte(next))
	}
	return out, nil
}

// tasks returns the tasks among the entries that have not expired, newest first and without duplicates.
func (s *Server) tasks(entries []agent.LogEntry) []coreTask {
	slices.SortStableFunc(entries, func(a, b agent.LogEntry) int { return strings.Compare(b.CallID, a.CallID) })
	out := []coreTask{}
	for i := range entries {
		e := &entries[i]
		if !isTask(e) || i > 0 && entries[i-1].CallID == e.CallID {
			continue
		}
		if t := s.state(e, coreTasks); !s.over(&t) {
			out = append(out, t.core())
		}
	}
	return out
}

// cancelTask cancels the call. Version 2025-11-25 demands that the task is canceled when the reply comes, and an error
// if it had ended before. The extension demands neither, so its reply does not wait.
func (s *Server) cancelTask(ctx context.Context, client *sdk.ServerSession, p *taskParams) (sdk.Result, error) {
	view, err := s.task(ctx, p.TaskID)
	if err != nil {
		return nil, err
	}
	// get the log before canceling: afterwards the call may not be running any more
	form, stages := formOf(version(client)), s.o.Runtime.Progress(p.TaskID)
	if !ended(&view) {
		if err := s.o.Runtime.Cancel(ctx, p.TaskID, owner(ctx)); err != nil {
			return nil, rpcError(err)
		}
	}
	if form == extensionTasks {
		return &acknowledged{ResultType: resultComplete}, nil
	}
	if !ended(&view) && stages != nil {
		if err := stages.Follow(ctx, 0, func(progress.Event) error { return nil }); err != nil {
			return nil, err
		}
	}
	before := ended(&view)
	if !before {
		if view, err = s.task(ctx, p.TaskID); err != nil {
			return nil, err
		}
	}
	t := s.state(&view.LogEntry, form)
	if before || t.status != taskCancelled {
		return nil, noTask("the task has ended before it could be canceled: it is " + t.status)
	}
	return &coreTaskResult{coreTask: t.core()}, nil
}

// updateTask is tasks/update. Tasks never wait for input, so the update is ignored, as the extension demands.
func (s *Server) updateTask(ctx context.Context, _ *sdk.ServerSession, p *taskParams) (sdk.Result, error) {
	if _, err := s.task(ctx, p.TaskID); err != nil {
		return nil, err
	}
	return &acknowledged{ResultType: resultComplete}, nil
}
