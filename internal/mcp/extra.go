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

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/runtime/catalog"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/runtime/sessions"
	"github.com/recurgentd/recurgentd/internal/store"
)

// An extraTool is a built-in tool, which does not stand for a method.
type extraTool struct {
	tool *sdk.Tool
	of   *catalog.Tool // defines its parameters
	run  func(s *Server, ctx context.Context, req *sdk.CallToolRequest, arguments []byte) (sdk.Result, error)
}

// listed is the extra tool that notify adds again, since adding a tool makes the SDK notify subscribers.
const listed = "find_tools"

// extraTools returns the built-in tools, which come first in lists. Their names do not contain "__", so no method's
// tool has the same name.
func extraTools() []extraTool {
	tools := []extraTool{{of: catalog.CallInSession, run: (*Server).callMethod},
		{of: catalog.FindTools, run: (*Server).findTools},
		{of: catalog.JudgeCall, run: (*Server).judgeCall}, {of: catalog.NewSession, run: (*Server).newSession},
		{of: catalog.UploadFile, run: (*Server).uploadFile}}
	for i := range tools {
		t := &tools[i]
		t.tool = &sdk.Tool{Name: t.of.Name, Description: t.of.Description, InputSchema: t.of.Parameters}
		switch t.of {
		case catalog.CallInSession:
			t.tool.OutputSchema = outputSchema(nil)
		case catalog.FindTools:
			t.tool.Annotations = &sdk.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true}
		}
	}
	return tools
}

// extra calls a built-in tool.
func (s *Server) extra(ctx context.Context, t extraTool, req *sdk.CallToolRequest) (sdk.Result, error) {
	arguments, err := checked(req.Params.Arguments)
	if err == nil {
		arguments, err = t.of.Object(arguments, catalog.Plain)
	}
	if err != nil {
		return unfit(ctx, req, err, refused(err))
	}
	return t.run(s, ctx, req, arguments)
}

// refused returns a result that describes an error in the arguments.
func refused(err error) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: faultText(err)}}, IsError: true}
}

// decode decodes arguments into v. Unknown members are an error.
func decode(arguments []byte, v any) error {
	if arguments == nil {
		arguments = []byte("{}")
	}
	d := json.NewDecoder(bytes.NewReader(arguments))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return &agent.InputError{Detail: strings.TrimPrefix(err.Error(), "json: ")}
	}
	return nil
}

// callMethod is call_method: it calls any method by name, which may not exist yet.
func (s *Server) callMethod(ctx context.Context, req *sdk.CallToolRequest, arguments []byte) (sdk.Result, error) {
	var in struct {
		Role      string            `json:"role"`
		Method    string            `json:"method"`
		Args      []json.RawMessage `json:"args"`
		Kwargs    json.RawMessage   `json:"kwargs"`
		SessionID string            `json:"session_id"`
		Timeout   *int64            `json:"timeout_ms"`
	}
	err := decode(arguments, &in)
	if err == nil {
		err = agent.Names(&in.Role, &in.Method)
	}
	if in.Timeout == nil {
		in.Timeout = new(int64) // the default
	} else if err == nil && *in.Timeout < 1 {
		err = &agent.InputError{Pointer: "/timeout_ms", Detail: "must be 1 or more"}
	}
	if err != nil {
		return unfit(ctx, req, err, refused(err))
	}
	if kind := agent.Kind(in.Kwargs); kind == "null" {
		in.Kwargs = nil
	} else if kind != "object" {
		err := &agent.InputError{Pointer: "/kwargs", Detail: "must be an object, not " + kind}
		return unfit(ctx, req, err, refused(err))
	}
	q := runtime.CallRequest{Role: in.Role, Method: in.Method, Args: in.Args, Kwargs: in.Kwargs,
		SessionID: in.SessionID, Timeout: time.Duration(*in.Timeout) * time.Millisecond, Owner: owner(ctx),
		Operates: operates(ctx)}
	return s.call(ctx, req, q, nil)
}

// findTools is find_tools: it searches the tools that the principal may see.
func (s *Server) findTools(ctx context.Context, _ *sdk.CallToolRequest, arguments []byte) (sdk.Result, error) {
	in := struct {
		Query string `json:"query"`
		Limit int    `json:"limit"`
	}{Limit: catalog.DefaultFound}
	if err := decode(arguments, &in); err != nil {
		return refused(err), nil
	}
	if len(in.Query) > catalog.MaxQuery {
		return refused(&agent.InputError{Pointer: "/query", Detail: fmt.Sprintf("must have at most %d bytes",
			catalog.MaxQuery)}), nil
	}
	if in.Limit < 1 || in.Limit > catalog.MaxFound {
		return refused(&agent.InputError{Pointer: "/limit", Detail: fmt.Sprintf("must be 1 to %d", catalog.MaxFound)}),
			nil
	}
	tools, err := s.o.Tools.Search(ctx, reader(ctx), in.Query, in.Limit)
	if err != nil {
		return nil, err
	}
	found := struct {
		Tools []*sdk.Tool `json:"tools"`
	}{[]*sdk.Tool{}}
	for _, t := range tools {
		found.Tools = append(found.Tools, Tool(t))
	}
	return outcomeResult(agent.Encoded(found), false), nil
}

// judgeCall is judge_call. A principal may judge its own calls, or with the scope operate all calls.
func (s *Server) judgeCall(ctx context.Context, _ *sdk.CallToolRequest, arguments []byte) (sdk.Result, error) {
	var in struct {
		CallID            string          `json:"call_id"`
		Verdict           string          `json:"verdict"`
		Expected          json.RawMessage `json:"expected"`
		ExpectedErrorType string          `json:"expected_error_type"`
		Note              string          `json:"note"`
	}
	if err := decode(arguments, &in); err != nil {
		return refused(err), nil
	}
	if in.CallID == "" {
		return refused(&agent.InputError{Pointer: "/call_id", Detail: "is required: the result of the call has it"}), nil
	}
	unknown := fmt.Sprintf("there is no call %q", in.CallID)
	// to others the call does not exist
	if whose, err := s.o.Runtime.CallOwner(ctx, in.CallID); err != nil || whose != owner(ctx) && !operates(ctx) {
		return s.refusedBy(cmp.Or(err, store.ErrNotFound), unknown)
	}
	judged, _, err := s.o.Runtime.Judge(ctx, in.CallID, operator.Judgement{Verdict: in.Verdict, Expected: in.Expected,
		ExpectedErrorType: in.ExpectedErrorType,
		Note:              in.Note, Actor: owner(ctx), MayOperate: operates(ctx)})
	if err != nil {
		return s.refusedBy(err, unknown)
	}
	return outcomeResult(agent.Encoded(judged), false), nil
}

// newSession is new_session: it creates a session whose calls share memory.
func (s *Server) newSession(ctx context.Context, _ *sdk.CallToolRequest, arguments []byte) (sdk.Result, error) {
	var in struct {
		Role    string          `json:"role"`
		Context json.RawMessage `json:"context"`
	}
	if err := decode(arguments, &in); err != nil {
		return refused(err), nil
	}
	session, err := s.o.Runtime.CreateSession(ctx, sessions.Request{Role: in.Role, Context: in.Context,
		Owner: owner(ctx)})
	if err != nil {
		return s.refusedBy(err, "")
	}
	return outcomeResult(agent.Encoded(session), false), nil
}

// refusedBy returns a result for an error that the arguments caused; missing is the text for store.ErrNotFound. Other
// errors become JSON-RPC errors.
func (s *Server) refusedBy(err error, missing string) (sdk.Result, error) {
	var bad *agent.InputError
	var name *agent.NameError
	switch {
	case errors.As(err, &bad), errors.As(err, &name), errors.Is(err, store.ErrGone),
		errors.Is(err, operator.ErrInForce):
		return refused(err), nil
	case errors.Is(err, store.ErrNotFound):
		return refused(errors.New(missing)), nil
	}
	return nil, rpcError(err)
}
