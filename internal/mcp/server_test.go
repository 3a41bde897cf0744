package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/runtime/catalog"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
	"github.com/recurgentd/recurgentd/internal/runtime/sessions"
	"github.com/recurgentd/recurgentd/internal/runtime/turns"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// fake is a runtime whose calls answer with a value or fail.
type fake struct {
	value string
	err   error
	ended error // of a call with reported progress
	asked runtime.CallRequest
	Runtime
}

func (f *fake) CallOwner(context.Context, string) (string, error) { return "ann", nil }

// Call runs a call that ends before its progress can be read.
func (f *fake) Call(_ context.Context, q runtime.CallRequest) (runtime.CallResult, error) {
	f.asked = q
	if f.err != nil {
		return runtime.CallResult{}, f.err
	}
	stages := &progress.Log{}
	q.Follow(stages)
	stages.Add(progress.Running, struct{}{})
	stages.End()
	body := fmt.Sprintf(`{"call_id":"call_1","session_id":%q,"outcome":{"status":"ok","ok":true,"value":%s,"tool_role":%q,"method_name":%q},"program":{"source":"persisted"}}`, q.SessionID, f.value, q.Role, q.Method)
	return runtime.CallResult{Body: []byte(body)}, f.ended
}

func (f *fake) CreateSession(context.Context, sessions.Request) (agent.Session, error) {
	return agent.Session{}, f.err
}

func (f *fake) Judge(context.Context, string, operator.Judgement) (operator.JudgedCall, <-chan struct{}, error) {
	return operator.JudgedCall{}, nil, f.err
}

// offering starts a server of methods with those interfaces, and a client.
func offering(t *testing.T, f *fake, methods map[string]*agent.Interface) *sdk.ClientSession {
	t.Helper()
	return offeringTo(t, nil, f, methods)
}

// offeringTo is offering to a client with these options.
func offeringTo(t *testing.T, o *sdk.ClientOptions, f *fake, methods map[string]*agent.Interface) *sdk.ClientSession {
	t.Helper()
	near, far := sdk.NewInMemoryTransports()
	if _, err := serverOf(t, f, methods).mcp.Connect(t.Context(), far, nil); err != nil {
		t.Fatal(err)
	}
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, o).Connect(t.Context(), near, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// serverOf starts a server of methods with those interfaces.
func serverOf(t *testing.T, f *fake, methods map[string]*agent.Interface) *Server {
	t.Helper()
	p, shelf := agent.DefaultPolicy(), storetest.NewMemory(time.Now)
	held, err := shelf.Namespace(agent.DefaultNamespace)
	if err != nil {
		t.Fatal(err)
	}
	yes := true
	for name, takes := range methods {
		c := agent.ArtifactChange{Role: "r", MethodName: name, At: time.Now(), Approve: &yes,
			Generation: &agent.Generation{ID: "gen-1", Interface: takes}}
		if _, err := held.ChangeArtifact(t.Context(), store.AnyRevision, c, nil); err != nil {
			t.Fatal(err)
		}
	}
	tools, err := catalog.New(catalog.Options{Store: shelf, Policy: func() *agent.Policy { return &p },
		Serving: func(a *agent.Artifact) (*agent.Generation, string) { return a.Current(), "" }})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{Runtime: f, Tools: tools, Version: "1", Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// Models write schemas. A schema that the SDK or clients could not use does not affect other tools.
func TestHostileSchemas(t *testing.T) {
	t.Parallel()
	param := func(schema string) *agent.Interface {
		return &agent.Interface{Parameters: []agent.Parameter{{Name: "a", Schema: json.RawMessage(schema)}}}
	}
	returns := func(schema string) *agent.Interface {
		return &agent.Interface{Parameters: []agent.Parameter{}, Returns: json.RawMessage(schema)}
	}
	f := &fake{value: "1"}
	c := offering(t, f, map[string]*agent.Interface{
		"fine": param(`{"type":"number"}`), "header": param(`{"type":"object","x-mcp-header":7}`),
		"header2": param(`{"type":"string","\u0078-mcp-header":"a b"}`), "bad": param(`{"type":"nonsense"}`),
		"pattern": param(`{"type":"string","pattern":"("}`), "boolean": param(`false`),
		"ref": returns(`{"$ref":"#/$defs/x","$defs":{"x":{"type":"number"}}}`), "true": returns("true"),
		"remote": returns(`{"$ref":"http://127.0.0.1:1/schema"}`), "badreturns": returns(`{"type":7}`)})
	all := map[string]*sdk.Tool{}
	for tool, err := range c.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		all[tool.Name] = tool
	}
	for _, name := range []string{"fine", "bad", "pattern", "boolean", "ref", "true", "remote", "badreturns"} {
		tool := all["r__"+name]
		if tool == nil {
			t.Errorf("%s is not offered", name)
			continue
		}
		if tool.InputSchema.(map[string]any)["type"] != "object" ||
			strings.Contains(string(agent.Encoded(tool.OutputSchema)), "$ref") {
			t.Errorf("%s: %v, %v", name, tool.InputSchema, tool.OutputSchema)
		}
		if _, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "r__" + name}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(all) < 12 {
		t.Errorf("%d tools: %v", len(all), all)
	}
}

// A value that does not match the tool's schema is an error that contains the value.
func TestValueAgainstReturns(t *testing.T) {
	t.Parallel()
	f := &fake{value: `"five"`}
	c := offering(t, f, map[string]*agent.Interface{"number": {Parameters: []agent.Parameter{},
		Returns: json.RawMessage(`{"type":"number"}`)}})
	res, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "r__number"})
	if err != nil {
		t.Fatal(err)
	}
	outcome, _ := res.StructuredContent.(map[string]any)
	metadata, _ := outcome["metadata"].(map[string]any)
	if !res.IsError || outcome["error_type"] != agent.ErrContractViolation || metadata["value"] != "five" {
		t.Errorf("got %v", outcome)
	}
	f.value = "5"
	if res, err = c.CallTool(t.Context(), &sdk.CallToolParams{Name: "r__number"}); err != nil || res.IsError {
		t.Errorf("a number: %+v, %v", res, err)
	}
	if !f.asked.Ephemeral || f.asked.Role != "r" || f.asked.Method != "number" {
		t.Errorf("asked %+v", f.asked)
	}
}

// The text of a result is JSON as models write it: characters of web pages are not escaped.
func TestTextsWithoutEscapes(t *testing.T) {
	t.Parallel()
	takes := &agent.Interface{Parameters: []agent.Parameter{{Name: "a<b", Required: true}}}
	c := offering(t, &fake{value: `"\u003cb\u003e \u0026 \\u003c"`}, map[string]*agent.Interface{"m": {},
		"strict": takes})
	for _, x := range []struct{ name, arguments, want string }{{"r__m", `{}`, `"value":"<b> & \\u003c"`},
		{"r__strict", `{}`, `arguments/a<b is required`}, {"find_tools", `{"query":"strict"}`, `\"a<b\"`}} {
		res, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: x.name,
			Arguments: json.RawMessage(x.arguments)})
		if err != nil {
			t.Fatal(err)
		}
		text, _ := res.Content[0].(*sdk.TextContent)
		if text == nil || !strings.Contains(text.Text, x.want) {
			t.Errorf("%s: %+v, want %s", x.name, text, x.want)
		}
	}
}

// Arguments that a built-in tool does not take are refused with the reason.
func TestArgumentsOfBuiltInTools(t *testing.T) {
	t.Parallel()
	f := &fake{value: "1"}
	c := offering(t, f, nil)
	for _, x := range []struct{ tool, arguments, want string }{
		{"judge_call", `{"verdict":"right"}`, "arguments/call_id is required"},
		{"call_method", `{"role":"r","method":"m","timeout_ms":0}`, "arguments/timeout_ms must be 1 or more"},
		{"call_method", `{"role":"r","method":"m","timeout_ms":-5}`, "arguments/timeout_ms must be 1 or more"},
		{"call_method", `{"role":"r","method":"m","timeout_ms":null}`, ""},
		{"call_method", `{"role":"r","method":"m","timeout_ms":1}`, ""},
	} {
		f.asked = runtime.CallRequest{}
		res, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: x.tool,
			Arguments: json.RawMessage(x.arguments)})
		if err != nil {
			t.Fatal(err)
		}
		text, _ := res.Content[0].(*sdk.TextContent)
		if res.IsError != (x.want != "") || !strings.HasPrefix(text.Text, x.want) ||
			(f.asked.Method != "") != (x.want == "") {
			t.Errorf("%s %s: %q, want %q; asked %+v", x.tool, x.arguments, text.Text, x.want, f.asked)
		}
	}
}

// An error that kept a call from taking place is a protocol error, with a code that shows whose fault it is.
func TestErrorsOfTheProtocol(t *testing.T) {
	t.Parallel()
	f := &fake{value: "1"}
	c := offering(t, f, map[string]*agent.Interface{"m": nil})
	for _, x := range []struct {
		err  error
		code int64
	}{{runtime.ErrDraining, codeUnavailable}, {turns.ErrFull, codeUnavailable},
		{store.ErrReadOnly, codeUnavailable}, {store.ErrNotFound, jsonrpc.CodeInvalidParams},
		{&agent.InputError{Detail: "too large"}, jsonrpc.CodeInvalidParams},
		{&agent.NameError{Field: "role", Reason: "must not be empty"}, jsonrpc.CodeInvalidParams}} {
		f.err = x.err
		var rpc *jsonrpc.Error
		if _, err := c.CallTool(t.Context(),
			&sdk.CallToolParams{Name: "r__m"}); !errors.As(err, &rpc) || rpc.Code != x.code {
			t.Errorf("%v: %v", x.err, err)
		}
	}
	f.err, f.ended = nil, fmt.Errorf("the disk: %w", store.ErrReadOnly)
	var rpc *jsonrpc.Error
	if _, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "r__m",
		Meta: sdk.Meta{"progressToken": "a"}}); !errors.As(err, &rpc) || rpc.Code != codeUnavailable {
		t.Errorf("a call with progress that could not be kept: %v", err)
	}
	for _, arguments := range []string{`{"args":7}`, `{"kwargs":[1]}`, `{"a":1,"a":2}`} {
		f.err, f.asked = nil, runtime.CallRequest{}
		res, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "r__m", Arguments: json.RawMessage(arguments)})
		if err != nil || !res.IsError || f.asked.Method != "" {
			t.Errorf("%s: %+v, %v", arguments, res, err)
		}
	}
}

// A client hears of the stages of its call, however soon it ends.
func TestProgressOfAQuickCall(t *testing.T) {
	t.Parallel()
	said := make(chan string, 1)
	listening := &sdk.ClientOptions{ProgressNotificationHandler: func(_ context.Context,
		r *sdk.ProgressNotificationClientRequest) {
		said <- r.Params.Message
	}}
	c := offeringTo(t, listening, &fake{value: "1"},
		map[string]*agent.Interface{"m": {Parameters: []agent.Parameter{}}})
	if _, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "r__m",
		Meta: sdk.Meta{"progressToken": "p"}}); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-said:
		if got != "the program runs" {
			t.Errorf("heard %q", got)
		}
	case <-time.After(time.Minute):
		t.Error("heard nothing")
	}
}
