package app_test

import (
	"bytes"
	"encoding/json"
	"testing"
)

// rpc sends an MCP request and returns the result and error of the response.
func (r *replica) rpc(method string, params map[string]any) (result, fault map[string]any) {
	r.t.Helper()
	a := r.send("POST", "/mcp", map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params},
		map[string]string{"Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2025-11-25"})
	for line := range bytes.Lines(a.body) {
		var got struct {
			Result map[string]any `json:"result"`
			Error  map[string]any `json:"error"`
		}
		if json.Unmarshal(bytes.TrimPrefix(line, []byte("data: ")), &got) == nil &&
			(got.Result != nil || got.Error != nil) {
			return got.Result, got.Error
		}
	}
	r.t.Errorf("%s: %d %s, %v", method, a.status, a.body, a.err)
	return nil, nil
}

// An MCP task is the same at every replica: a task that runs elsewhere is found, listed, awaited and canceled, and one
// that has ended is read from the store.
func TestReplicasShareTasks(t *testing.T) {
	t.Parallel()
	c := replicas(t, 2, nil)
	a, b := c.all[0], c.all[1]
	begin := func() (id string) {
		t.Helper()
		created, fault := a.rpc("tools/call", map[string]any{"name": "counter__wait", "arguments": map[string]any{},
			"task": map[string]any{}})
		task, _ := created["task"].(map[string]any)
		if id, _ = task["taskId"].(string); id == "" {
			t.Fatalf("created: %v, %v", created, fault)
		}
		<-c.gate.Entered
		return id
	}
	status := func(r *replica, id string) any {
		t.Helper()
		got, fault := r.rpc("tasks/get", map[string]any{"taskId": id})
		if fault != nil {
			t.Errorf("tasks/get: %v", fault)
		}
		return got["status"]
	}
	canceled, waited := begin(), begin()
	for i, r := range c.all {
		if got := status(r, waited); got != "working" {
			t.Errorf("at replica %d it is %v", i, got)
		}
		list, _ := r.rpc("tasks/list", map[string]any{})
		tasks, _ := list["tasks"].([]any)
		if len(tasks) != 2 || tasks[0].(map[string]any)["taskId"] != waited ||
			tasks[1].(map[string]any)["taskId"] != canceled {
			t.Errorf("replica %d lists %v", i, list)
		}
	}
	if got, fault := b.rpc("tasks/cancel", map[string]any{"taskId": canceled}); got["status"] != "cancelled" {
		t.Errorf("canceled at the other replica: %v, %v", got, fault)
	}
	if got := status(a, canceled); got != "cancelled" {
		t.Errorf("canceled elsewhere, it is %v", got)
	}
	results := make(chan map[string]any, 2)
	for _, r := range c.all {
		go func() {
			got, _ := r.rpc("tasks/result", map[string]any{"taskId": waited})
			results <- got
		}()
	}
	c.gate.Open()
	for range c.all {
		got := <-results
		if outcome, _ := got["structuredContent"].(map[string]any); outcome["value"] != 200.0 {
			t.Errorf("the result: %v", got)
		}
	}
	if _, fault := b.rpc("tasks/get",
		map[string]any{"taskId": "call_06h2q15xnxs9s5ncdke570092g"}); fault["code"] != -32602.0 {
		t.Errorf("a task that nobody has: %v", fault)
	}
}
