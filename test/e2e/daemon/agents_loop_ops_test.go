//go:build ops

package daemon

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// A chooser is a scripted model that picks tools: it asks in turn for what picks has, then repeats what the tools
// answered.
type chooser struct {
	t     *testing.T
	picks [][2]string // name and arguments

	mu      sync.Mutex
	offered []string // names, in the first request; guarded by mu
	turns   int
}

func (c *chooser) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Messages []map[string]any `json:"messages"`
		Tools    []struct {
			Function struct {
				Name       string         `json:"name"`
				Parameters map[string]any `json:"parameters"`
			} `json:"function"`
		} `json:"tools"`
	}
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil || r.URL.Path != "/chat/completions" ||
		r.Header.Get("Authorization") != "Bearer k" {
		c.t.Errorf("the model was asked %s: %v", r.URL.Path, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.turns == 0 {
		for _, tool := range q.Tools {
			c.offered = append(c.offered, tool.Function.Name)
			if tool.Function.Parameters["type"] != "object" {
				c.t.Errorf("%s has no schema: %v", tool.Function.Name, tool.Function.Parameters)
			}
		}
	}
	message := map[string]any{"role": "assistant"}
	if c.turns < len(c.picks) {
		pick := c.picks[c.turns]
		message["tool_calls"] = []any{map[string]any{"id": "call_1", "type": "function",
			"function": map[string]any{"name": pick[0], "arguments": pick[1]}}}
	} else {
		var results []string
		for _, m := range q.Messages {
			if m["role"] == "tool" {
				results = append(results, m["content"].(string))
			}
		}
		message["content"] = strings.Join(results, " | ")
	}
	c.turns++
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{"message": message}}})
}

// The example of an agent loop runs what the model picks, in one session, and shows the model what went wrong.
func TestOpsAgentLoop(t *testing.T) {
	m := rig.NewModel(t, script())
	d := rig.Start(t, m)
	s := d.Session("calculator")
	d.Call(s, "add", 1, 2)
	d.Call(s, "increment", 1)
	d.Invoke(s, object{"role": "shop", "method": "sell", "args": []any{1}})
	model := &chooser{t: t, picks: [][2]string{{"calculator__add", `{"a": 20, "b": 22}`},
		{"calculator__increment", `{"amount": 5}`}, {"calculator__increment", ``},
		{"shop__sell", `{"n": 0}`}, {"no_such_tool", `{}`}, {"calculator__add", `{"a": 1,`}}}
	server := httptest.NewServer(model)
	defer server.Close()
	script, err := filepath.Abs("../../../examples/agent-loop/agent.py")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "python3", script, "What is 20 + 22?")
	cmd.Env = append(rig.Environment(t.TempDir()), "RECURGENT_URL="+d.URL, "OPENAI_BASE_URL="+server.URL,
		"OPENAI_API_KEY=k")
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	got := strings.Split(strings.TrimSpace(string(out)), " | ")
	if len(got) != 6 || got[0] != "42" && got[0] != "42.0" || got[1] != "5" || got[2] != "6" ||
		!strings.Contains(got[3], "not_today") ||
		!strings.Contains(got[4], "unknown tool") || !strings.Contains(got[5], "as text must be a JSON object") {
		t.Errorf("the model saw %q", got)
	}
	if want := "call_method find_tools calculator__add calculator__increment shop__sell"; strings.Join(model.offered, " ") != want {
		t.Errorf("offered %v, want %s", model.offered, want)
	}
}
