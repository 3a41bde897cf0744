package daemon

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

const extension = "io.modelcontextprotocol/tasks"

// A rawClient sends messages of MCP as they are: the library's client knows no tasks.
type rawClient struct {
	d       *rig.Daemon
	version string
	token   string
	tasks   bool                                 // it declares the extension, in the newest version
	stdio   func(message object) (answer object) // sends by that; nil: over HTTP
}

// ask sends a request. err is the error's code; 0 for none.
func (c *rawClient) ask(method string, params object) (result object, code int, text string) {
	c.d.T.Helper()
	if params == nil {
		params = object{}
	}
	if c.version == newest {
		capabilities := object{}
		if c.tasks {
			capabilities = object{"extensions": object{extension: object{}}}
		}
		params["_meta"] = object{"io.modelcontextprotocol/protocolVersion": newest,
			"io.modelcontextprotocol/clientInfo":         object{"name": "raw", "version": "1"},
			"io.modelcontextprotocol/clientCapabilities": capabilities}
	}
	message := object{"jsonrpc": "2.0", "id": "x", "method": method, "params": params}
	var answer object
	if c.stdio != nil {
		answer = c.stdio(message)
	} else {
		answer = c.post(method, params, message)
	}
	if fault, failed := answer["error"].(object); failed {
		n, _ := fault["code"].(float64)
		words, _ := fault["message"].(string)
		return nil, int(n), words
	}
	result, _ = answer["result"].(object)
	if result == nil {
		c.d.T.Fatalf("%s: %v", method, answer)
	}
	return result, 0, ""
}

func (c *rawClient) post(method string, params, message object) (answer object) {
	t := c.d.T
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, c.d.URL+"/mcp",
		bytes.NewReader(rig.Encode(t, message)))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Content-Type": "application/json",
		"Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": c.version, "Mcp-Method": method} {
		req.Header.Set(name, value)
	}
	for _, name := range []string{"name", "uri", "taskId"} {
		if value, ok := params[name].(string); ok {
			req.Header.Set("Mcp-Name", value)
		}
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err)
		return object{"error": object{"message": err.Error()}}
	}
	defer func() { _ = resp.Body.Close() }()
	for lines := bufio.NewReader(resp.Body); ; {
		line, err := lines.ReadBytes('\n')
		got := object{}
		if json.Unmarshal(bytes.TrimPrefix(line, []byte("data: ")), &got) == nil && got["method"] == nil {
			return got
		}
		if err != nil {
			t.Errorf("%s: %s ended with %v", method, resp.Status, err)
			return object{"error": object{"message": "no answer"}}
		}
	}
}

// must is ask for a request that succeeds.
func (c *rawClient) must(method string, params object) object {
	c.d.T.Helper()
	result, code, text := c.ask(method, params)
	if code != 0 || result == nil {
		c.d.T.Fatalf("%s %v: error %d %s", method, params, code, text)
	}
	return result
}

// refused is ask for a request that fails.
func (c *rawClient) refused(method string, params object, want int, words string) {
	c.d.T.Helper()
	if result, code, text := c.ask(method, params); code != want || !strings.Contains(text, words) {
		c.d.T.Errorf("%s %v: %v, error %d %s; want %d with %q", method, params, result, code, text, want, words)
	}
}

// calling are the params of a tools/call of call_method.
func calling(role, method string, args ...any) object {
	return object{"name": "call_method", "arguments": object{"role": role, "method": method, "args": args}}
}

// start makes a call that is a task, in the form of the core.
func (c *rawClient) start(params object) (id string) {
	c.d.T.Helper()
	params["task"] = object{"ttl": 60000}
	task, _ := c.must("tools/call", params)["task"].(object)
	id, _ = task["taskId"].(string)
	if task["status"] != "working" || id == "" || task["createdAt"] == nil || task["lastUpdatedAt"] == nil ||
		task["ttl"] != 86400000.0 || task["pollInterval"] == nil {
		c.d.T.Fatalf("created: %v", task)
	}
	return id
}

// listed are the ids of the tasks that tasks/list gives, page by page.
func (c *rawClient) listed() (ids []string, pages int) {
	c.d.T.Helper()
	params := object{}
	for {
		page := c.must("tasks/list", params)
		for _, one := range page["tasks"].([]any) {
			ids = append(ids, one.(object)["taskId"].(string))
		}
		pages++
		if page["nextCursor"] == nil {
			return ids, pages
		}
		params = object{"cursor": page["nextCursor"]}
	}
}

// lineClient is a rawClient of recurgentd mcp.
func lineClient(t *testing.T, d *rig.Daemon, version string) *rawClient {
	t.Helper()
	conn, err := (&mcp.CommandTransport{Command: rig.Command(t, nil, "mcp", "--url", d.URL),
		TerminateDuration: rig.Patience}).Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	n := 0
	c := &rawClient{d: d, version: version}
	c.stdio = func(message object) (answer object) {
		n++
		message["id"] = n
		sent, err := jsonrpc.DecodeMessage(rig.Encode(t, message))
		if err == nil {
			err = conn.Write(t.Context(), sent)
		}
		for err == nil {
			var got jsonrpc.Message
			if got, err = conn.Read(t.Context()); err != nil {
				break
			}
			data, fault := jsonrpc.EncodeMessage(got)
			answer = object{}
			if err = fault; err == nil && json.Unmarshal(data, &answer) == nil && answer["id"] == float64(n) {
				return answer
			}
		}
		t.Fatal(err)
		return nil
	}
	return c
}

var handshake = object{"protocolVersion": legacy, "capabilities": object{},
	"clientInfo": object{"name": "raw", "version": "1"}}

// A call that its client asked to be a task goes on by itself: the client asks how it is, waits for its result, and
// lists it, over HTTP and stdio.
func TestMCPTasks(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"http", "stdio"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			m := rig.NewModel(t, script())
			defer m.Release()
			d := rig.Start(t, m)
			c := &rawClient{d: d, version: legacy}
			if way == "stdio" {
				c = lineClient(t, d, legacy)
			}
			capabilities, _ := c.must("initialize", handshake)["capabilities"].(object)
			if want := (object{"list": object{}, "cancel": object{},
				"requests": object{"tools": object{"call": object{}}}}); !rig.Equal(want, capabilities["tasks"]) ||
				capabilities["tools"] == nil || capabilities["resources"] == nil {
				t.Errorf("capabilities: %v", capabilities)
			}
			tasksStory(t, m, c)
		})
	}
}

func tasksStory(t *testing.T, m *rig.Model, c *rawClient) {
	t.Helper()
	id := c.start(calling("shop", "slow", 2, 3))
	if got := c.must("tasks/get", object{"taskId": id}); got["status"] != "working" || got["taskId"] != id ||
		got["ttl"] != 86400000.0 {
		t.Errorf("while the model writes: %v", got)
	}
	if ids, _ := c.listed(); len(ids) != 1 || ids[0] != id {
		t.Errorf("listed: %v", ids)
	}
	var result object
	if c.stdio != nil { // which the test uses from one goroutine
		m.Release()
		result = c.must("tasks/result", object{"taskId": id})
	} else {
		done := make(chan object, 1)
		go func() {
			result, _, _ := c.ask("tasks/result", object{"taskId": id})
			done <- result
		}()
		c.must("tasks/get", object{"taskId": id})
		m.Release()
		result = <-done
	}
	structured, _ := result["structuredContent"].(object)
	meta, _ := result["_meta"].(object)
	if structured["value"] != 5.0 || result["isError"] != nil ||
		!rig.Equal(object{"taskId": id}, meta["io.modelcontextprotocol/related-task"]) ||
		meta["recurgent/call_id"] != id || meta["recurgent/program"] != "generated" {
		t.Errorf("the result: %v", result)
	}
	if again := c.must("tasks/result", object{"taskId": id}); !rig.Equal(result, again) {
		t.Errorf("the result again: %v, first %v", again, result)
	}
	got := c.must("tasks/get", object{"taskId": id})
	if got["status"] != "completed" || got["_meta"] != nil {
		t.Errorf("the end: %v", got)
	}
	c.refused("tasks/cancel", object{"taskId": id}, -32602, "it is completed")

	plain := c.must("tools/call", object{"name": "shop__slow", "arguments": object{"a": 20, "b": 22}})
	if structured, _ := plain["structuredContent"].(object); structured["value"] != 42.0 {
		t.Errorf("a call that is no task: %v", plain)
	}
	byName := c.start(object{"name": "shop__slow", "arguments": object{"a": 20, "b": 22}})
	asTask := c.must("tasks/result", object{"taskId": byName})
	if !rig.Equal(plain["structuredContent"], asTask["structuredContent"]) {
		t.Errorf("as a task: %v, else %v", asTask, plain)
	}
	c.must("tools/call", calling("shop", "sell", 1))
	fails := c.start(object{"name": "shop__sell", "arguments": object{"args": []any{0}}})
	failed := c.must("tasks/result", object{"taskId": fails})
	if got := c.must("tasks/get", object{"taskId": fails}); failed["isError"] != true || got["status"] != "failed" ||
		got["statusMessage"] != "not_today: closed on Sundays" {
		t.Errorf("a tool that fails: %v, %v", got, failed)
	}
	if ids, _ := c.listed(); len(ids) != 5 || ids[0] != fails || ids[4] != id {
		t.Errorf("listed: %v", ids)
	}
	tools, _ := c.must("tools/list", nil)["tools"].([]any)
	for _, one := range tools {
		tool := one.(object)
		name := tool["name"].(string)
		if optional := strings.Contains(name, "__") ||
			name == "call_method"; optional != rig.Equal(object{"taskSupport": "optional"}, tool["execution"]) {
			t.Errorf("%s: %v", name, tool["execution"])
		}
	}
}

// A task is canceled when its client has the answer that it is, and once only. Its result is that of a canceled call.
func TestMCPTasksAreCanceled(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, script())
	defer m.Release()
	c := &rawClient{d: rig.Start(t, m), version: legacy}
	for what, params := range map[string]object{"while the model writes": calling("shop", "slow", 2, 3),
		"while the program runs": calling("shop", "spins", "spin")} {
		id := c.start(params)
		if got := c.must("tasks/cancel", object{"taskId": id}); got["status"] != "cancelled" || got["taskId"] != id {
			t.Errorf("%s: %v", what, got)
		}
		if got := c.must("tasks/get", object{"taskId": id}); got["status"] != "cancelled" {
			t.Errorf("%s, later: %v", what, got)
		}
		structured, _ := c.must("tasks/result", object{"taskId": id})["structuredContent"].(object)
		if structured["error_type"] != "canceled" {
			t.Errorf("%s, the result: %v", what, structured)
		}
		c.refused("tasks/cancel", object{"taskId": id}, -32602, "it is cancelled")
	}
}

// From version 2026-07-28 on tasks are an extension: a call becomes one by itself when a model is asked, for clients
// that declare it.
func TestMCPTasksAsExtension(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, script())
	defer m.Release()
	d := rig.Start(t, m)
	c, plain := &rawClient{d: d, version: newest, tasks: true}, &rawClient{d: d, version: newest}
	capabilities, _ := plain.must("server/discover", nil)["capabilities"].(object)
	if extensions, _ := capabilities["extensions"].(object); !rig.Equal(object{}, extensions[extension]) {
		t.Errorf("capabilities: %v", capabilities)
	}
	task := c.must("tools/call", calling("shop", "slow", 2, 3))
	id, _ := task["taskId"].(string)
	if task["resultType"] != "task" || task["status"] != "working" || id == "" || task["ttlMs"] != 86400000.0 ||
		task["pollIntervalMs"] == nil || task["content"] != nil {
		t.Fatalf("created: %v", task)
	}
	if got := c.must("tasks/get", object{"taskId": id}); got["resultType"] != "complete" ||
		got["status"] != "working" || got["result"] != nil {
		t.Errorf("while the model writes: %v", got)
	}
	for _, method := range []string{"tasks/get", "tasks/cancel", "tasks/update"} {
		plain.refused(method, object{"taskId": id}, -32021, extension)
	}
	plain.refused("subscriptions/listen", object{"notifications": object{"taskIds": []any{id}}}, -32021, extension)
	for _, method := range []string{"tasks/list", "tasks/result"} {
		c.refused(method, object{"taskId": id}, -32601, method)
	}
	if got := c.must("tasks/update", object{"taskId": id,
		"inputResponses": object{"x": object{}}}); got["resultType"] != "complete" || got["taskId"] != nil {
		t.Errorf("updated: %v", got)
	}
	m.Release()
	var got object
	rig.Until(t, "the task has ended", func() bool {
		got = c.must("tasks/get", object{"taskId": id})
		return got["status"] != "working"
	})
	result, _ := got["result"].(object)
	if structured, _ := result["structuredContent"].(object); got["status"] != "completed" || structured["value"] != 5.0 {
		t.Errorf("the end: %v", got)
	}
	if got := c.must("tasks/cancel", object{"taskId": id}); got["resultType"] != "complete" {
		t.Errorf("canceled too late: %v", got)
	}
	for _, one := range []*rawClient{c, plain} {
		quick := one.must("tools/call", object{"name": "shop__slow", "arguments": object{"a": 20, "b": 22},
			"task": object{}})
		if structured, _ := quick["structuredContent"].(object); quick["resultType"] != "complete" || structured["value"] != 42.0 {
			t.Errorf("a quick call, tasks known: %v: %v", one.tasks, quick)
		}
	}
	d.Call(d.Session("shop"), "sell", 1)
	refuses := c.must("tools/call", calling("shop", "sell", 0))
	meta, _ := refuses["_meta"].(object)
	if got := c.must("tasks/get",
		object{"taskId": meta["recurgent/call_id"]}); refuses["isError"] != true || got["status"] != "completed" ||
		got["result"].(object)["isError"] != true {
		t.Errorf("a tool that fails: %v", got)
	}
	canceled, _ := c.must("tools/call", calling("shop", "spins", "spin"))["taskId"].(string)
	if got := c.must("tasks/cancel",
		object{"taskId": canceled}); got["resultType"] != "complete" || got["status"] != nil {
		t.Errorf("canceled: %v", got)
	}
	rig.Until(t, "the task is canceled",
		func() bool { return c.must("tasks/get", object{"taskId": canceled})["status"] == "cancelled" })
}

// A client of a version without tasks sees nothing of them, and what it sends of them is ignored, as that version says.
func TestMCPWithoutTasks(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, rig.NewModel(t, script()))
	for _, version := range []string{"2025-06-18", "2025-03-26", "2024-11-05"} {
		c := &rawClient{d: d, version: version}
		hello := c.must("initialize", object{"protocolVersion": version, "capabilities": object{},
			"clientInfo": object{"name": "raw", "version": "1"}})
		if capabilities, _ := hello["capabilities"].(object); capabilities["tasks"] != nil || capabilities["extensions"] != nil || hello["protocolVersion"] != version {
			t.Errorf("%s: %v", version, hello)
		}
		params := calling("calculator", "add", 2, 3)
		params["task"] = object{}
		got := c.must("tools/call", params)
		if structured, _ := got["structuredContent"].(object); structured["value"] != 5.0 || got["task"] != nil {
			t.Errorf("%s: %v", version, got)
		}
		for _, method := range []string{"tasks/get", "tasks/result", "tasks/list", "tasks/cancel", "tasks/update"} {
			c.refused(method, object{"taskId": got["_meta"].(object)["recurgent/call_id"]}, -32601, method)
		}
		for _, one := range c.must("tools/list", nil)["tools"].([]any) {
			if one.(object)["execution"] != nil {
				t.Errorf("%s: %v", version, one)
			}
		}
	}
}

// A task belongs to the owner of its call, in its namespace, and needs the scopes that the call needs.
func TestMCPTasksBelongToOwners(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, script())
	defer m.Release()
	d := rig.Start(t, m, "--auth-tokens-file", rig.WriteFile(t, "tokens",
		strings.Join([]string{"ann ann-token-0123456789abcdef scopes=call,read",
			"ben ben-token-0123456789abcdef scopes=call,read",
			"eve eve-token-0123456789abcdef scopes=read",
			"ann far-token-0123456789abcdef scopes=call,read namespace=far",
			"ops ops-token-0123456789abcdef"}, "\n")+"\n"))
	as := func(name string) *rawClient {
		return &rawClient{d: d, version: legacy, token: name + "-token-0123456789abcdef"}
	}
	id := as("ann").start(calling("shop", "slow", 2, 3))
	for _, name := range []string{"ben", "far", "ops"} {
		for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
			as(name).refused(method, object{"taskId": id}, -32602, "there is no task of that id")
		}
		if ids, _ := as(name).listed(); len(ids) != 0 {
			t.Errorf("%s lists %v", name, ids)
		}
	}
	as("eve").refused("tasks/cancel", object{"taskId": id}, -32000, "scope")
	as("eve").refused("tools/call", calling("shop", "slow", 2, 3), -32000, "scope")
	as("eve").refused("tasks/get", object{"taskId": id}, -32602, "there is no task of that id")
}

// A token that may have one call at once asks for its task, and cancels it, while that call runs; a second call waits
// for the first.
func TestMCPTasksCountAsCalls(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, script())
	defer m.Release()
	const token = "ann-token-0123456789abcdef"
	d := rig.Start(t, m, "--auth-tokens-file", rig.WriteFile(t, "tokens", "ann "+token+" concurrency=1\n"))
	c := &rawClient{d: d, version: legacy, token: token}
	id := c.start(calling("shop", "slow", 2, 3))
	second := make(chan object, 1)
	go func() {
		result, _, _ := c.ask("tools/call", calling("calculator", "add", 2, 3))
		second <- result
	}()
	for range 3 {
		if got := c.must("tasks/get", object{"taskId": id}); got["status"] != "working" {
			t.Errorf("while it runs: %v", got)
		}
	}
	select {
	case got := <-second:
		t.Errorf("beside the task there was %v", got)
	default:
	}
	if got := c.must("tasks/cancel", object{"taskId": id}); got["status"] != "cancelled" {
		t.Errorf("canceled: %v", got)
	}
	if got, _ := (<-second)["structuredContent"].(object); got["value"] != 5.0 {
		t.Errorf("after the task: %v", got)
	}
}

// A task that has ended is there after a restart of the daemon, with its result, as its call is.
func TestMCPTasksSurviveRestarts(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, rig.NewModel(t, script()))
	c := &rawClient{d: d, version: legacy}
	id := c.start(calling("calculator", "add", 2, 3))
	before := c.must("tasks/result", object{"taskId": id})
	d.Restart()
	if got := c.must("tasks/get", object{"taskId": id}); got["status"] != "completed" {
		t.Errorf("after the restart: %v", got)
	}
	if after := c.must("tasks/result", object{"taskId": id}); !rig.Equal(before, after) {
		t.Errorf("the result was %v and is %v", before, after)
	}
	if ids, _ := c.listed(); len(ids) != 1 || ids[0] != id {
		t.Errorf("listed: %v", ids)
	}
}

// Tasks are listed in pages, without the calls that programs make.
func TestMCPTaskPages(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, rig.NewModel(t, rig.Script{"calculator.add": {rig.ProgAdd}, "boss.asks": {rig.ProgDelegates}}))
	c := &rawClient{d: d, version: legacy}
	s := d.Session("calculator")
	for i := range 101 {
		d.Call(s, "add", i, 1)
	}
	top := c.start(calling("boss", "asks"))
	c.must("tasks/result", object{"taskId": top})
	ids, pages := c.listed()
	if len(ids) != 102 || pages != 2 || ids[0] != top {
		t.Errorf("%d tasks on %d pages, the first %v", len(ids), pages, ids[0])
	}
	nested := d.List("/v1/calls?parent_call_id=" + top)
	if len(nested) != 1 {
		t.Fatalf("nested: %v", nested)
	}
	c.refused("tasks/get", object{"taskId": nested[0]["call_id"]}, -32602, "there is no task")
}

// A hostile or wrong request about tasks gets the fitting error, and makes no call.
func TestMCPTasksOfHostileClients(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, rig.NewModel(t, script()))
	d.Call(d.Session("calculator"), "add", 2, 3)
	c := &rawClient{d: d, version: legacy}
	for _, task := range []any{7, "x", []any{}, true, object{"ttl": "x"}, object{"ttl": -1}, object{"ttl": object{}}} {
		params := calling("calculator", "add", 2, 3)
		params["task"] = task
		c.refused("tools/call", params, -32602, "task must be an object")
	}
	for name, arguments := range map[string]object{"find_tools": {"query": "x"}, "judge_call": {}, "new_session": {},
		"upload_file": {}} {
		c.refused("tools/call", object{"name": name, "arguments": arguments, "task": object{}}, -32601,
			name+" cannot be a task")
	}
	c.refused("tools/call", object{"name": "no__tool", "arguments": object{}, "task": object{}}, -32602, "unknown tool")
	c.refused("tools/call", object{"name": "calculator__add", "arguments": object{"args": 7}, "task": object{}}, -32602,
		"arguments/args must be an array")
	c.refused("tools/call", object{"name": "call_method", "arguments": object{"role": "a/b", "method": "m"},
		"task": object{}}, -32602, "role")
	c.refused("tools/call", object{"name": "calculator__add", "arguments": object{"a": 1, "b": 2}, "task": object{},
		"_meta": object{"recurgent/session_id": "sess_none"}}, -32602, "no session")
	for _, id := range []any{nil, 7, "", "call_", "call_../x", "sess_01kb0000000000000000000000",
		"call_" + strings.Repeat("0", 26), strings.Repeat("x", 1<<16), object{}} {
		for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
			if result, code, text := c.ask(method, object{"taskId": id}); code != -32602 {
				t.Errorf("%s %.40v: %v, error %d %s", method, id, result, code, text)
			}
		}
	}
	for _, cursor := range []any{"nonsense", 7, "Li4v"} {
		c.refused("tasks/list", object{"cursor": cursor}, -32602, "")
	}
	for what, params := range map[string]string{"no params": ``, "null": `,"params":null`, "a list": `,"params":[]`} {
		status, _, answer := postAnswer(t, d, "POST", []byte(`{"jsonrpc":"2.0","id":1,"method":"tasks/get"`+params+`}`),
			map[string]string{"Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": legacy})
		if status >= 500 || fmt.Sprint(answer["result"]) != "<nil>" {
			t.Errorf("%s: %d %v", what, status, answer)
		}
	}
	if n := len(d.List("/v1/calls")); n != 1 {
		t.Errorf("%d calls", n)
	}
}
