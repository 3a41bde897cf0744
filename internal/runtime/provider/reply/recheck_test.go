package reply_test

import (
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/provider/reply"
)

// Unchanged keeps the program, in every form in which a model calls the tool, if that was allowed and nothing could be
// a program. Otherwise the reply has no program, and the message explains that.
func TestUnchanged(t *testing.T) {
	t.Parallel()
	for _, args := range []string{`{"unchanged": true}`, `{"unchanged": "true"}`, `{"unchanged": true, "code": ""}`,
		`{"unchanged": true, "code": "// as before", "summary": "adds"}`,
		`{"arguments": {"unchanged": true}}`, `"{\"unchanged\": true}"`, `{'unchanged': True}`,
		`{"code": null, "unchanged": true}`} {
		got, err := reply.Recheck(toolCall("submit_program", args))
		if err != nil || !got.Unchanged || got.Code != "" || got.Form != reply.FormTool {
			t.Errorf("%s: %+v, %v", args, got, err)
		}
		if got, err := reply.Program(toolCall("submit_program",
			args)); err == nil && !strings.Contains(args, "as before") {
			t.Errorf("%s where no program is shown: %+v", args, got)
		}
	}
	for _, text := range []string{`{"unchanged": true}`, "It does.\n```json\n{\"unchanged\": true}\n```",
		`submit_program(unchanged=True)`,
		`<tool_call>{"name": "submit_program", "arguments": {"unchanged": true}}</tool_call>`,
		"<think>is it {\"unchanged\": false}?</think>\n{\"unchanged\": true}",
		"<tool_call>\n<function=submit_program>\n<parameter=unchanged>\ntrue\n</parameter>\n</function>\n</tool_call>"} {
		got, err := reply.Recheck(message(text))
		if err != nil || !got.Unchanged || got.Code != "" {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	_, err := reply.Program(toolCall("submit_program", `{"unchanged": true}`))
	if err == nil || !strings.Contains(err.Error(), "no program that could be kept") {
		t.Errorf("the message is %v", err)
	}
}

// A whole program has precedence over unchanged, wherever it is in the reply. Other values than true keep nothing.
func TestNotUnchanged(t *testing.T) {
	t.Parallel()
	for _, read := range []string{`{"unchanged": true, "code": ` + quote(plain) + `}`,
		`{"unchanged": false, "code": ` + quote(plain) + `}`} {
		got, err := reply.Recheck(toolCall("submit_program", read))
		if err != nil || got.Unchanged || !sameProgram(got.Code, plain) {
			t.Errorf("%s: %+v, %v", read, got, err)
		}
	}
	got, err := reply.Recheck(message("With {\"unchanged\": true} it would stay wrong.\n```go\n" + plain + "```\n"))
	if err != nil || got.Unchanged || !sameProgram(got.Code, plain) {
		t.Errorf("a program in a fence: %+v, %v", got, err)
	}
	for _, nothing := range []string{`{"unchanged": false}`, `{"unchanged": null}`, `{"unchanged": "no"}`,
		`{"unchanged": 1}`, `{}`} {
		if got, err := reply.Recheck(toolCall("submit_program", nothing)); err == nil {
			t.Errorf("%s: %+v", nothing, got)
		}
	}
	if got, err := reply.Recheck(message(`<think>{"unchanged": true}`)); err == nil {
		t.Errorf("within thoughts: %+v", got)
	}
}
