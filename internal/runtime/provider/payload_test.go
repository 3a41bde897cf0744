package provider

import (
	"strings"
	"testing"

	openai "github.com/sashabaranov/go-openai"
)

// Whatever a model sends, a program that is taken from it is never blank.
func FuzzReadProgram(f *testing.F) {
	for _, s := range []string{"```go\npackage tool\n```", `{"code":"package tool"}`, "package tool", "<think>x</think>{}", "```json\n{\"code\":1}\n```", "````\n```\n````"} {
		f.Add(s, s, "submit_program")
	}
	f.Fuzz(func(t *testing.T, content, arguments, name string) {
		m := openai.ChatCompletionMessage{Content: content, ToolCalls: []openai.ToolCall{{Function: openai.FunctionCall{Name: name, Arguments: arguments}}}}
		reply, reason := readProgram(openai.ChatCompletionResponse{Choices: []openai.ChatCompletionChoice{{Message: m}}})
		if (reason == "") != (strings.TrimSpace(reply.Code) != "") {
			t.Fatalf("got %q with reason %q", reply.Code, reason)
		}
	})
}
