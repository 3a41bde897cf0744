package reply

import (
	"fmt"
	"math/bits"
	"strings"

	openai "github.com/sashabaranov/go-openai"
)

// Program returns the program in a completion. The error is an *Unusable.
//
// Calls of the tool come first: the last call with a whole program counts, or else the last with code. If there is
// none, the text is searched after the last mark that ends thoughts: the last whole program counts, or else the last of
// those that are most nearly one. If there is no text at all, the server may have taken the answer for thoughts, which
// are searched then.
func Program(r openai.ChatCompletionResponse) (Found, error) { return found(r, false) }

// Recheck is Program for a request that also allows the answer unchanged: true, which counts if nothing could be a
// program.
func Recheck(r openai.ChatCompletionResponse) (Found, error) { return found(r, true) }

func found(r openai.ChatCompletionResponse, keep bool) (Found, error) {
	if len(r.Choices) == 0 {
		return Found{}, &Unusable{Message: "the model's reply has no choices"}
	}
	m, cut := r.Choices[0].Message, isCut(r.Choices[0].FinishReason)
	said := contentOf(m)
	if len(said) > maxText {
		return Found{}, &Unusable{Message: fmt.Sprintf(
			"the model's reply has %d bytes of text; at most %d are searched for a program", len(said), maxText)}
	}
	read := readMessage(m, said, keep)
	c, ok := chosen(read, cut)
	if !ok {
		c, ok = stranded(r.Choices[0])
	}
	switch {
	case ok && c.twice:
		return Found{}, &Unusable{Message: "the model's call gives code twice, and differently: it must call submit_program once, with one code", Said: said}
	case ok && (c.rank == rankWhole || !cut && !c.lost()):
		return c.found(), nil
	case cut:
		return Found{}, &Unusable{Cut: true, Message: cutMessage(r, read), Said: read.answer(said)}
	}
	return Found{}, &Unusable{Message: reason(r.Choices[0], read, c, ok), Said: read.answer(said)}
}

// An inMessage is the result of reading a message: the candidates in its text and in its calls.
type inMessage struct {
	answered
	calls []candidate
	kept  bool // the message states that the program is kept
}

// readMessage searches the text and the calls of a message. One budget of work covers both.
func readMessage(m openai.ChatCompletionMessage, said string, keep bool) inMessage {
	size := len(said)
	for _, c := range m.ToolCalls {
		size += len(c.Function.Arguments)
	}
	f := newFinder(size)
	f.keep = keep
	out := inMessage{answered: f.read(said, 0)}
	// Calls of other tools count if there is none of submit_program: a wrong name does not justify paying for a second
	// reply.
	for _, exact := range []bool{true, false} {
		for _, c := range m.ToolCalls {
			if isSubmit(c.Function.Name) == exact && len(out.calls) < maxCandidates {
				for _, p := range f.programsOfText(text{raw: c.Function.Arguments, value: c.Function.Arguments,
					style: styleRaw}, c.Function.Name, 0) {
					p.form = FormTool
					out.calls = append(out.calls, p)
				}
			}
		}
		if len(out.calls) > 0 {
			break
		}
	}
	out.kept = f.kept
	return out
}

// chosen returns the candidate that counts.
func chosen(m inMessage, cut bool) (candidate, bool) {
	if c, ok := best(m.calls); ok {
		return c, true
	}
	if cut && m.implied {
		return candidate{}, false
	}
	c, ok := best(m.candidates)
	if !ok || cut && m.begun > c.at { // a later version of the program had begun
		return candidate{}, false
	}
	return joined(c, m.candidates), true
}

// lost reports whether a call breaks off within its code.
func (c *candidate) lost() bool { return c.open && c.form != FormFence }

func isCut(r openai.FinishReason) bool { return r == openai.FinishReasonLength }

// answer returns the text after the thoughts.
func (a answered) answer(s string) string {
	if a.thoughts.now {
		return ""
	}
	return strings.TrimSpace(s[a.start:])
}

// reason explains to the model why its reply holds no program.
func reason(choice openai.ChatCompletionChoice, read inMessage, c candidate, ok bool) string {
	m, finish := choice.Message, choice.FinishReason
	switch {
	case ok && c.lost():
		return "the model's call ends in the middle of its code: send the whole program, and raise --max-completion-tokens if this comes again"
	case m.Refusal != "":
		return "the model refused: " + m.Refusal
	case read.kept:
		return "the model's reply says unchanged, and there is no program that could be kept: it must send the whole program as code"
	case finish == openai.FinishReasonContentFilter:
		return "the content filter of the model's server ended the reply"
	case read.thoughts.now:
		return "the model's reply consists of thoughts that never end: the program must come after them"
	case len(m.ToolCalls) > 0:
		return "the model called a tool without usable code"
	case read.answer(contentOf(m)) == "" && m.ReasoningContent != "":
		return "the model's reply consists of thoughts: the program must come after them"
	case read.answer(contentOf(m)) == "" && finish != "" && finish != openai.FinishReasonStop:
		return fmt.Sprintf("the model's reply is empty (finish_reason %.60s)", finish)
	case read.answer(contentOf(m)) == "":
		return "the model's reply is empty"
	}
	return "the model's reply holds no program: it must call submit_program, or send a JSON object with code, or a fenced block of Go"
}

// cutMessage describes the limit that cut a reply off, if it is known, and the settings that raise it.
func cutMessage(r openai.ChatCompletionResponse, read inMessage) string {
	what := "before the program was complete"
	if m := r.Choices[0].Message; read.thoughts.now || m.ReasoningContent != "" && contentOf(m) == "" &&
		len(m.ToolCalls) == 0 {
		what = "in the model's thoughts, before the program began"
	}
	used, total := r.Usage.CompletionTokens, r.Usage.PromptTokens+r.Usage.CompletionTokens
	limit := "its limit of tokens"
	if used > 0 {
		limit = fmt.Sprintf("%s, after %d", limit, used)
	}
	advice := "raise --max-completion-tokens, and the context of the model's server if it is smaller (Ollama: OLLAMA_CONTEXT_LENGTH, vLLM: --max-model-len, llama.cpp: -c)"
	if isContext(total) {
		advice = fmt.Sprintf("prompt and reply together have %d tokens, which seems to be the context of the model's server: raise it (Ollama: OLLAMA_CONTEXT_LENGTH, vLLM: --max-model-len, llama.cpp: -c); if it is larger, raise --max-completion-tokens", total)
	}
	return fmt.Sprintf("the model's reply was cut off at %s, %s: %s", limit, what, advice)
}

// isContext reports whether a number of tokens is within 2 of a power of two, as the contexts of servers are.
func isContext(tokens int) bool {
	if tokens < 1000 || tokens > 1<<20 {
		return false
	}
	up := 1 << bits.Len(uint(tokens-1))
	return up-tokens <= 2 || tokens-up/2 <= 2
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
