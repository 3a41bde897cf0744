package reply

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	openai "github.com/sashabaranov/go-openai"
)

// A completion collects a reply, from one document or from the parts of a stream.
type completion struct {
	id, model, finish          string
	content, thoughts, refusal strings.Builder
	calls                      []*toolCall
	usage                      map[string]int64
	seen                       bool // part of a reply was recognized
	whole                      int  // number of messages that came whole, not in parts
}

// A toolCall collects the parts of a call, which are matched by index or id.
type toolCall struct {
	index, id, name string
	arguments       strings.Builder
}

// has reports whether any content of the reply has arrived.
func (c *completion) has() bool {
	return c.content.Len() > 0 || c.thoughts.Len() > 0 || len(c.calls) > 0
}

// marshal encodes the completion in OpenAI's format.
func (c *completion) marshal() ([]byte, error) {
	m := openai.ChatCompletionMessage{Role: "assistant", Content: c.content.String(),
		ReasoningContent: c.thoughts.String(), Refusal: c.refusal.String()}
	for i, call := range c.calls {
		m.ToolCalls = append(m.ToolCalls, openai.ToolCall{ID: "call_" + strconv.Itoa(i), Type: openai.ToolTypeFunction,
			Function: openai.FunctionCall{Name: call.name, Arguments: call.arguments.String()}})
	}
	r := openai.ChatCompletionResponse{ID: c.id, Object: "chat.completion", Model: c.model, Usage: c.reported()}
	if c.seen {
		r.Choices = []openai.ChatCompletionChoice{{Message: m, FinishReason: openai.FinishReason(c.finish)}}
	}
	return json.Marshal(r)
}

// Keys of completion.usage.
const (
	usedPrompt     = "prompt"
	usedCompletion = "completion"
	usedCached     = "cached"
	usedThoughts   = "thoughts"
)

// counted maps usage keys to the paths under which servers report them.
var counted = map[string][]string{
	usedPrompt: {"prompt_tokens", "input_tokens", "promptTokenCount", "prompt_eval_count", "promptTokens",
		"tokens.input_tokens", "inputTokens"},
	usedCompletion: {"completion_tokens", "output_tokens", "candidatesTokenCount", "eval_count", "completionTokens",
		"tokens.output_tokens", "outputTokens"},
	usedCached: {"prompt_tokens_details.cached_tokens", "input_tokens_details.cached_tokens",
		"cache_read_input_tokens", "prompt_cache_hit_tokens", "cachedContentTokenCount"},
	usedThoughts: {"completion_tokens_details.reasoning_tokens", "output_tokens_details.reasoning_tokens",
		"thoughtsTokenCount"},
}

// count adds the figures of a usage object. A stream may report them in several parts; the largest count.
func (c *completion) count(v any) {
	o, ok := v.(*object)
	if !ok {
		return
	}
	if c.usage == nil {
		c.usage = map[string]int64{}
	}
	for name, paths := range counted {
		for _, path := range paths {
			if n, ok := tokens(at(o, path)); ok {
				if had, before := c.usage[name]; !before || n > had {
					c.usage[name] = n
				}
				break
			}
		}
	}
	if n, ok := tokens(o.get("thoughtsTokenCount")); ok { // Gemini counts thoughts in addition to the answer
		answer, _ := tokens(o.get("candidatesTokenCount"))
		c.usage[usedCompletion] = max(c.usage[usedCompletion], answer+n)
	}
}

// at returns the value at a dotted path, or nil.
func at(o *object, path string) any {
	for {
		key, rest, more := strings.Cut(path, ".")
		v := o.get(key)
		if !more {
			return v
		}
		o, _ = v.(*object)
		path = rest
	}
}

// maxTokens bounds a reported figure.
const maxTokens = 1 << 40

// tokens parses a count from a number or a numeric string. A negative count becomes -1, which the caller rejects as
// implausible.
func tokens(v any) (int64, bool) {
	var s string
	switch v := v.(type) {
	case json.Number:
		s = v.String()
	case text:
		s = strings.TrimSpace(v.value)
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !math.IsInf(f, 0) || math.IsNaN(f) {
		return 0, false
	}
	return int64(min(max(f, -1), maxTokens)), true
}

func (c *completion) reported() openai.Usage {
	u := openai.Usage{PromptTokens: int(c.usage[usedPrompt]), CompletionTokens: int(c.usage[usedCompletion])}
	u.TotalTokens = u.PromptTokens + u.CompletionTokens
	if n := c.usage[usedCached]; n > 0 {
		u.PromptTokensDetails = &openai.PromptTokensDetails{CachedTokens: int(n)}
	}
	if n := c.usage[usedThoughts]; n > 0 {
		u.CompletionTokensDetails = &openai.CompletionTokensDetails{ReasoningTokens: int(n)}
	}
	return u
}

// finished records why the reply ended, converted to OpenAI's terms if it has other words for the same.
func (c *completion) finished(v any) {
	if o, ok := v.(*object); ok {
		v = o.get("type")
	}
	word := textOf(v)
	if word == "" || word == "null" {
		return
	}
	c.seen = true
	lower := strings.ToLower(word)
	for _, of := range []struct{ means, words string }{
		{"length", "length|max_token|maxtoken|max_output|max_completion|token_limit|context_window|max_new"},
		{"content_filter", "content_filter|safety|recitation|blocklist|prohibited|sensitive|spii|refusal"},
	} {
		for w := range strings.SplitSeq(of.words, "|") {
			if strings.Contains(lower, w) {
				c.finish = of.means
				return
			}
		}
	}
	c.finish = lower
}

// call returns the call to which a part belongs, by index or else by id. A part with neither continues the last call,
// unless it names a tool.
func (c *completion) call(index, id, name string) *toolCall {
	for _, have := range c.calls {
		sameIndex := index != "" && have.index == index
		sameID := id != "" && have.id == id
		if sameID || sameIndex && (id == "" || have.id == "" || name == "") {
			return have
		}
	}
	if n := len(c.calls); index == "" && id == "" && name == "" && n > 0 {
		return c.calls[n-1]
	}
	call := &toolCall{index: index, id: id}
	if len(c.calls) < maxCandidates {
		c.calls = append(c.calls, call)
	}
	return call
}

// add adds a part of a call.
func (t *toolCall) add(id, name string, arguments any) {
	if t.id == "" {
		t.id = id
	}
	if t.name == "" {
		t.name = name
	}
	switch v := arguments.(type) {
	case nil:
	case text:
		t.arguments.WriteString(v.value)
	default:
		t.arguments.Reset()
		t.arguments.Write(encode(v))
	}
}

// scalar returns a string, or a number as a string, and "" for anything else.
func scalar(v any) string {
	switch v := v.(type) {
	case text:
		return v.value
	case json.Number:
		return v.String()
	}
	return ""
}
