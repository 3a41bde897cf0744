package rig

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/prompt/prompttest"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/provider/openaitest"
)

// Script maps "role.method" to the model's answers in order: programs (string), the result of Held, or openaitest
// replies. The last answer repeats.
type Script map[string][]any

// A Model is a scripted OpenAI-compatible server.
type Model struct {
	*openaitest.Server
	// gate is closed by Release. Held answers wait for it.
	gate chan struct{}
	once sync.Once
}

// Held returns an answer with the program that is sent only after Release.
func Held(code string) any { return holding(code) }

// A holding is the program of an answer that Held returns.
type holding string

// Text returns an answer in plain text, without a program.
func Text(content string) openaitest.Reply {
	return openaitest.Reply{Message: map[string]any{"role": "assistant", "content": content}}
}

// Status returns an answer with only a status.
func Status(code int) openaitest.Reply { return openaitest.Reply{Status: code} }

// NewModel starts a model server with these answers. It is closed at the end of the test.
func NewModel(t *testing.T, answers Script) *Model {
	t.Helper()
	m := &Model{Server: openaitest.New(), gate: make(chan struct{})}
	t.Cleanup(m.Close)
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

// checkHistoryGuidance checks that every request for a program that a test has caused contains what prompts must say
// about the history. All forges, repairs and regenerations pass through here.
func checkHistoryGuidance(t *testing.T, m *Model) {
	t.Helper()
	for i, r := range m.Requests() {
		if r.Role == "" && r.Method == "" {
			continue // a prediction, which asks for no program
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

// Release lets held answers go, now and later. It may be called more than once.
func (m *Model) Release() { m.once.Do(func() { close(m.gate) }) }

// Otherwise makes the model answer every request that is not scripted with the program.
func (m *Model) Otherwise(code string) {
	m.Default(func(openaitest.Request) openaitest.Reply { return openaitest.Code(code) })
}

// A Question is a request that the model received.
type Question struct {
	Kind, Role, Method     string
	System, User, Model    string
	OffersTool, ForcesTool bool
	Authorization          string
	Header                 http.Header
}

// Questions returns the requests so far, oldest first.
func (m *Model) Questions() []Question {
	all := m.Requests()
	out := make([]Question, len(all))
	for i, r := range all {
		q := Question{Kind: "forge", Role: r.Role, Method: r.Method, Authorization: r.Header.Get("Authorization"),
			Header: r.Header}
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

// LastQuestion returns the newest request, or the zero Question if there was none.
func (m *Model) LastQuestion() Question {
	all := m.Questions()
	if len(all) == 0 {
		return Question{}
	}
	return all[len(all)-1]
}

// Messages returns the role and content of each message in request i to the model. A negative i counts from the end.
func Messages(t *testing.T, m *Model, i int) [][2]string {
	t.Helper()
	all := m.Requests()
	if i < 0 {
		i += len(all)
	}
	list, _ := all[i].Body["messages"].([]any)
	var out [][2]string
	for _, item := range list {
		o := item.(map[string]any)
		role, _ := o["role"].(string)
		content, _ := o["content"].(string)
		out = append(out, [2]string{role, content})
	}
	return out
}
