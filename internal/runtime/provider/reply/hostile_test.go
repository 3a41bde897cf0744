package reply_test

import (
	"strings"
	"testing"

	openai "github.com/sashabaranov/go-openai"

	"github.com/recurgentd/recurgentd/internal/runtime/provider/reply"
)

// Replies that were made to be looked through again and again cost about what others of their length cost: these took minutes.
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
