package e2e

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/prompt/prompttest"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/provider/openaitest"
)

// script says what the model answers by "role.method": programs (string) or openaitest replies, in order; the last repeats.
type script map[string][]any

// A model is a scripted OpenAI-compatible server.
type model struct {
	*openaitest.Server
	gate chan struct{} // held answers wait for it
	once sync.Once
}

// held answers with the program once release is called.
func held(code string) any { return holding(code) }

type holding string

func text(content string) openaitest.Reply {
	return openaitest.Reply{Message: map[string]any{"role": "assistant", "content": content}}
}

func status(code int) openaitest.Reply { return openaitest.Reply{Status: code} }

func newModel(t *testing.T, answers script) *model {
	t.Helper()
	m := &model{Server: openaitest.New(), gate: make(chan struct{})}
	t.Cleanup(m.close)
	t.Cleanup(func() { checkHistoryGuidance(t, m) })
	for name, list := range answers {
		role, method, _ := strings.Cut(name, ".")
		replies := make([]openaitest.Reply, len(list))
		for i, a := range list {
			switch a := a.(type) {
			case string:
				replies[i] = openaitest.Code(a)
			case holding:
				replies[i] = openaitest.Reply{Wait: m.gate, Code: string(a)}
			case openaitest.Reply:
				replies[i] = a
			default:
				t.Fatalf("%s: cannot script %T", name, a)
			}
		}
		m.Answer(role, method, replies...)
	}
	return m
}

// checkHistoryGuidance holds every request for a program that any test of this package caused to what prompts must say of
// the history: forges, repairs and regenerations alike (H-31 to H-37). This is the one point through which all of them pass.
func checkHistoryGuidance(t *testing.T, m *model) {
	t.Helper()
	for i, r := range m.Requests() {
		if r.Role == "" && r.Method == "" {
			continue // a prediction: no program is asked for
		}
		var messages []provider.Message
		list, _ := r.Body["messages"].([]any)
		for _, item := range list {
			o, _ := item.(map[string]any)
			role, _ := o["role"].(string)
			content, _ := o["content"].(string)
			messages = append(messages, provider.Message{Role: role, Content: content})
		}
		if _, err := prompttest.Check(messages); err != nil {
			t.Errorf("request %d, for %s.%s (repair: %v): %v", i, r.Role, r.Method, r.Repair, err)
		}
	}
}

func (m *model) url() string { return m.URL }

func (m *model) close() { m.Close() }

// release lets held answers go.
func (m *model) release() { m.once.Do(func() { close(m.gate) }) }

// otherwise answers everything that is not scripted with the program.
func (m *model) otherwise(code string) {
	m.Default(func(openaitest.Request) openaitest.Reply { return openaitest.Code(code) })
}

// count returns how often the model was asked for the method.
func (m *model) count(role, method string) int { return m.Count(role, method) }

// A question is a request that the model received.
type question struct {
	Kind, Role, Method     string
	System, User, Model    string
	OffersTool, ForcesTool bool
	Authorization          string
	Header                 http.Header
}

func (m *model) requests() []question {
	all := m.Requests()
	out := make([]question, len(all))
	for i, r := range all {
		q := question{Kind: "forge", Role: r.Role, Method: r.Method, Authorization: r.Header.Get("Authorization"), Header: r.Header}
		if r.Repair {
			q.Kind = "repair"
		}
		q.Model, _ = r.Body["model"].(string)
		messages, _ := r.Body["messages"].([]any)
		for _, msg := range messages {
			o, _ := msg.(map[string]any)
			content, _ := o["content"].(string)
			switch o["role"] {
			case "system":
				q.System += content
			case "user":
				q.User = content // the last one counts
			}
		}
		tools, _ := r.Body["tools"].([]any)
		for _, tool := range tools {
			f, _ := tool.(map[string]any)["function"].(map[string]any)
			q.OffersTool = q.OffersTool || f["name"] == "submit_program"
		}
		choice, _ := r.Body["tool_choice"].(map[string]any)
		f, _ := choice["function"].(map[string]any)
		q.ForcesTool = f["name"] == "submit_program"
		out[i] = q
	}
	return out
}

func (m *model) last() question {
	all := m.requests()
	if len(all) == 0 {
		return question{}
	}
	return all[len(all)-1]
}
