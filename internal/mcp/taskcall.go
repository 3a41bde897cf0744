package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/runtime/catalog"
	"github.com/recurgentd/recurgentd/internal/runtime/interrupt"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
)

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
			Message: "task must be an object whose ttl, where it has one, is a number of milliseconds"}
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
