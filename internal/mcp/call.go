package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/agent/rawjson"
	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/runtime/catalog"
	"github.com/recurgentd/recurgentd/internal/runtime/interrupt"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
	"github.com/recurgentd/recurgentd/internal/runtime/storage"
	"github.com/recurgentd/recurgentd/internal/runtime/turns"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/strict"
)

// callTool calls a built-in tool or a method's tool.
func (s *Server) callTool(ctx context.Context, req *sdk.CallToolRequest) (sdk.Result, error) {
	t, extra := s.extras[req.Params.Name]
	if !extra {
		return s.run(ctx, req)
	}
	if task, err := wantsTask(ctx, req); err != nil || task && t.of != catalog.CallInSession {
		return nil, cmp.Or(err, error(noSuchTask(req.Params.Name)))
	}
	return s.extra(ctx, t, req)
}

// noSuchTask is the error for a built-in tool as a task, whose code the protocol demands. The SDK replaces the message
// of an error that is a *jsonrpc.Error of that code, but not of one that can only be read as one.
type noSuchTask string

func (e noSuchTask) Error() string {
	return string(e) + " cannot be a task: call it without the member task"
}

// As implements the interface of errors.As.
func (e noSuchTask) As(target any) bool {
	t, ok := target.(**jsonrpc.Error)
	if ok {
		*t = &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: e.Error()}
	}
	return ok
}

// passed is a placeholder: the SDK lists a tool only if it has a handler, but answer calls all tools itself.
func passed(_ context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	return nil, fmt.Errorf("the library has called %s", req.Params.Name)
}

// run calls the method that a tool stands for.
func (s *Server) run(ctx context.Context, req *sdk.CallToolRequest) (sdk.Result, error) {
	tool, err := s.o.Tools.Find(ctx, reader(ctx), req.Params.Name)
	if err != nil {
		return nil, rpcError(err)
	}
	q := runtime.CallRequest{Role: tool.Role, Method: tool.Method, Owner: owner(ctx), Operates: operates(ctx)}
	object, err := checked(req.Params.Arguments)
	if err == nil {
		q.Args, q.Kwargs, err = tool.Arguments(object, catalog.Plain)
	}
	if err != nil {
		return unfit(ctx, req, err, failed(tool, err))
	}
	return s.call(ctx, req, q, tool)
}

// unfit returns the answer to invalid arguments: the result, or an error if the client wants a task, since without a
// call there cannot be one.
func unfit(ctx context.Context, req *sdk.CallToolRequest, why error, result *sdk.CallToolResult) (sdk.Result, error) {
	task, err := wantsTask(ctx, req)
	if task {
		err = &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: faultText(why)}
	}
	if err != nil {
		return nil, err
	}
	return result, nil
}

// Keys in _meta of requests and results.
const (
	metaSession = "recurgent/session_id"
	metaCall    = "recurgent/call_id"
	metaProgram = "recurgent/program"
)

// Error codes that JSON-RPC leaves to servers, and that of an unknown tool.
const (
	codeUnavailable = -32000 // the client should retry later
	codeNotFound    = -32602 // invalid params: the protocol demands it for unknown tools
)

// call runs a call, and reports its progress if the request has a progress token. For clients that support tasks, the
// result may be a task. tool is nil if the method was called by name.
func (s *Server) call(ctx context.Context, req *sdk.CallToolRequest, q runtime.CallRequest,
	tool *catalog.Tool) (sdk.Result, error) {
	if err := nameSession(req, &q); err != nil {
		return nil, err
	}
	task, err := wantsTask(ctx, req)
	switch {
	case err != nil:
		return nil, err
	case task:
		return s.create(ctx, q)
	case tasksOf(req.Session, req.Params.Meta) == extensionTasks:
		return s.callOrTask(ctx, req, q, tool)
	}
	res, err := s.perform(ctx, req, q)
	if err != nil {
		return nil, rpcError(err)
	}
	return s.replied(ctx, req.Session, res.Body, tool)
}

// nameSession sets the call's session: the one in the arguments, else the one in _meta, else a new one for this call
// only.
func nameSession(req *sdk.CallToolRequest, q *runtime.CallRequest) error {
	var err error
	if q.SessionID, err = sessionOf(req, q.SessionID); err == nil && q.SessionID == "" {
		q.SessionID, q.Ephemeral = ids.NewSession(true), true
	}
	return err
}

// sessionOf returns the session in the arguments, else that in _meta, else "".
func sessionOf(req *sdk.CallToolRequest, argument string) (string, error) {
	given, there := req.Params.Meta[metaSession]
	name, isText := given.(string)
	if there && !isText {
		return "", &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams,
			Message: "_meta " + metaSession + " must be the id of a session"}
	}
	return cmp.Or(argument, name), nil
}

// beat is the longest time without a message to the client during a call.
const beat = 8 * time.Second

// perform runs the call and keeps the client informed: by progress notifications if the request has a token, else by
// comments in the event stream. notifications/cancelled cancels the call. If the client just disconnects after a model
// was asked for a program, the runtime finishes and keeps the program.
func (s *Server) perform(ctx context.Context, req *sdk.CallToolRequest,
	q runtime.CallRequest) (runtime.CallResult, error) {
	asked := requestOf(ctx)
	// the call gets the reason of its end from why, not just "canceled"
	call, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { cancel(asked.why(ctx)) })()
	say := sayer(ctx, req.Session, req.Params.Meta)
	var watching sync.WaitGroup
	q.Follow = func(stages *progress.Log) { // gets the whole log, even if the call ends at once
		watching.Go(func() { report(ctx, stages, asked, say, func() { cancel(interrupt.ErrCanceled) }) })
	}
	res, err := s.o.Runtime.Call(call, q)
	cancel(nil)
	watching.Wait() // no notification may follow the result
	return res, err
}

// sayer returns a function that sends progress notifications, for one goroutine. It returns nil if the request has no
// token.
func sayer(ctx context.Context, client *sdk.ServerSession, meta map[string]any) (say func(words string) error) {
	token := meta["progressToken"]
	if token == nil {
		return nil
	}
	sent := 0.0
	return func(words string) error {
		sent++
		return client.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: sent,
			Message: words})
	}
}

// report calls say for each stage of a call, and repeats the current one at each beat, until the call ends or ctx does.
// If say is nil, it only keeps the event stream alive. It calls cancel once if the client cancels the request.
func report(ctx context.Context, stages *progress.Log, asked *request, say func(words string) error, cancel func()) {
	began, now := time.Now(), ""
	pulse := time.NewTicker(beat)
	defer pulse.Stop()
	canceled := asked.canceled
	for n := 0; ; {
		events, wait, ended := stages.Next(n)
		n += len(events)
		for _, e := range events {
			words := stage(e)
			if now = cmp.Or(words, now); words != "" && say != nil {
				_ = say(words) // a failed notification is not an error: progress is optional
			}
		}
		if ended {
			return
		}
		if wait == nil {
			continue
		}
		select {
		case <-wait:
		case <-pulse.C:
			switch {
			case say != nil:
				_ = say(fmt.Sprintf("%s (%d s so far)", cmp.Or(now, underWay),
					int(time.Since(began).Seconds())))
			case asked.out != nil:
				asked.out.live()
			}
		case <-canceled:
			canceled = nil
			cancel()
		case <-ctx.Done():
			return
		}
	}
}

// underWay describes a running call if nothing else is known about it.
const underWay = "the call is under way"

// stage describes an event of a call, or returns "" if clients need not see it. The event may lack its data: a log
// entry has only the type of the call's newest event.
func stage(e progress.Event) string {
	var d struct {
		Kind, Decision, Reason, Stage string
		Ahead                         int
		ErrorType                     string `json:"error_type"`
	}
	if json.Unmarshal(e.Data, &d) != nil && len(e.Data) > 0 {
		return ""
	}
	switch e.Type {
	case progress.Queued:
		if d.Ahead == 0 {
			return "queued behind earlier calls of the session"
		}
		return fmt.Sprintf("queued behind %d calls of the session", d.Ahead)
	case progress.Selected:
		if d.Decision == "" {
			return ""
		}
		return "selected: " + d.Decision + " (" + d.Reason + ")"
	case progress.Forging:
		if d.Kind == "repair" {
			return "a model repairs the program"
		}
		return "a model writes the program"
	case progress.Gate:
		return "the program is checked"
	case progress.Building:
		return "the stored program is compiled"
	case progress.Running:
		return "the program runs"
	case progress.AttemptFailed:
		if d.Stage == "" {
			return ""
		}
		return "failed in " + d.Stage + ": " + d.ErrorType
	}
	return ""
}

// A callReply is the part of a call's reply that a tool's result needs.
type callReply struct {
	CallID    string          `json:"call_id"`
	SessionID string          `json:"session_id"`
	Outcome   json.RawMessage `json:"outcome"`
	Program   struct {
		Source string `json:"source"`
	} `json:"program"`
}

// replied converts the reply of a call to the result of a tool.
func (s *Server) replied(ctx context.Context, client *sdk.ServerSession, body []byte,
	tool *catalog.Tool) (*sdk.CallToolResult, error) {
	var r callReply
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, fmt.Errorf("read the reply of a call: %w", err)
	}
	return s.result(ctx, client, r, tool)
}

// result builds the result of a tool. If the value does not match the tool's schema, the result is an error.
func (s *Server) result(ctx context.Context, client *sdk.ServerSession, r callReply,
	tool *catalog.Tool) (*sdk.CallToolResult, error) {
	var outcome agent.Outcome
	if err := json.Unmarshal(r.Outcome, &outcome); err != nil {
		return nil, fmt.Errorf("read the outcome of call %s: %w", r.CallID, err)
	}
	if tool != nil && outcome.OK() {
		// clients validate the value themselves, and would show nothing of an invalid one
		if err := tool.CheckValue(ctx, outcome.Value); err != nil {
			value := outcome.Value
			outcome = agent.Failed(agent.ErrContractViolation, "the value is not what the tool says that it returns: "+
				err.Error())
			outcome.ToolRole, outcome.MethodName, outcome.Metadata = tool.Role, tool.Method,
				map[string]any{"value": value}
			r.Outcome = agent.Encoded(outcome)
		}
	}
	out := outcomeResult(r.Outcome, !outcome.OK())
	out.Content = append(out.Content, &sdk.TextContent{Text: "call_id: " + r.CallID + ", session_id: " + r.SessionID})
	out.Content = append(out.Content, s.links(ctx, client, r.Outcome)...)
	out.Meta = sdk.Meta{metaCall: r.CallID, metaSession: r.SessionID, metaProgram: r.Program.Source}
	return out, nil
}

// outcomeResult returns a result with the object as structured content, and as text for clients without support for
// that. Models read the text as it is, so it has no escapes for web pages.
func outcomeResult(object json.RawMessage, isError bool) *sdk.CallToolResult {
	return &sdk.CallToolResult{StructuredContent: object,
		Content: []sdk.Content{&sdk.TextContent{Text: string(rawjson.WithoutHTML(object))}}, IsError: isError}
}

// failed is the result for arguments that do not match the tool's parameters, which it contains. No call took place.
func failed(tool *catalog.Tool, err error) *sdk.CallToolResult {
	outcome := agent.Failed(agent.ErrInvalidInput, faultText(err))
	outcome.ToolRole, outcome.MethodName, outcome.Metadata = tool.Role, tool.Method,
		map[string]any{"parameters": tool.Parameters}
	return outcomeResult(agent.Encoded(outcome), true)
}

// faultText describes an error in arguments, with its position and hint.
func faultText(err error) string {
	var bad *agent.InputError
	if !errors.As(err, &bad) {
		return err.Error()
	}
	text := "arguments" + bad.Pointer + " " + bad.Detail
	if bad.Hint != "" {
		text += " (" + bad.Hint + ")"
	}
	return text
}

// checked validates arguments with package strict. It accepts an object, or a string that contains one, as some clients
// send it. It returns nil if there is none.
func checked(arguments json.RawMessage) (json.RawMessage, error) {
	if text, ok := strict.String(arguments); ok {
		arguments = json.RawMessage(text)
	}
	if len(arguments) == 0 || string(arguments) == "null" {
		return nil, nil
	}
	if err := strict.Members(arguments, func(_, _ []byte) error { return nil }); err != nil {
		return nil, err
	}
	return arguments, nil
}

// rpcError converts the error of a call that did not take place to a JSON-RPC error.
func rpcError(err error) error {
	var bad *agent.InputError
	var name *agent.NameError
	var unknown *catalog.NotFound
	var full *storage.FullError
	code, text := int64(0), err.Error()
	switch {
	case errors.As(err, &bad):
		code, text = jsonrpc.CodeInvalidParams, faultText(err)
	case errors.As(err, &name):
		code = jsonrpc.CodeInvalidParams
	case errors.As(err, &unknown):
		code = codeNotFound
	case errors.As(err, &full):
		code, text = codeUnavailable, "there is no room for "+full.Error()+". "+full.Hint()
	case errors.Is(err, store.ErrNotFound):
		code, text = codeNotFound, "there is no session of that id"
	case errors.Is(err, store.ErrAway):
		code, text = codeUnavailable, store.ErrAway.Error() // the full error names the database's host
	case errors.Is(err, runtime.ErrDraining), errors.Is(err, turns.ErrFull), errors.Is(err, store.ErrReadOnly):
		code = codeUnavailable
	default:
		return err // the SDK reports an internal error
	}
	return &jsonrpc.Error{Code: code, Message: text}
}
