package mcp

import (
	"cmp"
	"context"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/runtime/catalog"
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
