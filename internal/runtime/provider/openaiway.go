package provider

import (
	"net/url"
	"strings"

	openai "github.com/sashabaranov/go-openai"

	"github.com/recurgentd/recurgentd/internal/runtime/provider/reply"
)

// A way is how a question is put to a server: with what the server is taken to have.
type way struct {
	tools  toolsWay
	plain  bool // the tool in its short form
	merged bool // the system's text in the user's message

	field   fieldWay
	tried   bool // the other name was refused, too
	limit   int  // tokens of a reply, at most
	context int  // tokens that the model holds, prompt and reply together; 0: unknown
	prompt  int  // tokens of this question's prompt as the server counted them; 0: unknown
	half    int  // times that the reply's part of the context was halved for this question

	stream    bool // asks for a stream, which is joined
	flipped   bool // a stream was refused, or demanded, within this question
	uncounted bool // a stream without its usage
	text      bool // does not ask for JSON by response_format
}

// toolsWay is how the model is made to call the tool.
type toolsWay int

const (
	toolsNamed    toolsWay = iota // by its name
	toolsRequired                 // by the word, which means the same where there is one tool
	toolsAuto                     // the model decides
	toolsNone                     // there is none: the program comes as text
)

func (t toolsWay) choice() any {
	switch t {
	case toolsNamed:
		return openai.ToolChoice{Type: openai.ToolTypeFunction, Function: openai.ToolFunction{Name: reply.SubmitName}}
	case toolsRequired:
		return "required"
	}
	return nil // auto, to every server; some refuse the word
}

func (t toolsWay) String() string {
	return [...]string{"forced", "forced", "auto", "none"}[t]
}

// fieldWay is what bounds a reply. OpenAI and newer servers read max_completion_tokens; many others read only max_tokens and ignore the
// first name, so that they get both, until one refuses that.
type fieldWay int

const (
	fieldBoth fieldWay = iota
	fieldNew
	fieldOld
	fieldNone
)

// Names of the field.
const (
	newField = "max_completion_tokens"
	oldField = "max_tokens"
)

func (f fieldWay) String() string {
	return [...]string{"both", newField, oldField, "none"}[f]
}

// leastReply is where a limit is not lowered any further: a shorter reply holds no program.
const leastReply = 256

// room is how many tokens the reply may have: the limit, and no more than the prompt leaves of the context.
func (w way) room(q *question) int {
	most := w.limit
	if w.context > 0 {
		prompt := w.prompt
		if prompt == 0 {
			prompt = q.tokens()
		}
		most = min(most, max(w.context-prompt, leastReply))
	}
	return max(most>>w.half, 1)
}

// plainest is the way that needs the least of a server.
func (w way) plainest() way {
	w.tools, w.merged, w.text = toolsNone, true, true
	if w.field == fieldBoth {
		w.field = fieldOld
	}
	return w
}

// firstWay is how a model is asked before anything was learned of it.
func (p *OpenAI) firstWay(model string) way {
	w := way{limit: p.opts.MaxCompletion, context: p.opts.Context}
	if newNameOnly(p.opts.BaseURL, model) {
		w.field = fieldNew
	}
	return w
}

// newNameOnly reports whether the server or the model is known to refuse max_tokens together with the newer name.
func newNameOnly(baseURL, model string) bool {
	u, err := url.Parse(baseURL)
	if baseURL == "" || err == nil && (strings.HasSuffix(u.Hostname(), "openai.com") ||
		strings.HasSuffix(u.Hostname(), "azure.com")) {
		return true
	}
	for _, prefix := range []string{"o1", "o3", "o4", "gpt-5", "gpt-6"} {
		if strings.HasPrefix(model, prefix) {
			return true
		}
	}
	return false
}
