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

// taskParams are those of all methods about tasks.
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

// maxTasksRead bounds how many entries of the log are read for a page of tasks.
const maxTasksRead = 10_000

// addTasks has the library pass the methods about tasks on.
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

// taskResult waits until the task has ended, and returns what the call would have returned.
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

// awaitTask waits until the task has ended, while the client hears of its progress as of that of a call.
func (s *Server) awaitTask(ctx context.Context, client *sdk.ServerSession, p *taskParams) (operator.CallView, error) {
	if stages := s.o.Runtime.Progress(p.TaskID); stages != nil {
		waiting, stop := context.WithCancel(ctx)
		defer stop()
		// who cancels the request waits no longer
		report(waiting, stages, requestOf(ctx), sayer(ctx, client, p.Meta), stop)
		if waiting.Err() != nil {
			return operator.CallView{}, requestOf(ctx).why(waiting)
		}
	}
	view, err := s.task(ctx, p.TaskID)
	if err == nil && !ended(&view) {
		err = rpcError(fmt.Errorf("call %s reports nothing and has not ended", p.TaskID))
	}
	return view, err
}

// listTasks returns a page of the client's tasks, newest first; those that run at other replicas stand on the first one. A cursor is the id of the last call that was read for a page.
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

// tasks returns the tasks among the entries that can be asked for, newest first, each once.
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

// cancelTask cancels the call. Version 2025-11-25 wants the task to be canceled when the answer comes, and an error where it has ended before; the extension wants neither.
func (s *Server) cancelTask(ctx context.Context, client *sdk.ServerSession, p *taskParams) (sdk.Result, error) {
	view, err := s.task(ctx, p.TaskID)
	if err != nil {
		return nil, err
	}
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

// updateTask takes what a task was waiting for. None waits for anything, and what nobody asked for is ignored, as the extension says.
func (s *Server) updateTask(ctx context.Context, _ *sdk.ServerSession, p *taskParams) (sdk.Result, error) {
	if _, err := s.task(ctx, p.TaskID); err != nil {
		return nil, err
	}
	return &acknowledged{ResultType: resultComplete}, nil
}
