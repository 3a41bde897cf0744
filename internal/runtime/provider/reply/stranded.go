package reply

import (
	"strings"

	openai "github.com/sashabaranov/go-openai"
)

// stranded returns the program of a reply whose whole answer the server took for thoughts: the model began without
// thinking, or called the tool before it ended its thoughts (SGLang, vLLM, LM Studio). A program in thoughts is a draft
// until it is submitted, so only two forms are unambiguous: a call of the tool as their last part, and a program with
// nothing around it. The thoughts must not contain any other trace of a program or of a mark.
func stranded(choice openai.ChatCompletionChoice) (candidate, bool) {
	m := choice.Message
	thoughts := m.ReasoningContent
	if strings.TrimSpace(contentOf(m)) != "" || len(m.ToolCalls) > 0 || m.Refusal != "" ||
		choice.FinishReason != openai.FinishReasonStop || len(thoughts) > maxText {
		return candidate{}, false
	}
	a := newFinder(len(thoughts)).read(thoughts, 0)
	if len(a.candidates) != 1 || a.start > 0 || a.implied || a.thoughts.now || a.begun >= 0 {
		return candidate{}, false
	}
	c := a.candidates[0]
	if c.name != "" && !isSubmit(c.name) {
		return candidate{}, false // a call of another tool
	}
	submitted := c.args != nil && (c.name != "" || c.marked)
	alone := strings.TrimSpace(thoughts[:c.at]) == ""
	last := onlyMarks().MatchString(strings.Trim(thoughts[c.end:], " \t\r\n`~"))
	return c, c.rank == rankWhole && !c.open && !c.twice && last && (submitted || alone)
}
