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

// Values of the query parameter format. Each names the format of tools in one API for models.
const (
	formatOpenAI    = "openai"           // OpenAI's chat completions, and those of many servers
	formatResponses = "openai-responses" // OpenAI's responses
	formatAnthropic = "anthropic"
	formatGemini    = "gemini" // Gemini's function declarations
	formatMCP       = "mcp"
)

// A functionPage is the requested page of a tool list.
type functionPage struct {
	after  string
	limit  int
	format string
	strict bool // schemas in the variant for constrained decoding
}

// functionList is the reply, in the shape of model APIs and of MCP's tools/list.
type functionList struct {
	Tools      []any   `json:"tools"`
	NextCursor *string `json:"next_cursor"`
}

// functionTool is a tool in the format of OpenAI's chat completions.
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

// responsesTool is a tool in the format of OpenAI's responses.
type responsesTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"`
}

// anthropicTool is a tool in the format of Anthropic's messages.
type anthropicTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
}

// geminiTools is the one tool that Gemini takes, with the declarations of all functions.
type geminiTools struct {
	Declarations []any `json:"functionDeclarations"`
}

type geminiFunction struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters,omitempty"` // nil if there are none
}

// listFunctions lists tools in the format of a model API. Built-in tools come first, then methods by name.
func (s *server) listFunctions(w *reply, r *http.Request, p functionPage) error {
	var tools []*catalog.Tool
	if p.format != formatMCP { // MCP's server adds built-in tools of its own
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
	// Gemini takes one tool with all declarations
	if p.format == formatGemini && len(out.Tools) > 0 {
		out.Tools = []any{geminiTools{out.Tools}}
	}
	return s.send(w, http.StatusOK, out)
}

// extraTools returns the built-in tools of the page, and the page of methods that follows them.
func extraTools(p functionPage) (tools []*catalog.Tool, rest functionPage) {
	first := 1 + slices.IndexFunc(catalog.Extra, func(t *catalog.Tool) bool { return t.Name == p.after })
	if first == 0 && p.after != "" {
		return nil, p
	}
	tools = slices.Clone(catalog.Extra[first:])
	// a small page may end within the built-in tools
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

// reader returns the principal for which lists of tools are made.
func (w *reply) reader() agent.Reader {
	return agent.Reader{Owner: w.owner, Operates: w.who.Scopes.Has(access.Operate)}
}

// toMCP serves the MCP endpoint at its path with a slash at the end, too, as many clients write it.
func toMCP(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == mcpPath+"/" {
			r.URL.Path = mcpPath
		}
		next.ServeHTTP(w, r)
	})
}

// postMCP passes a message to the MCP server. Its body is bounded as any other; its reply may be an event stream.
func (s *server) postMCP(w *reply, r *http.Request) error {
	if w.run.MCP() == nil {
		return s.noRoute(w, r)
	}
	data, err := s.keptBody(w, r)
	if err != nil {
		return err
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // as on stdio
	w.messageID = mcp.MessageID(data)
	if !mcp.Calls(data) {
		w.held.endCall() // polling or canceling a task must not wait behind the principal's own calls
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

// postFunction runs the call that a model requested by the name of a tool.
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
	// without a session in the body, the call gets a new one of its own
	if q.SessionID, q.Ephemeral = call.session, call.session == ""; q.Ephemeral {
		q.SessionID = ids.NewSession(true)
	}
	return s.answer(w, r, q)
}

// tool fills q with the method that the tool stands for.
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

// method fills q from the arguments of call_method, which can call any method.
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

// foundFunction is a result of find_tools. Role and Method are set only if both are plain identifiers, which
// call_method takes as they are.
type foundFunction struct {
	Name        string          `json:"name"`
	Role        string          `json:"role,omitempty"`
	Method      string          `json:"method,omitempty"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

// findFunctions answers find_tools. The reply has the shape of a call's outcome, though no call took place.
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
		// other names could carry text to the model: lists show them only as identifiers
		if agent.Identifier(t.Role) == t.Role && agent.Identifier(t.Method) == t.Method {
			found[i].Role, found[i].Method = t.Role, t.Method
		}
	}
	value := map[string]any{"tools": found}
	return s.send(w, http.StatusOK,
		map[string]any{"outcome": map[string]any{"status": agent.StatusOK, "ok": true, "value": value}})
}
