package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// An mcpClient is a client of MCP.
type mcpClient struct {
	*mcp.ClientSession
	t        *testing.T
	version  string
	changed  chan struct{} // receives when the server says that the list changed
	progress chan string   // messages
}

// connect speaks the protocol version to the server behind the transport; "" is the newest.
func connectMCP(t *testing.T, transport mcp.Transport, version string) *mcpClient {
	t.Helper()
	a := &mcpClient{t: t, version: version, changed: make(chan struct{}, 64), progress: make(chan string, 64)}
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { a.changed <- struct{}{} },
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			a.progress <- fmt.Sprint(r.Params.ProgressToken, " ", r.Params.Progress, " ", r.Params.Message)
		}})
	listens := make(chan struct{}, 1)
	c.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			if method == "notifications/subscriptions/acknowledged" {
				listens <- struct{}{}
			}
			return next(ctx, method, r)
		}
	})
	var err error
	if a.ClientSession, err = c.Connect(t.Context(), transport,
		&mcp.ClientSessionOptions{ProtocolVersion: version}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	if version == newest { // what changes before that is announced to nobody
		select {
		case <-listens:
		case <-time.After(rig.Patience):
			t.Fatal("the server did not say that it will announce changes")
		}
	}
	return a
}

// overHTTP is an agent of the daemon.
func overHTTP(t *testing.T, d *rig.Daemon, version string) *mcpClient {
	t.Helper()
	return connectMCP(t, &mcp.StreamableClientTransport{Endpoint: d.URL + "/mcp"}, version)
}

// A result is what a tool returned.
type result struct {
	*mcp.CallToolResult
	outcome map[string]any
	text    string
}

func (a *mcpClient) call(name string, arguments any, meta mcp.Meta) result {
	a.t.Helper()
	r, err := a.CallTool(a.t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments, Meta: meta})
	if err != nil {
		a.t.Fatalf("%s: %v", name, err)
	}
	if wire := string(rig.Encode(a.t, r)); a.version == newest && !strings.Contains(wire, `"resultType":"complete"`) {
		a.t.Errorf("%s: the result does not say that it is complete, as the version demands: %s", name, wire)
	}
	out := result{CallToolResult: r}
	out.outcome, _ = r.StructuredContent.(map[string]any)
	for _, c := range r.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			out.text += text.Text + "\n"
		}
	}
	return out
}

func (a *mcpClient) value(r result, want any) {
	a.t.Helper()
	if r.IsError || r.outcome["ok"] != true || !rig.Equal(want, r.outcome["value"]) {
		a.t.Errorf("got %v, error %v; want %v", r.outcome, r.IsError, want)
	}
}

func (a *mcpClient) failure(r result, errorType string) {
	a.t.Helper()
	if !r.IsError || r.outcome["error_type"] != errorType {
		a.t.Errorf("got %v, %q, error %v; want %s", r.outcome, r.text, r.IsError, errorType)
	}
}

// refused checks a JSON-RPC error.
func (a *mcpClient) refused(name string, arguments any, meta mcp.Meta, code int64, words string) {
	a.t.Helper()
	r, err := a.CallTool(a.t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments, Meta: meta})
	var rpc *jsonrpc.Error
	if !errors.As(err, &rpc) || rpc.Code != code || !strings.Contains(rpc.Message, words) {
		a.t.Errorf("%s: %v, %v; want error %d with %q", name, r, err, code, words)
	}
}

// reports waits for the report with the words, which the client may hear of after the result, and returns all up to it.
func (a *mcpClient) reports(words string) (said string) {
	a.t.Helper()
	for !strings.Contains(said, words) {
		select {
		case one := <-a.progress:
			said += one + "; "
		case <-time.After(rig.Patience):
			a.t.Fatalf("progress: %s, want %q too", said, words)
		}
	}
	return said
}

// hears waits until the server has said that the list changed.
func (a *mcpClient) hears() {
	a.t.Helper()
	select {
	case <-a.changed:
	case <-time.After(rig.Patience):
		a.t.Fatal("the server did not say that the list changed")
	}
}

func (a *mcpClient) tools() map[string]*mcp.Tool {
	a.t.Helper()
	all := map[string]*mcp.Tool{}
	for tool, err := range a.Tools(a.t.Context(), nil) {
		if err != nil {
			a.t.Fatal(err)
		}
		if all[tool.Name] != nil {
			a.t.Errorf("%s is listed twice", tool.Name)
		}
		all[tool.Name] = tool
	}
	return all
}

func toolNames(tools map[string]*mcp.Tool) (list []string) {
	for name := range tools {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

const newest, legacy = "2026-07-28", "2025-11-25"

var progSell = rig.Program(
	"\tn, _ := call.Arg(0, \"n\").(float64)\n\tif n < 1 {\n\t\treturn nil, recurgent.Fail(\"not_today\", \"closed on Sundays\")\n\t}\n\treturn \"sold\", nil")

var progSpins = rig.Program("\tfor call.Arg(0, \"spin\") == true {\n\t}\n\treturn 1, nil")

func script() rig.Script {
	return rig.Script{"calculator.add": {rig.ProgAdd}, "calculator.increment": {rig.ProgIncrement},
		"shop.sell": {progSell}, "shop.large": {rig.Program("\treturn int64(9007199254740995), nil")},
		"shop.panics": {rig.ProgPanic},
		"shop.slow":   {rig.Held(rig.ProgAdd)}, "shop.slower": {rig.Held(rig.ProgAdd)},
		"shop.sells": {rig.Held(progSell)}, "shop.spins": {progSpins}}
}

// An agent has a method written, finds it as a tool with a schema, and calls it, in the protocol's newest version and
// in an older one.
func TestMCP(t *testing.T) {
	t.Parallel()
	for _, version := range []string{newest, legacy} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			m := rig.NewModel(t, script())
			m.Release()
			d := rig.Start(t, m)
			story(t, d, overHTTP(t, d, version))
		})
	}
}

// story is what an agent does; the daemon is asked what became of it.
func story(t *testing.T, d *rig.Daemon, a *mcpClient) {
	t.Helper()
	extra := []string{"call_method", "find_tools", "judge_call", "new_session", "upload_file"}
	if got := toolNames(a.tools()); !slices.Equal(got, extra) {
		t.Fatalf("tools of a new daemon: %v", got)
	}
	first := a.call("call_method", object{"role": "calculator", "method": "add", "args": []any{2, 3}},
		mcp.Meta{"progressToken": "p1"})
	a.value(first, 5)
	if said := a.reports("the program runs"); !strings.HasPrefix(said, "p1 1 ") ||
		!strings.Contains(said, "a model writes the program") {
		t.Errorf("progress: %s", said)
	}
	callID, _ := first.Meta["recurgent/call_id"].(string)
	if !strings.Contains(first.text, "call_id: "+callID) || first.Meta["recurgent/program"] != "generated" {
		t.Errorf("the result: %q, %v", first.text, first.Meta)
	}

	tools := a.tools()
	add := tools["calculator__add"]
	if add == nil || len(tools) != 6 {
		t.Fatalf("tools: %v", toolNames(tools))
	}
	if out, _ := add.OutputSchema.(map[string]any); add.InputSchema.(map[string]any)["type"] != "object" ||
		out["type"] != "object" || !add.Annotations.ReadOnlyHint {
		t.Errorf("add: %+v", add)
	}
	a.value(a.call("calculator__add", inputFor(add, 20, 22), nil), 42)
	a.value(a.call("calculator__add", object{"a": 1, "b": 1}, nil), 2)

	// Memory is shared by calls of one session.
	session := a.call("new_session", object{"role": "calculator", "context": object{"value": 7}}, nil)
	id, _ := session.outcome["id"].(string)
	in := mcp.Meta{"recurgent/session_id": id}
	a.value(a.call("call_method", object{"role": "calculator", "method": "increment", "session_id": id}, nil), 8)
	a.value(a.call("calculator__increment", object{"kwargs": object{"amount": 2}}, in), 10)
	a.value(a.call("calculator__increment", nil, nil), 1) // a session of its own
	if tool := a.tools()["calculator__increment"]; tool.Annotations.ReadOnlyHint {
		t.Error("increment writes the memory and is marked as read-only")
	}
	if got := len(d.History(id)); got != 2 {
		t.Errorf("the session has %d records", got)
	}

	found := a.call("find_tools", object{"query": "increment a value", "limit": 1}, nil)
	list, _ := found.outcome["tools"].([]any)
	if len(list) != 1 || list[0].(map[string]any)["name"] != "calculator__increment" ||
		list[0].(map[string]any)["inputSchema"] == nil {
		t.Errorf("found: %s", found.text)
	}
	judged := a.call("judge_call", object{"call_id": callID, "verdict": "right"}, nil)
	if judged.IsError || judged.outcome["verdict"] != "right" ||
		d.Get("/v1/calls/" + callID + "/verdict")["verdict"] != "right" {
		t.Errorf("judged: %s", judged.text)
	}
	wrongInputs(t, d, a)
}

// inputFor are two arguments as the tool takes them.
func inputFor(tool *mcp.Tool, x, y int) object {
	schema, _ := tool.InputSchema.(map[string]any)
	return arguments(map[string]any{"parameters": schema}, x, y)
}

// wrongInputs are those that agents send, each answered as the protocol says.
func wrongInputs(t *testing.T, d *rig.Daemon, a *mcpClient) {
	t.Helper()
	a.refused("no_such_tool", nil, nil, -32602, `unknown tool "no_such_tool"`)
	a.refused("calculator__add", object{"a": 1, "b": 2}, mcp.Meta{"recurgent/session_id": "sess_none"}, -32602,
		"there is no session")
	a.refused("calculator__add", object{"a": 1, "b": 2}, mcp.Meta{"recurgent/session_id": 7}, -32602,
		"must be the id of a session")
	if r := a.call("calculator__add", object{"args": 7},
		nil); !r.IsError || r.outcome["error_type"] != "invalid_input" ||
		!strings.Contains(r.text, "must be an array") {
		t.Errorf("args that are no array: %s", r.text)
	}
	for name, arguments := range map[string]object{
		"call_method": {"role": "a/b", "method": "m"}, "find_tools": {"query": 7},
		"judge_call": {"call_id": "call_none", "verdict": "right"}, "new_session": {"rolle": "x"},
		"upload_file": {"content": 7}} {
		if r := a.call(name, arguments, nil); !r.IsError || r.text == "" {
			t.Errorf("%s with wrong arguments: %s", name, r.text)
		}
	}
	a.value(a.call("call_method", object{"role": "shop", "method": "sell", "args": []any{1}}, nil), "sold")
	a.failure(a.call("shop__sell", object{"args": []any{0}}, nil), "not_today")
	a.failure(a.call("call_method", object{"role": "shop", "method": "panics"}, nil), "execution")
	d.Do(http.StatusOK, http.MethodPost, "/v1/tools/calculator/methods/add/quarantine",
		object{"reason": "wrong answers"})
	offered(d, false)
	a.refused("calculator__add", object{"a": 1, "b": 2}, nil, -32602, "calculator.add is not offered now: quarantined")
	if tool := a.tools()["calculator__add"]; tool != nil {
		t.Error("a quarantined method is listed")
	}
	d.Do(http.StatusOK, http.MethodPost, "/v1/tools/calculator/methods/add/release", nil)
	offered(d, true)
	a.value(a.call("calculator__add", object{"a": 1, "b": 2}, nil), 3)
}

// offered waits until all replicas have heard whether calculator.add is offered to agents.
func offered(d *rig.Daemon, want bool) {
	d.T.Helper()
	rig.Until(d.T, fmt.Sprintf("calculator.add is offered: %t", want), func() bool {
		for _, one := range d.Each() {
			if strings.Contains(string(one.Send(http.MethodGet, "/v1/tools?format=mcp", nil, nil).Body),
				`"calculator__add"`) != want {
				return false
			}
		}
		return true
	})
}

// Subscribers hear of new tools, and of those that go.
func TestMCPListChanges(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, script())
	d := rig.Start(t, m)
	a := overHTTP(t, d, newest)
	s := d.Session("calculator")
	d.WantValue(d.Call(s, "add", 1, 2), 3, "generated")
	a.hears()
	rig.Until(t, "the new tool is listed", func() bool { return a.tools()["calculator__add"] != nil })
	d.Policy(object{"mcp": object{"expose": "durable"}})
	a.hears()
	rig.Until(t, "a tool that is not durable is gone", func() bool { return a.tools()["calculator__add"] == nil })
}

// More tools than a page has are listed in pages.
func TestMCPPages(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, rig.NewModel(t, rig.Script{}))
	for i := range 105 {
		d.Do(http.StatusOK, http.MethodPut, fmt.Sprintf("/v1/tools/many/methods/m%03d", i),
			object{"code": rig.ProgAdd, "reason": "test"})
	}
	a := overHTTP(t, d, newest)
	page, err := a.ListTools(t.Context(), nil)
	if err != nil || len(page.Tools) != 100 || page.NextCursor == "" {
		t.Fatalf("the first page: %d tools, cursor %q, %v", len(page.Tools), page.NextCursor, err)
	}
	if all := a.tools(); len(all) != 110 {
		t.Errorf("%d tools", len(all))
	}
	if _, err := a.ListTools(t.Context(), &mcp.ListToolsParams{Cursor: "nonsense"}); err == nil {
		t.Error("a cursor that is none was taken")
	}
}

// Tokens, hosts, origins and sizes count as for every other request.
func TestMCPAccess(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, nil)
	ping := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	accept := map[string]string{"Accept": "application/json, text/event-stream"}
	for name, c := range map[string]struct {
		method string
		body   []byte
		header map[string]string
		status int
	}{
		"fine": {"POST", ping, nil, 200},
		"another origin": {"POST", ping, map[string]string{"Origin": "https://evil.example",
			"Sec-Fetch-Site": "cross-site"}, 403},
		"no JSON":         {"POST", ping, map[string]string{"Content-Type": "text/plain"}, 415},
		"a large body":    {"POST", make([]byte, 5<<20), nil, 413},
		"broken JSON":     {"POST", []byte("{"), nil, 400},
		"an old stream":   {"GET", nil, nil, 405},
		"an old session":  {"DELETE", nil, nil, 405},
		"nothing to take": {"POST", ping, map[string]string{"Accept": "text/plain"}, 400},
	} {
		header := map[string]string{}
		for _, h := range []map[string]string{accept, c.header} {
			for k, v := range h {
				header[k] = v
			}
		}
		if status := post(t, d, c.method, c.body, header); status != c.status {
			t.Errorf("%s: %d, want %d", name, status, c.status)
		}
	}
	if status := post(t, d, "POST", ping, map[string]string{"Accept": accept["Accept"],
		"Host": "evil.example"}); status != http.StatusMisdirectedRequest {
		t.Errorf("another host: %d", status)
	}
}

// post sends a message as it is; the answers of the protocol are not those that the OpenAPI document describes.
func post(t *testing.T, d *rig.Daemon, method string, body []byte, header map[string]string) (status int) {
	t.Helper()
	status, _, _ = postAnswer(t, d, method, body, header)
	return status
}

// postAnswer is post with the media type and, where that is JSON, the answer.
func postAnswer(t *testing.T, d *rig.Daemon, method string, body []byte,
	header map[string]string) (status int, kind string, answer object) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, d.URL+"/mcp", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for k, v := range header {
		req.Header.Set(k, v)
	}
	req.Host = header["Host"]
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	kind = res.Header.Get("Content-Type")
	if kind == "application/json" {
		if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
			t.Errorf("%s: %v", header, err)
		}
	}
	return res.StatusCode, kind, answer
}

// Large numbers keep their digits, in both directions.
func TestMCPNumbers(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, script())
	d := rig.Start(t, m)
	a := overHTTP(t, d, newest)
	r := a.call("call_method", json.RawMessage(`{"role":"shop","method":"large","args":[9007199254740993]}`), nil)
	if !strings.Contains(r.text, `"value":9007199254740995`) {
		t.Errorf("got %s", r.text)
	}
	id, _ := r.Meta["recurgent/call_id"].(string)
	if log := d.Do(http.StatusOK, http.MethodGet, "/v1/calls/"+id,
		nil); !strings.Contains(string(log.Body), `"args":[9007199254740993]`) {
		t.Errorf("the call had %s", log.Body)
	}
}
