package provider

import (
	"net/url"
	"strings"

	openai "github.com/sashabaranov/go-openai"

	"github.com/recurgentd/recurgentd/internal/runtime/provider/reply"
)

// A way determines how a question is put to a server: which features the request uses.
type way struct {
	tools  toolsWay
	plain  bool // use the tool's short schema
	merged bool // put the system's text into the user's message

	field   fieldWay
	tried   bool // the other name was refused, too
	limit   int  // most tokens of a reply
	context int  // tokens of the model's context, prompt and reply together; 0 means unknown
	prompt  int  // tokens of this question's prompt as counted by the server; 0 means unknown
	half    int  // how often the reply's part of the context was halved for this question

	stream    bool // ask for a stream, which is joined
	flipped   bool // a stream was refused or demanded for this question
	uncounted bool // ask for a stream without usage
	text      bool // do not ask for JSON by response_format
}

// toolsWay determines how the model is made to call the tool.
type toolsWay int

const (
	toolsNamed    toolsWay = iota // require it by name
	toolsRequired                 // require any tool, which means the same with a single tool
	toolsAuto                     // the model decides
	toolsNone                     // no tool: the program comes as text
)

// choice returns the request's tool_choice, or nil to omit it.
func (t toolsWay) choice() any {
	switch t {
	case toolsNamed:
		return openai.ToolChoice{Type: openai.ToolTypeFunction, Function: openai.ToolFunction{Name: reply.SubmitName}}
	case toolsRequired:
		return "required"
	}
	return nil // servers default to auto, and some refuse the word
}

func (t toolsWay) String() string {
	return [...]string{"forced", "forced", "auto", "none"}[t]
}

// fieldWay selects the parameters that limit a reply. OpenAI and newer servers read max_completion_tokens. Many others
// read only max_tokens and ignore the first, so both are sent until a server refuses that.
type fieldWay int

const (
	fieldBoth fieldWay = iota
	fieldNew
	fieldOld
	fieldNone
)

// Names of the parameters that limit a reply.
const (
	newField = "max_completion_tokens"
	oldField = "max_tokens"
)

func (f fieldWay) String() string {
	return [...]string{"both", newField, oldField, "none"}[f]
}

// leastReply is the lowest limit of a reply, in tokens. A shorter reply cannot hold a program.
const leastReply = 256

// room returns how many tokens the reply may have: the limit, but not more than the prompt leaves of the context.
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

// plainest returns the way that demands the least of a server.
func (w way) plainest() way {
	w.tools, w.merged, w.text = toolsNone, true, true
	if w.field == fieldBoth {
		w.field = fieldOld
	}
	return w
}

// firstWay returns the way in which a model is asked before anything is learned of it.
func (p *OpenAI) firstWay(model string) way {
	w := way{limit: p.opts.MaxCompletion, context: p.opts.Context}
	if newNameOnly(p.opts.BaseURL, model) {
		w.field = fieldNew
	}
	return w
}

// newNameOnly reports whether the server or the model is known to refuse max_tokens in addition to the newer name.
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
