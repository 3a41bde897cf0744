package provider

import (
	"encoding/json"
	"slices"
	"strings"

	openai "github.com/sashabaranov/go-openai"

	"github.com/recurgentd/recurgentd/internal/runtime/provider/reply"
)

// A question is what one operation asks of a model. A way determines how it is asked.
type question struct {
	operation, model, trace string
	charge                  Charge
	messages                []Message
	tool                    bool            // the answer must be a call of submit_program
	keep                    bool            // the call may state that the program is kept
	schema                  json.RawMessage // the answer must be JSON of this schema; nil means text
}

// body returns the body of the request, and the most tokens that its reply may have. The server receives exactly these
// bytes. The client library is bypassed, because it rejects parameters that it believes some models lack.
func (q *question) body(w way) (body []byte, most int) {
	r := openai.ChatCompletionRequest{Model: q.model, Messages: messages(q.messages, w.merged)}
	most = w.room(q)
	if w.field != fieldOld && w.field != fieldNone {
		r.MaxCompletionTokens = most
	}
	if w.field != fieldNew && w.field != fieldNone {
		//lint:ignore SA1019 deprecated by OpenAI; what other servers read
		r.MaxTokens = most
	}
	if q.tool && w.tools != toolsNone {
		r.Tools = []openai.Tool{submitProgram(w.plain, q.keep)}
		r.ToolChoice = w.tools.choice()
	}
	if len(q.schema) > 0 && !w.text {
		r.ResponseFormat = &openai.ChatCompletionResponseFormat{Type: openai.ChatCompletionResponseFormatTypeJSONSchema,
			JSONSchema: &openai.ChatCompletionResponseFormatJSONSchema{Name: "reply", Schema: q.schema}}
	}
	if w.stream {
		r.Stream = true
		if !w.uncounted {
			r.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
		}
	}
	body, err := json.Marshal(r)
	if err != nil {
		panic("provider: " + err.Error()) // strings, numbers, and a schema that was decoded before
	}
	return body, most
}

// tokens returns a high estimate of the conversation's tokens: a token of Go and English has three bytes or more.
func (q *question) tokens() int {
	n := 0
	for _, m := range q.messages {
		n += len(m.Content)
	}
	if q.tool {
		n += len(submitParameters)
	}
	return n/3 + 16
}

// messages converts the conversation. If merged, the system's text is prepended to the first message of the user.
func messages(in []Message, merged bool) []openai.ChatCompletionMessage {
	if i := slices.IndexFunc(in, func(m Message) bool { return m.Role == "user" }); merged && i >= 0 {
		var texts []string
		var rest []Message
		for j, m := range in {
			switch {
			case m.Role == "system":
				texts = append(texts, m.Content)
			case j == i:
				rest = append(rest, Message{m.Role, strings.Join(append(texts, m.Content), "\n\n")})
			default:
				rest = append(rest, m)
			}
		}
		in = rest
	}
	out := make([]openai.ChatCompletionMessage, len(in))
	for i, m := range in {
		out[i] = openai.ChatCompletionMessage{Role: m.Role, Content: m.Content}
	}
	return out
}

// The schemas of submit_program's arguments. Every node has one explicit type, because servers refuse untyped nodes.
// The short schema is for servers that also refuse objects without members.
const (
	submitParameters = `{"type":"object","required":["code"],"properties":{` +
		`"code":{"type":"string"},"summary":{"type":"string"},` +
		`"parameters":{"type":"array","items":{"type":"object","required":["name","type","required"],"properties":{` +
		`"name":{"type":"string"},"type":{"type":"string","enum":["string","number","integer","boolean","array","object","file","any"]},"description":{"type":"string"},` +
		`"required":{"type":"boolean"},"default":{"type":"string","description":"as JSON"},"schema":{"type":"object"}}}},` +
		`"returns":{"type":"object"},"notes":{"type":"string"},` +
		`"solver_shape":{"type":"object","description":"optional: stance (do, shape, forge, orchestrate), capability_summary, reuse_basis, contract_intent"}}}`
	submitShort = `{"type":"object","required":["code"],"properties":{"code":{"type":"string"},"summary":{"type":"string"},` +
		`"parameters":{"type":"array","items":{"type":"object","required":["name","type","required"],"properties":{` +
		`"name":{"type":"string"},"type":{"type":"string"},"description":{"type":"string"},"required":{"type":"boolean"}}}},"notes":{"type":"string"}}}`
)

// submitProgram returns the definition of the tool. With keep, the call may state that the program is kept.
func submitProgram(short, keep bool) openai.Tool {
	parameters, description := submitParameters, "Submit the complete Go source of the method."
	if short {
		parameters = submitShort
	}
	if keep {
		description = "Submit the complete Go source of the method, or unchanged: true where its program is kept."
		parameters = strings.Replace(parameters, `"required":["code"],"properties":{`,
			`"properties":{"unchanged":{"type":"boolean","description":"true: the program is kept; then without code"},`, 1)
	}
	return openai.Tool{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{Name: reply.SubmitName,
		Description: description, Parameters: json.RawMessage(parameters)}}
}
