//go:build ops

package daemon

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// A chooser is a scripted model that picks tools: it asks in turn for what picks has, then repeats what the tools
// answered. It serves chat completions and responses.
type chooser struct {
	t     *testing.T
	picks [][2]string // name and arguments

	mu      sync.Mutex
	offered []string // names, in the first request; guarded by mu
	turns   int
}

// An offer is a tool in either of the two formats.
type offer struct {
	Name       string         `json:"name"`
	Parameters map[string]any `json:"parameters"`
	Function   *offer         `json:"function"`
}

func (c *chooser) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Messages []map[string]any `json:"messages"`
		Input    []map[string]any `json:"input"`
		Tools    []offer          `json:"tools"`
	}
	answers := map[string]func(*[2]string, string) any{"/chat/completions": chatAnswer, "/responses": responsesAnswer}
	answer := answers[r.URL.Path]
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil || answer == nil ||
		r.Header.Get("Authorization") != "Bearer k" {
		c.t.Errorf("the model was asked %s: %v", r.URL.Path, err)
		http.NotFound(w, r)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.turns == 0 {
		c.look(q.Tools)
	}
	var pick *[2]string
	var results []string
	if c.turns < len(c.picks) {
		pick = &c.picks[c.turns]
	} else {
		for _, m := range append(q.Messages, q.Input...) {
			if m["role"] == "tool" {
				results = append(results, m["content"].(string))
			} else if m["type"] == "function_call_output" {
				results = append(results, m["output"].(string))
			}
		}
	}
	c.turns++
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer(pick, strings.Join(results, " | ")))
}

// look records the names of tools. Callers hold c.mu.
func (c *chooser) look(tools []offer) {
	for _, tool := range tools {
		if tool.Function != nil {
			tool = *tool.Function
		}
		c.offered = append(c.offered, tool.Name)
		if tool.Parameters["type"] != "object" {
			c.t.Errorf("%s has no schema: %v", tool.Name, tool.Parameters)
		}
	}
}

// chatAnswer returns a chat completion that picks a tool, or has the text if pick is nil.
func chatAnswer(pick *[2]string, text string) any {
	message, finish := object{"role": "assistant", "content": text}, "stop"
	if pick != nil {
		message, finish = object{"role": "assistant", "tool_calls": []any{object{"id": "call_1", "type": "function",
			"function": object{"name": pick[0], "arguments": pick[1]}}}}, "tool_calls"
	}
	return object{"choices": []any{object{"index": 0, "message": message, "finish_reason": finish}}}
}

// responsesAnswer returns a response that picks a tool, or has the text if pick is nil.
func responsesAnswer(pick *[2]string, text string) any {
	item := object{"type": "message", "role": "assistant", "content": []any{object{"type": "output_text", "text": text}}}
	if pick != nil {
		item = object{"type": "function_call", "call_id": "call_1", "name": pick[0], "arguments": pick[1]}
	}
	return object{"object": "response", "status": "completed", "output": []any{item}}
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
	want := "call_method find_tools calculator__add calculator__increment shop__sell"
	if strings.Join(model.offered, " ") != want {
		t.Errorf("offered %v, want %s", model.offered, want)
	}
}

// The SDK of OpenAI, by two of its interfaces, and the AI SDK run what a model picks, and show it what the tools
// answered.
func TestOpsAgentKits(t *testing.T) {
	dir, node := kits(t)
	for name, command := range map[string][]string{
		"openai, chat completions": {"openai.mjs", "chat"},
		"openai, responses":        {"openai.mjs", "responses"},
		"ai":                       {"aiagent.mjs"},
	} {
		t.Run(name, func(t *testing.T) {
			d := rig.Start(t, rig.NewModel(t, script()), tokens(t)...).As(token)
			s := d.Session("calculator")
			d.Call(s, "add", 1, 2)
			d.Invoke(s, object{"role": "shop", "method": "sell", "args": []any{1}})
			model := &chooser{t: t, picks: [][2]string{{"calculator__add", `{"a": 20, "b": 22}`}, {"shop__sell", `{"n": 0}`},
				{"call_method", `{"role": "calculator", "method": "add", "args": [1, 2]}`}}}
			server := httptest.NewServer(model)
			defer server.Close()
			cmd := exec.CommandContext(t.Context(), node, append(command, "What is 20 + 22?")...)
			cmd.Dir, cmd.Env = dir, append(rig.Environment(dir), "RECURGENT_URL="+d.URL, "RECURGENT_TOKEN="+token,
				"OPENAI_BASE_URL="+server.URL, "OPENAI_API_KEY=k")
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			got := strings.Split(strings.TrimSpace(string(out)), " | ")
			if len(got) != 3 || !strings.Contains(got[0], "42") || !strings.Contains(got[1], "not_today") ||
				!strings.Contains(got[2], "3") {
				t.Errorf("the model saw %q", got)
			}
			for _, name := range []string{"call_method", "find_tools", "calculator__add", "shop__sell"} {
				if !slices.Contains(model.offered, name) {
					t.Errorf("%s was not offered: %v", name, model.offered)
				}
			}
		})
	}
}
