package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/recurgentd/recurgentd/internal/access"
	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/api/strict"
	"github.com/recurgentd/recurgentd/internal/mcp"
	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/runtime/catalog"
)

// Formats in which agents take tools.
const (
	formatOpenAI = "openai"
	formatMCP    = "mcp"
)

// A functionPage is a part of the list.
type functionPage struct {
	after string
	limit int
}

// functionList is the form in which model APIs and tools/list have it.
type functionList struct {
	Tools      []any   `json:"tools"`
	NextCursor *string `json:"next_cursor"`
}

// functionTool is a tool as model APIs take it.
type functionTool struct {
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

func (s *server) listFunctions(w *reply, r *http.Request, format string, p functionPage) error {
	tools, more, err := w.run.Functions().List(r.Context(), w.reader(), p.after, p.limit)
	if err != nil {
		return err
	}
	out := functionList{Tools: make([]any, len(tools))}
	for i, t := range tools {
		if format == formatMCP {
			out.Tools[i] = mcp.Tool(t)
		} else {
			out.Tools[i] = functionTool{"function", function{t.Name, t.Description, t.Parameters}}
		}
	}
	if more {
		out.NextCursor = &tools[len(tools)-1].Name
	}
	return s.send(w, http.StatusOK, out)
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
	data, err := s.readBody(w, r)
	if err != nil {
		return err
	}
	for _, scope := range mcp.Needs(data) {
		if err := w.needs(scope); err != nil {
			return err
		}
	}
	if err := s.callsHere(r.Context(), w, data); err != nil {
		return err
	}
	if listens(data) {
		w.held.endCall()
		if err := w.beginStream(); err != nil {
			return err
		}
	}
	r = r.WithContext(mcp.WithPrincipal(r.Context(), w.as))
	r.Body = io.NopCloser(bytes.NewReader(data))
	w.run.MCP().ServeHTTP(w, r)
	return nil
}

// listens reports whether a message of MCP opens a stream that lasts as long as its client listens.
func listens(message []byte) bool {
	const method = "subscriptions/listen"
	if !bytes.Contains(message, []byte(method)) {
		return false
	}
	found := false
	_ = strict.Members(message, func(name, v []byte) error { // what cannot be read is refused later
		if text, ok := strict.String(v); ok && string(name) == "method" {
			found = text == method
		}
		return nil
	})
	return found
}

// postFunction makes the call that a model asked for by a tool's name.
func (s *server) postFunction(w *reply, r *http.Request) error {
	name := param(r, "name")
	q, data, err := s.readCall(w, r, "function "+name)
	if err != nil {
		return err
	}
	tool, err := w.run.Functions().Find(r.Context(), w.reader(), name)
	var unknown *catalog.NotFound
	if errors.As(err, &unknown) {
		return fault(codeNotFound, unknown.Error(), "GET /v1/tools?format=openai lists the tools with their names.")
	}
	if err != nil {
		return err
	}
	if err := decodeFunction(data, tool, &q); err != nil {
		return err
	}
	return s.answer(w, r, q)
}

// decodeFunction fills q from a body: the arguments, an object or its text as models send it, and the session.
func decodeFunction(data []byte, tool *catalog.Tool, q *runtime.CallRequest) error {
	q.Role, q.Method = tool.Role, tool.Method
	defer func() {
		if q.Ephemeral = q.SessionID == ""; q.Ephemeral {
			q.SessionID = ids.NewSession(true)
		}
	}()
	var arguments json.RawMessage
	var f fields
	err := strict.Members(data, func(name, v []byte) error {
		switch string(name) {
		case "arguments":
			arguments = f.argumentsOf(v)
		case "session_id":
			f.short("/session_id", v, &q.SessionID, 64)
			if q.SessionID != "" && !goodID(q.SessionID) {
				f.bad("/session_id", "is not the id of a session", "leave it out for a session of its own")
			}
		default:
			f.unknown("", name, "arguments, session_id")
		}
		return nil
	})
	if err != nil {
		return shapeProblem(err)
	}
	if len(f.errs) > 0 {
		return f.err()
	}
	q.Args, q.Kwargs, err = tool.Arguments(arguments)
	var bad *agent.InputError
	if errors.As(err, &bad) {
		bad.Pointer = "/arguments" + bad.Pointer
		bad.Detail = bad.Pointer + " " + bad.Detail // all that some models are shown
	}
	return err
}

// argumentsOf returns the object, also where it comes as text. What is no text is an object or not, as Arguments finds.
func (f *fields) argumentsOf(v []byte) json.RawMessage {
	text, ok := strict.String(v)
	if !ok {
		return v
	}
	if text == "" { // some models send that for no arguments
		return nil
	}
	object := []byte(text)
	if err := strict.Members(object, func(_, _ []byte) error { return nil }); err != nil {
		f.bad("/arguments", "as text must be a JSON object: "+err.Error(), `such as {"arguments": "{\"a\": 2, \"b\": 3}"}`)
	}
	return object
}
