package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"

	"github.com/recurgentd/recurgentd/internal/access"
	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/mcp"
	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/runtime/catalog"
)

// Formats in which agents take tools.
const (
	formatOpenAI    = "openai"           // OpenAI's chat completions, and those of many servers
	formatResponses = "openai-responses" // OpenAI's responses
	formatAnthropic = "anthropic"
	formatGemini    = "gemini" // Gemini's function declarations
	formatMCP       = "mcp"
)

// A functionPage is a part of the list.
type functionPage struct {
	after  string
	limit  int
	format string
	strict bool // the schemas are those of models that are held to them
}

// functionList is the form in which model APIs and tools/list have it.
type functionList struct {
	Tools      []any   `json:"tools"`
	NextCursor *string `json:"next_cursor"`
}

// functionTool is a tool as OpenAI's chat completions take it.
type functionTool struct {
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict,omitempty"`
}

// responsesTool is a tool as OpenAI's responses take it.
type responsesTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"`
}

// anthropicTool is a tool as Anthropic's messages take it.
type anthropicTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
}

// geminiTools is what Gemini takes as one tool: the declarations of all.
type geminiTools struct {
	Declarations []any `json:"functionDeclarations"`
}

type geminiFunction struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters,omitempty"` // nil for none
}

func (s *server) listFunctions(w *reply, r *http.Request, p functionPage) error {
	var tools []*catalog.Tool
	if p.format != formatMCP { // tools/list has those of its own
		tools, p = extraTools(p)
	}
	methods, more, err := w.run.Functions().List(r.Context(), w.reader(), p.after, p.limit-len(tools))
	if err != nil {
		return err
	}
	tools = append(tools, methods...)
	out := functionList{Tools: make([]any, len(tools))}
	for i, t := range tools {
		out.Tools[i] = p.tool(t)
	}
	if more {
		out.NextCursor = &tools[len(tools)-1].Name
	}
	if p.format == formatGemini && len(out.Tools) > 0 {
		out.Tools = []any{geminiTools{out.Tools}}
	}
	return s.send(w, http.StatusOK, out)
}

// extraTools returns the page's extra tools, with which lists begin, and the page of methods after them.
func extraTools(p functionPage) (tools []*catalog.Tool, rest functionPage) {
	first := 1 + slices.IndexFunc(catalog.Extra, func(t *catalog.Tool) bool { return t.Name == p.after })
	if first == 0 && p.after != "" {
		return nil, p
	}
	tools = slices.Clone(catalog.Extra[first:])
	tools = tools[:min(len(tools), p.limit)]
	p.after = ""
	return tools, p
}

// tool returns the tool in the page's format.
func (p *functionPage) tool(t *catalog.Tool) any {
	if p.format == formatMCP {
		return mcp.Tool(t)
	}
	if p.format == formatGemini {
		return geminiFunction{t.Name, t.Description, t.Gemini()}
	}
	parameters := t.Parameters
	if p.strict {
		parameters = t.Strict()
	}
	switch p.format {
	case formatAnthropic:
		return anthropicTool{t.Name, t.Description, parameters}
	case formatResponses:
		return responsesTool{"function", t.Name, t.Description, parameters, p.strict}
	}
	return functionTool{"function", function{t.Name, t.Description, parameters, p.strict}}
}

// reader is who sends the request, as lists of tools are made for.
func (w *reply) reader() agent.Reader {
	return agent.Reader{Owner: w.owner, Operates: w.who.Scopes.Has(access.Operate)}
}

// postMCP passes a message of MCP on. Its body is bounded as any other; its reply may be a stream of events.
func (s *server) postMCP(w *reply, r *http.Request) error {
	if w.run.MCP() == nil {
		return s.noRoute(w, r)
	}
	data, err := s.keptBody(w, r)
	if err != nil {
		return err
	}
	w.messageID = mcp.MessageID(data)
	if !mcp.Calls(data) {
		w.held.endCall() // who asks for a task, or cancels it, does not wait for the calls that it has under way
	}
	if err := w.held.awaitTurn(r.Context(), w.who.Concurrency); err != nil {
		return err
	}
	for _, scope := range mcp.Needs(data) {
		if err := w.needs(scope); err != nil {
			return err
		}
	}
	if err := s.callsHere(w, r, data); err != nil {
		return err
	}
	if mcp.Lasts(data) {
		if err := w.beginStream(); err != nil {
			return err
		}
	}
	host := &mcpHost{s: s, w: w, r: r}
	defer host.leave()
	r = r.WithContext(mcp.WithHost(mcp.WithPrincipal(r.Context(), w.as), host.asked()))
	r.Body = io.NopCloser(bytes.NewReader(data))
	w.run.MCP().ServeHTTP(w, r)
	return nil
}

// postFunction makes the call that a model asked for by a tool's name.
func (s *server) postFunction(w *reply, r *http.Request) error {
	name := param(r, "name")
	q, data, err := s.readCall(w, r, "function "+name)
	if err != nil {
		return err
	}
	call, err := decodeFunction(data)
	if err != nil {
		return err
	}
	switch name {
	case catalog.FindTools.Name:
		return s.findFunctions(w, r, call)
	case catalog.CallMethod.Name:
		err = call.method(&q)
	default:
		err = call.tool(w, r, name, &q)
	}
	if err != nil {
		return err
	}
	if q.SessionID, q.Ephemeral = call.session, call.session == ""; q.Ephemeral {
		q.SessionID = ids.NewSession(true)
	}
	return s.answer(w, r, q)
}

// tool fills q for a call of the method that the tool stands for.
func (c *functionCall) tool(w *reply, r *http.Request, name string, q *runtime.CallRequest) error {
	tool, err := w.run.Functions().Find(r.Context(), w.reader(), name)
	var unknown *catalog.NotFound
	if errors.As(err, &unknown) {
		return fault(codeNotFound, unknown.Error(), "GET /v1/tools?format=openai lists the tools with their names.")
	}
	if err != nil {
		return err
	}
	q.Role, q.Method = tool.Role, tool.Method
	q.Args, q.Kwargs, err = tool.Arguments(c.arguments, c.form)
	return inArguments(err)
}

// method fills q for a call of any method, from the arguments of call_method.
func (c *functionCall) method(q *runtime.CallRequest) error {
	return c.read(catalog.CallMethod, func(f *fields, name, v []byte) {
		switch string(name) {
		case "role":
			f.name("/arguments/role", "role", v, &q.Role)
		case "method":
			f.name("/arguments/method", "method", v, &q.Method)
		case "args":
			f.array("/arguments/args", v, &q.Args)
		case "kwargs":
			f.object("/arguments/kwargs", v, &q.Kwargs)
		default:
			f.unknown("/arguments", name, "role, method, args, kwargs")
		}
	}, func(f *fields) {
		const such = `such as {"role": "calculator", "method": "add", "args": [2, 3]}`
		if q.Role == "" && len(f.errs) == 0 {
			f.bad("/arguments/role", "is required", such)
		}
		if q.Method == "" && len(f.errs) == 0 {
			f.bad("/arguments/method", "is required", such)
		}
	})
}

// foundFunction is a tool that find_tools found. Role and method are there where the names are their own: call_method takes them.
type foundFunction struct {
	Name        string          `json:"name"`
	Role        string          `json:"role,omitempty"`
	Method      string          `json:"method,omitempty"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

// findFunctions answers find_tools with the outcome of a call that did not take place.
func (s *server) findFunctions(w *reply, r *http.Request, c *functionCall) error {
	if err := w.needs(access.Read); err != nil {
		return err
	}
	query, limit := "", catalog.DefaultFound
	err := c.read(catalog.FindTools, func(f *fields, name, v []byte) {
		switch string(name) {
		case "query":
			f.short("/arguments/query", v, &query, catalog.MaxQuery)
		case "limit":
			f.integer("/arguments/limit", v, &limit, 1, catalog.MaxFound)
		default:
			f.unknown("/arguments", name, "query, limit")
		}
	}, func(*fields) {})
	if err != nil {
		return err
	}
	tools, err := w.run.Functions().Search(r.Context(), w.reader(), query, limit)
	if err != nil {
		return err
	}
	found := make([]foundFunction, len(tools))
	for i, t := range tools {
		found[i] = foundFunction{Name: t.Name, Description: t.Description, Parameters: t.Parameters}
		if agent.Identifier(t.Role) == t.Role && agent.Identifier(t.Method) == t.Method {
			found[i].Role, found[i].Method = t.Role, t.Method
		}
	}
	value := map[string]any{"tools": found}
	return s.send(w, http.StatusOK,
		map[string]any{"outcome": map[string]any{"status": agent.StatusOK, "ok": true, "value": value}})
}
