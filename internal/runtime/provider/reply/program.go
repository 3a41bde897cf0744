package reply

import (
	"encoding/json"
	"strings"

	openai "github.com/sashabaranov/go-openai"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Program finds the program in a completion. The error is an *Unusable.
func Program(r openai.ChatCompletionResponse) (Found, error) {
	found, reason := readProgram(r)
	if reason == "" {
		return found, nil
	}
	failed := &Unusable{Message: reason}
	if len(r.Choices) > 0 {
		failed.Cut = r.Choices[0].FinishReason == openai.FinishReasonLength
		failed.Said = strings.TrimSpace(withoutThoughts(contentOf(r.Choices[0].Message)))
	}
	return Found{}, failed
}

// Text returns the answer of a completion that is a text. The error is an *Unusable.
func Text(r openai.ChatCompletionResponse) (string, error) {
	text := ""
	if len(r.Choices) > 0 {
		text = strings.TrimSpace(withoutThoughts(contentOf(r.Choices[0].Message)))
	}
	if text == "" {
		return "", &Unusable{Message: "the model answered with nothing"}
	}
	return text, nil
}

// readProgram finds the program in a reply, or says why there is none. Models and servers differ: the program may come
// as the arguments of the tool, as a JSON object in the text, in a fenced block, or as bare source.
func readProgram(r openai.ChatCompletionResponse) (Found, string) {
	if len(r.Choices) == 0 {
		return Found{}, "the model's reply has no choices"
	}
	choice := r.Choices[0]
	m := choice.Message
	if reply, ok := fromTools(m); ok {
		return reply, ""
	}
	text := strings.TrimSpace(withoutThoughts(contentOf(m)))
	if reply, ok := fromText(text); ok {
		return reply, ""
	}
	switch {
	case choice.FinishReason == openai.FinishReasonLength:
		return Found{}, "the model's reply was cut off at its token limit before the program was complete"
	case m.Refusal != "":
		return Found{}, "the model refused: " + m.Refusal
	case len(m.ToolCalls) > 0:
		return Found{}, "the model called a tool without usable code"
	case text == "":
		return Found{}, "the model's reply is empty"
	}
	return Found{}, "the model's reply holds no program: it must call submit_program, or send a JSON object with code, or a fenced block of Go"
}

func fromTools(m openai.ChatCompletionMessage) (Found, bool) {
	calls := m.ToolCalls
	if m.FunctionCall != nil {
		calls = append(calls[:len(calls):len(calls)], openai.ToolCall{Function: *m.FunctionCall})
	}
	for _, exact := range []bool{true, false} { // a misspelt name is no reason to pay for a second reply
		for _, c := range calls {
			if (c.Function.Name == SubmitName) != exact {
				continue
			}
			if reply, ok := fromJSON(c.Function.Arguments); ok {
				return reply, true
			}
			if code := strings.TrimSpace(c.Function.Arguments); bareSource(code) {
				return Found{Code: code}, true
			}
		}
	}
	return Found{}, false
}

func fromText(text string) (Found, bool) {
	if reply, ok := fromJSON(text); ok {
		return reply, true
	}
	if code, ok := fenced(text); ok {
		if reply, ok := fromJSON(code); ok {
			return reply, true
		}
		if strings.TrimSpace(code) != "" && !strings.HasPrefix(strings.TrimSpace(code), "{") {
			return Found{Code: code}, true
		}
	}
	if bareSource(text) {
		return Found{Code: text}, true
	}
	return Found{}, false
}

// fromJSON reads {"code": ..., "notes": ..., "solver_shape": ...} and the declared interface; only code must be right.
func fromJSON(text string) (Found, bool) {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "{") {
		return Found{}, false
	}
	var p struct {
		Code        json.RawMessage `json:"code"`
		Notes       json.RawMessage `json:"notes"`
		SolverShape json.RawMessage `json:"solver_shape"`
		agent.Declaration
	}
	if json.Unmarshal([]byte(text), &p) != nil {
		return Found{}, false
	}
	var reply Found
	if json.Unmarshal(p.Code, &reply.Code) != nil || strings.TrimSpace(reply.Code) == "" {
		return Found{}, false
	}
	if strings.HasPrefix(strings.TrimSpace(reply.Code), "```") {
		if code, ok := fenced(reply.Code); ok {
			reply.Code = code
		}
	}
	if strings.TrimSpace(reply.Code) == "" {
		return Found{}, false
	}
	_ = json.Unmarshal(p.Notes, &reply.Notes) // decoration: of another type, it is left out
	if size := len(p.Summary) + len(p.Parameters) + len(p.Returns); size <= 2*agent.MaxInterfaceBytes {
		reply.Declaration = p.Declaration
	}
	var shape map[string]any
	if len(p.SolverShape) <= 16<<10 && json.Unmarshal(p.SolverShape, &shape) == nil && shape != nil {
		reply.SolverShape = p.SolverShape
	}
	return reply, true
}

// fenced returns the first fenced block that is Go, by its tag or its package clause, else the first one. A block that
// is never closed reaches to the end.
func fenced(text string) (string, bool) {
	first, found := "", false
	lines := strings.SplitAfter(text, "\n")
	for i := 0; i < len(lines); i++ {
		line := strings.TrimSpace(lines[i])
		if !strings.HasPrefix(line, "```") {
			continue
		}
		fence := line[:len(line)-len(strings.TrimLeft(line, "`"))]
		tag := strings.ToLower(strings.TrimSpace(strings.TrimLeft(line, "`")))
		end := i + 1
		for end < len(lines) && strings.TrimSpace(lines[end]) != fence {
			end++
		}
		code := strings.Join(lines[i+1:min(end, len(lines))], "")
		if tag == "go" || tag == "golang" || bareSource(code) {
			return code, true
		}
		if !found {
			first, found = code, true
		}
		i = end
	}
	return first, found
}

// bareSource reports whether the text is a Go file on the face of it: comments, then a package clause.
func bareSource(text string) bool {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "//") {
			continue
		}
		return strings.HasPrefix(line, "package ")
	}
	return false
}

// withoutThoughts drops the reasoning that some servers leave in the text.
func withoutThoughts(text string) string {
	trimmed := strings.TrimSpace(text)
	if strings.HasPrefix(trimmed, "<think>") {
		if _, after, ok := strings.Cut(trimmed, "</think>"); ok {
			return after
		}
	}
	return text
}

func contentOf(m openai.ChatCompletionMessage) string {
	if len(m.MultiContent) == 0 {
		return m.Content
	}
	var b strings.Builder
	for _, part := range m.MultiContent {
		b.WriteString(part.Text)
	}
	return b.String()
}
