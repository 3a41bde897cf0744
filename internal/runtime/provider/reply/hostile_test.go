package reply_test

import (
	"encoding/json"
	"strings"
	"testing"

	openai "github.com/sashabaranov/go-openai"

	"github.com/recurgentd/recurgentd/internal/runtime/provider/reply"
)

// Replies crafted to be searched over and over cost about as much as others of their length. These took minutes before.
func TestHostileReplies(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	marks := strings.Repeat("<think></think>", size/15) + "seven"
	r := openai.ChatCompletionResponse{Choices: []openai.ChatCompletionChoice{{Message: openai.ChatCompletionMessage{Content: marks}}}}
	if got, err := reply.Text(r); err != nil || strings.TrimSpace(got) != "seven" {
		t.Errorf("of thoughts in one line: %.80q, %v", got, err)
	}
	parts := `{"a": ` + strings.Repeat(`"x" + `, size/6) + `"x"}`
	if all := reply.Objects(parts); len(all) != 1 || len(all[0]["a"]) != size/6+3 {
		t.Errorf("of a text in parts: %d objects", len(all))
	}
}

// A program that is too long to be parsed is left whole: no part of it is taken for another program, because what
// precedes a part may change its meaning.
func TestLongProgramIsLeftWhole(t *testing.T) {
	t.Parallel()
	long := "package tool\n\nimport \"recurgent\"\n\nfunc len(any) int { return 7 }\n" +
		strings.Repeat("// padding padding padding\n", 20000) +
		"\nfunc Run(call *recurgent.Call) (any, error) { return len(\"a\"), nil }\n"
	arguments, err := json.Marshal(map[string]string{"code": long})
	if err != nil {
		t.Fatal(err)
	}
	call := openai.ToolCall{Function: openai.FunctionCall{Name: reply.SubmitName, Arguments: string(arguments)}}
	for name, m := range map[string]openai.ChatCompletionMessage{
		"call": {ToolCalls: []openai.ToolCall{call}}, "fence": {Content: "Here it is.\n```go\n" + long + "```\n"},
		"text": {Content: long}, "prose": {Content: "Here it is.\n\n" + long},
	} {
		got, err := reply.Program(openai.ChatCompletionResponse{Choices: []openai.ChatCompletionChoice{{Message: m}}})
		if err != nil || strings.TrimSpace(got.Code) != strings.TrimSpace(long) {
			t.Errorf("%s: %d bytes of %d, %v", name, len(got.Code), len(long), err)
		}
	}
}
