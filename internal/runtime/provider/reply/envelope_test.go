package reply_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	openai "github.com/sashabaranov/go-openai"

	"github.com/recurgentd/recurgentd/internal/runtime/provider/reply"
)

func canonical(t *testing.T, body string) (openai.ChatCompletionResponse, error) {
	t.Helper()
	var r openai.ChatCompletionResponse
	raw, err := reply.Canonical([]byte(body))
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Fatalf("go-openai cannot read %s: %v", raw, err)
	}
	return r, nil
}

// events writes documents as server-sent events.
func events(docs ...string) string {
	var b strings.Builder
	for _, d := range docs {
		b.WriteString("data: " + d + "\n\n")
	}
	return b.String()
}

func chunk(delta, finish string) string {
	return fmt.Sprintf(`{"id":"c","object":"chat.completion.chunk","created":1.5,"model":"m","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`, delta, finish)
}

const callArgs = `{\"code\":\"x\"}`

// A reply is read in whatever format a server sends it.
func TestShapes(t *testing.T) {
	t.Parallel()
	choice := func(message string) string {
		return `{"choices":[{"message":` + message +
			`,"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":5}}`
	}
	call := func(calls string) string {
		return choice(`{"role":"assistant","content":null,"tool_calls":` + calls + `}`)
	}
	const content, tool = "hello", `{"code":"x"}`
	tests := []struct {
		name, body        string
		content, thoughts string
		arguments         string // of the call
		finish            string
		prompt            int
	}{
		{"by the book", choice(`{"role":"assistant","content":"hello"}`), content, "", "", "stop", 10},
		{"fields of other types",
			`{"id":7,"object":5,"created":1748694614.85,"model":"m","system_fingerprint":{},"choices":[{"index":"0","logprobs":[],"message":{"role":null,"content":"hello","annotations":5,"audio":false},"finish_reason":"stop","stop_reason":null}],"usage":{"prompt_tokens":10.0,"completion_tokens":"5","total_tokens":null,"prompt_tokens_details":null},"service_tier":[]}`, content, "", "", "stop", 10},
		{"created as a text", strings.Replace(choice(`{"content":"hello"}`), `{`, `{"created":"2025/05/16 16:29:57",`,
			1), content, "", "", "stop", 10},
		{"numbers that JSON does not have",
			`{"choices":[{"message":{"content":"hello"},"logprobs":{"content":[{"logprob":-Infinity},{"logprob":NaN}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":10}}`, content, "", "", "stop", 10},
		{"huge usage", `{"choices":[{"message":{"content":"hello"}}],"usage":{"prompt_tokens":1e300,"completion_tokens":-5}}`, content, "", "", "", 1 << 40},
		{"no usage", `{"choices":[{"message":{"content":"hello"}}],"usage":null}`, content, "", "", "", 0},
		{"one choice, not a list", `{"choices":{"message":{"content":"hello"}}}`, content, "", "", "", 0},
		{"a byte order mark", "\ufeff" + choice(`{"content":"hello"}`), content, "", "", "stop", 10},
		{"keepalives before it", "\n\n   \r\n" + choice(`{"content":"hello"}`), content, "", "", "stop", 10},
		{"comments before it", ": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n" + choice(`{"content":"hello"}`),
			content, "", "", "stop", 10},
		{"content in parts", choice(`{"content":[{"type":"text","text":"hel"},{"type":"text","text":"lo"}]}`), content,
			"", "", "stop", 10},
		{"content in parts, with thoughts",
			choice(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"hello"}]}`), content, "hm", "", "stop", 10},
		{"content as an object", choice(`{"content":{"type":"text","text":"hello"}}`), content, "", "", "stop", 10},
		{"content as the decoded answer", choice(`{"content":{"code":"x"}}`), tool, "", "", "stop", 10},
		{"reasoning_content", choice(`{"content":"hello","reasoning_content":"hm"}`), content, "hm", "", "stop", 10},
		{"reasoning under two names",
			choice(`{"content":"hello","reasoning":"hm","reasoning_details":[{"type":"reasoning.text","text":"hm"}]}`),
			content, "hm", "", "stop", 10},
		{"reasoning as an object", choice(`{"content":"hello","reasoning":{"content":"hm"}}`), content, "hm", "",
			"stop", 10},
		{"tool call", call(`[{"id":"a","type":"function","function":{"name":"submit_program","arguments":"` + callArgs +
			`"}}]`), "", "", tool, "stop", 10},
		{"arguments as an object",
			call(`[{"id":5,"type":null,"function":{"name":"submit_program","arguments":{"code":"x"}}}]`), "", "", tool,
			"stop", 10},
		{"arguments under another name", call(`[{"function":{"name":"submit_program","parameters":{"code":"x"}}}]`), "",
			"", tool, "stop", 10},
		{"a call without function", call(`[{"name":"submit_program","arguments":{"code":"x"}}]`), "", "", tool, "stop",
			10},
		{"calls as an object", call(`{"function":{"name":"submit_program","arguments":{"code":"x"}}}`), "", "", tool,
			"stop", 10},
		{"calls by their places", call(`{"0":{"function":{"name":"submit_program","arguments":{"code":"x"}}}}`), "", "",
			tool, "stop", 10},
		{"calls as a text", call(`"[{\"function\":{\"name\":\"submit_program\",\"arguments\":{\"code\":\"x\"}}}]"`), "",
			"", tool, "stop", 10},
		{"function_call of old", choice(`{"content":null,"function_call":{"name":"submit_program","arguments":"` +
			callArgs + `"}}`), "", "", tool, "stop", 10},
		{"finish_reason as an object",
			`{"choices":[{"message":{"content":"hello"},"finish_reason":{"type":"max_tokens"}}]}`, content, "", "",
			"length", 0},
		{"model_length", `{"choices":[{"message":{"content":"hello"},"finish_reason":"model_length"}]}`, content, "",
			"", "length", 0},
		{"completions of old", `{"choices":[{"text":"hello","finish_reason":"stop"}]}`, content, "", "", "stop", 0},
		{"a list around it", "[" + choice(`{"content":"hello"}`) + "]", content, "", "", "stop", 10},
		{"data around it", `{"code":0,"msg":"ok","data":` + choice(`{"content":"hello"}`) + `}`, content, "", "",
			"stop", 10},
		{"Ollama", `{"model":"m","created_at":"x","message":{"role":"assistant","content":"hello","thinking":"hm"},"done_reason":"length","done":true,"prompt_eval_count":10,"eval_count":5}`, content, "hm", "", "length", 10},
		{"Ollama, a call", `{"message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"submit_program","arguments":{"code":"x"}}}]},"done_reason":"stop","done":true}`, "", "", tool, "stop", 0},
		{"Ollama, in lines", `{"message":{"content":"hel"},"done":false}` + "\n" +
			`{"message":{"content":"lo"},"done":false}` + "\n" +
			`{"message":{"content":""},"done":true,"done_reason":"stop","prompt_eval_count":10}` + "\n", content, "",
			"", "stop", 10},
		{"Ollama, generate", `{"model":"m","response":"hello","done":true,"done_reason":"stop"}`, content, "", "",
			"stop", 0},
		{"responses", `{"object":"response","status":"completed","error":null,"incomplete_details":null,"output":[{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hello","annotations":[]}]}],"usage":{"input_tokens":10,"output_tokens":5}}`, content, "hm", "", "completed", 10},
		{"responses, a call", `{"output":[{"type":"function_call","call_id":"c","name":"submit_program","arguments":"` +
			callArgs + `"}],"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}`, "", "", tool,
			"length", 0},
		{"Anthropic", `{"type":"message","role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"hello"}],"stop_reason":"max_tokens","usage":{"input_tokens":10,"output_tokens":5}}`, content, "hm", "", "length", 10},
		{"Anthropic, a call", `{"type":"message","role":"assistant","content":[{"type":"tool_use","id":"t","name":"submit_program","input":{"code":"x"}}],"stop_reason":"tool_use"}`, "", "", tool, "tool_use", 0},
		{"Gemini", `{"candidates":[{"content":{"role":"model","parts":[{"text":"hm","thought":true},{"text":"hello"}]},"finishReason":"MAX_TOKENS"}],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":2,"thoughtsTokenCount":3}}`, content, "hm", "", "length", 10},
		{"Gemini, a call", `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"submit_program","args":{"code":"x"}}}]},"finishReason":"STOP"}]}`, "", "", tool, "stop", 0},
		{"Cohere", `{"id":"x","finish_reason":"COMPLETE","message":{"role":"assistant","content":[{"type":"text","text":"hello"}]},"usage":{"tokens":{"input_tokens":10,"output_tokens":5}}}`, content, "", "", "complete", 10},
		{"llama.cpp's completion", `{"content":"hello","stop":true,"stop_type":"limit","tokens_evaluated":10}`, content,
			"", "", "limit", 0},
		{"TGI", `[{"generated_text":"hello"}]`, content, "", "", "", 0},
		{"Cloudflare, as OpenAI within its own", `{"result":` + choice(`{"role":"assistant","content":"hello"}`) +
			`,"success":true,"errors":[],"messages":[]}`, content, "", "", "stop", 10},
		{"Cloudflare, a call", `{"result":{"response":null,"tool_calls":[{"name":"submit_program","arguments":{"code":"x"}}],"usage":{"prompt_tokens":10}},"success":true,"errors":[],"messages":[]}`, "", "", tool, "", 10},
		{"Cloudflare, a call beside no text",
			`{"result":{"response":"","tool_calls":[{"name":"submit_program","arguments":{"code":"x"}}]},"success":true,"errors":[],"messages":[]}`, "", "", tool, "", 0},
		{"a part in the place of the whole",
			`{"object":"chat.completion","choices":[{"index":0,"delta":{"content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10}}`, content, "", "", "stop", 10},
		{"Gemini's call that it could not read",
			`{"choices":[{"finish_reason":"function_call_filter: MALFORMED_FUNCTION_CALL","index":0,"message":{"role":"assistant"}}],"usage":{"prompt_tokens":10}}`, "", "", "", "function_call_filter: malformed_function_call", 10},
		{"Cloudflare", `{"result":{"response":"hello"},"success":true,"errors":[],"messages":[]}`, content, "", "", "",
			0},

		{"events", events(chunk(`{"role":"assistant","content":""}`, "null"), chunk(`{"content":"hel"}`, "null"),
			chunk(`{"content":"lo"}`, "null"), chunk(`{}`, `"stop"`),
			`{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5}}`, "[DONE]"), content, "", "", "stop",
			10},
		{"events in lines with carriage returns",
			strings.ReplaceAll(": hi\n\nevent: message\nid: 5\nretry: 10\n"+events(chunk(`{"content":"hel"}`, "null"),
				chunk(`{"content":"lo"}`, `"stop"`)), "\n", "\r\n"), content, "", "", "stop", 0},
		{"events without blank lines and spaces", "data:" + chunk(`{"content":"hel"}`, "null") + "\ndata:" +
			chunk(`{"content":"lo"}`, `"length"`) + "\ndata: [DONE]", content, "", "", "length", 0},
		{"an event in two lines of data", "data: {\"choices\":\ndata: [{\"delta\":{\"content\":\"hello\"}}]}\n\n",
			content, "", "", "", 0},
		{"events with thoughts", events(chunk(`{"reasoning_content":"h"}`, "null"),
			chunk(`{"reasoning_content":"m","content":null}`, "null"), chunk(`{"content":"hello"}`, "null")), content,
			"hm", "", "", 0},
		{"events of a call", events(chunk(
			`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"submit_program","arguments":""}}]}`, "null"), chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"code\""}}]}`, "null"), chunk(`{"tool_calls":[{"index":0,"id":null,"function":{"name":null,"arguments":":\"x\"}"}}]}`, "null"), chunk(`{}`, `"tool_calls"`)), "", "", tool, "tool_calls", 0},
		{"events of a call without its place",
			events(chunk(`{"tool_calls":[{"id":"a","function":{"name":"submit_program","arguments":"{\"code\""}}]}`,
				"null"), chunk(`{"tool_calls":[{"function":{"arguments":":\"x\"}"}}]}`, "null")), "", "", tool, "", 0},
		{"events of a whole call",
			events(chunk(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"submit_program","arguments":{"code":"x"}}}]}`, `"stop"`)), "", "", tool, "stop", 0},
		{"one event that is a whole reply", events(choice(`{"content":"hello"}`), "[DONE]"), content, "", "", "stop",
			10},
		{"events that each hold all so far", events(choice(`{"content":"hel"}`), choice(`{"content":"hello"}`)),
			content, "", "", "stop", 10},
		{"parts, then the whole", events(chunk(`{"content":"hel"}`, "null"), chunk(`{"content":"lo"}`, "null"),
			choice(`{"content":"hello"}`)), content, "", "", "stop", 10},
		{"a document about something else before it", `{"status":"processing"}` + "\n" + choice(`{"content":"hello"}`),
			content, "", "", "stop", 10},
		{"Anthropic's events", events(
			`{"type":"message_start","message":{"model":"m","content":[],"usage":{"input_tokens":10,"output_tokens":1}}}`, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`, `{"type":"ping"}`, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hello"}}`, `{"type":"content_block_stop","index":0}`, `{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"submit_program","input":{}}}`, `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"code\":\"x\"}"}}`, `{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":5}}`, `{"type":"message_stop"}`), content, "", tool, "tool_use", 10},
		{"the responses' events", events(`{"type":"response.created","response":{"output":[]}}`,
			`{"type":"response.output_text.delta","delta":"hel"}`,
			`{"type":"response.output_text.delta","delta":"lo"}`), content, "", "", "", 0},
		{"the responses' events, with the end", events(`{"type":"response.output_text.delta","delta":"hel"}`,
			`{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"hello"}]}],"usage":{"input_tokens":10,"output_tokens":5}}}`), content, "", "", "completed", 10},
		{"Gemini's list of parts",
			`[{"candidates":[{"content":{"parts":[{"text":"hel"}]}}]},{"candidates":[{"content":{"parts":[{"text":"lo"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":10}}]`, content, "", "", "stop", 10},
	}
	for _, tt := range tests {
		r, err := canonical(t, tt.body)
		if err != nil || len(r.Choices) != 1 {
			t.Errorf("%s: got %d choices, %v", tt.name, len(r.Choices), err)
			continue
		}
		m := r.Choices[0].Message
		arguments := ""
		if len(m.ToolCalls) > 0 {
			arguments = m.ToolCalls[0].Function.Arguments
		}
		if m.Content != tt.content || m.ReasoningContent != tt.thoughts || arguments != tt.arguments ||
			string(r.Choices[0].FinishReason) != tt.finish || r.Usage.PromptTokens != tt.prompt {
			t.Errorf("%s: got content %q, thoughts %q, calls %+v, finish %q, usage %+v", tt.name, m.Content,
				m.ReasoningContent, m.ToolCalls, r.Choices[0].FinishReason, r.Usage)
		}
	}
}

// An error in place of a reply is an error, with its own words and status.
func TestErrorsInsideReplies(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, body string
		status     int
		words      string
		partial    bool
	}{
		{"OpenRouter, limited", `{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"upstream is limited"}}}`, 429, "upstream is limited", false},
		{"OpenRouter, no credit", `{"error":{"message":"Insufficient credits","code":402}}`, 402,
			"Insufficient credits", false},
		{"OpenRouter, in a choice",
			`{"choices":[{"index":0,"finish_reason":"error","message":{"content":""},"error":{"code":502,"message":"Upstream overloaded"}}]}`, 502, "Upstream overloaded", false},
		{"OpenRouter, in the last event", events(chunk(`{"content":"pack"}`, "null"),
			`{"error":{"code":"rate_limit_exceeded","message":"slow down"},"choices":[{"delta":{"content":""},"finish_reason":"error"}]}`), 429, "slow down", true},
		{"an event of its own", "event: error\ndata: {\"message\":\"Overloaded\",\"type\":\"overloaded_error\"}\n\n",
			503, "Overloaded", false},
		{"after part of a reply", events(chunk(`{"content":"pack"}`, "null")) +
			"event: error\ndata: {\"error\":\"upstream timed out\"}\n\n", 504, "timed out", true},
		{"LM Studio", `{"error":"Unexpected endpoint or method. (POST /chat/completions). Returning 200 anyway"}`, 404,
			"Unexpected endpoint", false},
		{"FastAPI", `{"detail":"Not authenticated"}`, 401, "Not authenticated", false},
		{"FastAPI, a list", `{"detail":[{"loc":["body","tools"],"msg":"extra fields not permitted","type":"value_error"}]}`, 502, "extra fields not permitted", false},
		{"message and code", `{"message":"slow down","code":"429"}`, 429, "slow down", false},
		{"a list", `{"error":["Model m is overloaded"]}`, 503, "overloaded", false},
		{"a list of errors", `{"success":false,"errors":[{"code":7003,"message":"No such model"}],"result":null}`, 404,
			"No such model", false},
		{"a code in words", `{"error":{"code":"insufficient_quota","message":"You exceeded your current quota"}}`, 429,
			"exceeded", false},
		{"vLLM of old", `{"object":"error","message":"This model's maximum context length is 4096 tokens","type":"BadRequestError","code":400}`, 400, "4096", false},
		{"Anthropic", `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`, 401,
			"x-api-key", false},
		{"MiniMax", `{"choices":null,"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}`, 402,
			"insufficient balance", false},
		{"finish_reason error", `{"choices":[{"message":{"content":""},"finish_reason":"error"}]}`, 502,
			"finish_reason error", false},
		{"beside null choices", `{"id":"","choices":null,"error":{"message":"boom"}}`, 502, "boom", false},
		{"in a list", `[{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}]`, 503,
			"overloaded", false},
		{"the responses", `{"object":"response","status":"failed","error":{"code":"server_error","message":"boom"},"output":[]}`, 502, "boom", false},
		{"a page", "<!DOCTYPE html>\n<html><head><title>Welcome</title></head></html>", 404, "Welcome", false},
		{"true", `{"error":true,"msg":"the model is not found"}`, 404, "not found", false},
	}
	for _, tt := range tests {
		_, err := canonical(t, tt.body)
		var failed *reply.ServerError
		if !errors.As(err, &failed) || failed.Status != tt.status || !strings.Contains(string(failed.Body), tt.words) ||
			failed.Partial != tt.partial {
			t.Errorf("%s: got %v: %+v, want %d", tt.name, err, failed, tt.status)
		}
	}
	for _, body := range []string{`{"choices":[{"message":{"content":"x"}}],"error":null}`,
		`{"choices":[{"message":{"content":"x"}}],"error":""}`,
		`{"choices":[{"message":{"content":"x"}}],"error":{},"detail":null,"message":"ok"}`} {
		if r, err := canonical(t, body); err != nil || r.Choices[0].Message.Content != "x" {
			t.Errorf("%s: got %v", body, err)
		}
	}
}

// An ambiguous or malicious reply ends in an error.
func TestHostileBodies(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"a":`, 1<<16) + "1" + strings.Repeat("}", 1<<16)
	for name, body := range map[string]string{
		"nothing":                    "",
		"blank":                      " \n\n",
		"only comments":              ": OPENROUTER PROCESSING\n\n",
		"text":                       "Ollama is running",
		"a number":                   "5",
		"a list of texts":            `["a"]`,
		"broken off":                 `{"choices":[{"message":{"content":"pack`,
		"broken off between members": `{"choices":[{"message":{"content":"pack"}`,
		"broken off in an event":     `data: {"choices":[{"delta":{"content":"pack`,
		"deep":                       deep,
		"deep lists":                 strings.Repeat("[", 1<<20),
		"deep within a reply":        `{"choices":[{"message":{"content":"x"},"logprobs":` + deep + `}]}`,
		"too many values": `{"choices":[{"message":{"content":"x"}}],"a":[` + strings.Repeat("1,", 1<<20) +
			`1]}`,
		"not UTF-8":     "{\"choices\":[{\"message\":{\"content\":\"\xff\"}}]}",
		"content twice": `{"choices":[{"message":{"content":"a","content":"b"}}]}`,
		"choices twice": `{"choices":[{"message":{"content":"a"}}],"choices":[{"message":{"content":"b"}}]}`,
		"two replies":   `{"choices":[{"message":{"content":"a"}}]}{"choices":[{"message":{"content":"b"}}]}`,
		"parts and another whole": events(chunk(`{"content":"a"}`, "null"),
			`{"choices":[{"message":{"content":"b"}}]}`),
		"another shape": `{"hello":"world"}`,
	} {
		if r, err := canonical(t, body); err == nil {
			t.Errorf("%s: got %+v", name, r)
		}
	}
}

// FuzzCanonical reads arbitrary bodies: the result is an error, or a completion that go-openai can read, and that reads
// the same again.
func FuzzCanonical(f *testing.F) {
	f.Add([]byte(`{"choices":[{"message":{"content":"x","tool_calls":[{"function":{"name":"n","arguments":{}}}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}`))
	f.Add([]byte(events(chunk(`{"content":"a"}`, "null"),
		chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"x"}}]}`, `"stop"`), "[DONE]")))
	f.Add([]byte(`{"error":{"code":429}}`))
	f.Add([]byte(`{"candidates":[{"content":{"parts":[{"text":"x"}]}}]}`))
	f.Add([]byte("event: x\ndata: {\ndata: }\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := canonical(t, string(body))
		if err != nil {
			return
		}
		raw, _ := json.Marshal(r)
		again, err := canonical(t, string(raw))
		if err != nil && len(r.Choices) > 0 && (r.Choices[0].Message.Content != "" ||
			len(r.Choices[0].Message.ToolCalls) > 0) {
			t.Fatalf("%s cannot be read again: %v", raw, err)
		}
		if err == nil && len(r.Choices) > 0 && again.Choices[0].Message.Content != r.Choices[0].Message.Content {
			t.Fatalf("got %q, then %q", r.Choices[0].Message.Content, again.Choices[0].Message.Content)
		}
	})
}
