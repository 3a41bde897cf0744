package provider_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/provider/openaitest"
)

// errorBody returns an error in the format of most servers.
func errorBody(message string, more ...string) string {
	object := map[string]any{"message": message, "type": "invalid_request_error"}
	for i := 0; i+1 < len(more); i += 2 {
		object[more[i]] = more[i+1]
	}
	text, err := json.Marshal(map[string]any{"error": object})
	if err != nil {
		panic(err)
	}
	return string(text)
}

// asked summarizes a request for a test: tool, system, names of the limit, limit, stream.
func asked(body map[string]any) string {
	tools := "none"
	if body["tools"] != nil {
		switch choice := body["tool_choice"].(type) {
		case nil:
			tools = "auto"
		case string:
			tools = choice
		default:
			tools = "named"
		}
		text, _ := json.Marshal(body["tools"])
		if !strings.Contains(string(text), "solver_shape") {
			tools += " short"
		}
	}
	first, _ := body["messages"].([]any)[0].(map[string]any)
	fields := ""
	for _, name := range []string{"max_completion_tokens", "max_tokens"} {
		if n, ok := body[name].(float64); ok {
			fields += fmt.Sprintf(" %s=%v", strings.TrimSuffix(name, "_tokens"), n)
		}
	}
	out := tools + " " + fmt.Sprint(first["role"]) + fields
	if body["stream"] == true {
		out += " stream"
	}
	return out
}

// A rule refuses requests for which its condition holds, with a status and a body. The first rule that holds counts.
type rule struct {
	when   func(b map[string]any) bool
	status int
	body   string
}

func has(name string) func(map[string]any) bool {
	return func(b map[string]any) bool { return b[name] != nil }
}

func above(limit float64) func(map[string]any) bool {
	return func(b map[string]any) bool {
		return max(number(b["max_tokens"]), number(b["max_completion_tokens"])) > limit
	}
}

func choice(allowed ...string) func(map[string]any) bool {
	return func(b map[string]any) bool {
		if b["tool_choice"] == nil {
			return false
		}
		s, _ := b["tool_choice"].(string)
		for _, a := range allowed {
			if a == s {
				return false
			}
		}
		return true
	}
}

func withSystem(b map[string]any) bool {
	for _, m := range b["messages"].([]any) {
		if m.(map[string]any)["role"] == "system" {
			return true
		}
	}
	return false
}

func notStreamed(b map[string]any) bool { return b["stream"] != true }

func both(b map[string]any) bool { return b["max_tokens"] != nil && b["max_completion_tokens"] != nil }

func schemaHas(text string) func(map[string]any) bool {
	return func(b map[string]any) bool {
		tools, _ := json.Marshal(b["tools"])
		return strings.Contains(string(tools), text)
	}
}

const bothLimits = " max_completion=16384 max=16384"

// Servers refuse what they lack in words of their own. The question is then asked in another way, and from then on
// directly.
func TestCapabilities(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		model    string
		rules    []rule
		want     string // the accepted request
		requests int    // for the first question
		again    int    // for the next question
	}{
		{"all", "m", nil, "named system" + bothLimits, 1, 1},
		// Tools.
		{"Ollama without tools", "m",
			[]rule{{has("tools"), 400, errorBody("registry.ollama.ai/library/gemma3:4b does not support tools", "type",
				"api_error")}}, "none system" + bothLimits, 2, 1},
		{"OpenRouter without tools", "m",
			[]rule{{has("tools"), 404,
				`{"error":{"message":"No endpoints found that support tool use. To learn more about provider routing, visit: https://openrouter.ai/docs/provider-routing","code":404}}`}}, "none system" + bothLimits, 2, 1},
		{"OpenRouter without a choice", "m",
			[]rule{{has("tool_choice"), 404,
				`{"error":{"message":"No endpoints found that support the provided 'tool_choice' value. To learn more visit: https://openrouter.ai/docs","code":404}}`}}, "auto system" + bothLimits, 2, 1},
		{"LM Studio", "m", []rule{{choice("none", "auto", "required"), 400,
			`{"error":"Invalid tool_choice type: 'object'. Supported string values: none, auto, required"}`}},
			"required system" + bothLimits, 2, 1},
		{"DeepSeek, thinking", "m",
			[]rule{{choice("auto", "none"), 400, errorBody("Thinking mode does not support this tool_choice")}},
			"auto system" + bothLimits, 2, 1},
		{"Cerebras", "m", []rule{{choice("auto", "none"), 400,
			`{"message":"Unsupported tool_choice: type='function' function=ChoiceObjectFunction(name='x'). Expected 'auto' or 'none'.","type":"invalid_request_error","param":"tool_choice","code":"wrong_api_format"}`}}, "auto system" + bothLimits, 2, 1},
		{"the parameter alone", "m",
			[]rule{{choice("auto"), 400, errorBody("Unsupported value", "param", "tool_choice")}},
			"auto system" + bothLimits, 2, 1},
		{"MLX", "m", []rule{{choice("auto"), 500,
			`{"error":{"message":"Failed to process request: 400: Tool choice must be 'auto' when tools are provided.","type":"bad_request"}}`}}, "auto system" + bothLimits, 2, 1},
		{"Bedrock's choice", "m",
			[]rule{{has("tool_choice"), 400,
				`{"detail":"This model doesn't support the toolConfig.toolChoice.any field. Remove toolConfig.toolChoice.any and try again."}`}}, "auto system" + bothLimits, 2, 1},
		{"Bedrock without tools", "m",
			[]rule{{has("tools"), 400,
				`{"detail":"An error occurred (ValidationException) when calling the Converse operation: This model doesn't support tool use."}`}}, "none system" + bothLimits, 2, 1},
		{"vLLM without a parser", "m",
			[]rule{{has("tools"), 400,
				`{"object":"error","message":"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set","type":"BadRequestError","param":null,"code":400}`}}, "none system" + bothLimits, 2, 1},
		{"llama.cpp without jinja", "m",
			[]rule{{has("tools"), 500,
				`{"error":{"code":500,"message":"tools param requires --jinja flag","type":"server_error"}}`}},
			"none system" + bothLimits, 2, 1},
		{"Gemma at Google", "m", []rule{{has("tools"), 400,
			`[{"error":{"code":400,"message":"Function calling is not enabled for models/gemma-3-12b-it","status":"INVALID_ARGUMENT"}}]`}}, "none system" + bothLimits, 2, 1},
		{"LiteLLM", "m", []rule{{has("tools"), 400,
			errorBody("litellm.UnsupportedParamsError: x does not support parameters: ['tools', 'tool_choice'], for model=x. To drop these, set `litellm.drop_params=True`")}}, "none system" + bothLimits, 3, 1},
		{"extra inputs", "m", []rule{{has("tools"), 422,
			`{"object":"Error","detail":[{"type":"extra_forbidden","loc":["body","tools"],"msg":"Extra inputs are not permitted","input":[]}]}`}}, "none system" + bothLimits, 2, 1},
		{"a choice first, then no tools", "m",
			[]rule{{has("tool_choice"), 400, errorBody("tool_choice is not supported")},
				{has("tools"), 400, errorBody("tools are not supported")}}, "none system" + bothLimits, 3, 1},
		{"Gemini's schema", "m", []rule{{schemaHas("solver_shape"), 400,
			`[{"error":{"code":400,"message":"* GenerateContentRequest.tools[0].function_declarations[0].parameters.properties[returns].properties: should be non-empty for OBJECT type\n","status":"INVALID_ARGUMENT"}}]`}}, "named short system" + bothLimits, 2, 1},
		{"a schema by parameter", "m",
			[]rule{{schemaHas("solver_shape"), 400, errorBody("Invalid value", "param",
				"tools[0].function.parameters")}}, "named short system" + bothLimits, 2, 1},
		{"a grammar", "m", []rule{{schemaHas("solver_shape"), 400,
			errorBody("failed to compile the grammar of the tool's schema: unsupported")},
			{has("tools"), 400, errorBody("failed to compile the grammar of the tool's schema: unsupported")}},
			"none system" + bothLimits, 3, 1},
		{"vLLM of old", "m", []rule{{has("tool_choice"), 400,
			`{"object":"error","message":"2 validation errors for ChatCompletionRequest\ntool_choice\n  Extra inputs are not permitted [type=extra_forbidden, input_value='auto', input_type=str]\ntools\n  Extra inputs are not permitted [type=extra_forbidden]","type":"BadRequestError","param":null,"code":400}`}, {has("tools"), 400, `{"object":"error","message":"1 validation error for ChatCompletionRequest\ntools\n  Extra inputs are not permitted [type=extra_forbidden]","type":"BadRequestError","param":null,"code":400}`}}, "none system" + bothLimits, 3, 1},
		{"vLLM with Harmony", "m",
			[]rule{{choice("auto", "none"), 501,
				`{"error":{"message":"Only 'auto' or 'none' tool_choice is supported in response API with Harmony","type":"NotImplementedError","param":null,"code":501}}`}}, "auto system" + bothLimits, 2, 1},
		{"vLLM, a named tool without a parser", "m",
			[]rule{{has("tools"), 400,
				`{"error":{"message":"tool_choice={\"type\": \"function\"} requires --tool-call-parser to be set","type":"BadRequestError","param":null,"code":400}}`}}, "none system" + bothLimits, 2, 1},
		{"llama.cpp of old", "m",
			[]rule{{has("tools"), 500,
				`{"error":{"code":500,"message":"Unsupported param: tools","type":"server_error"}}`}},
			"none system" + bothLimits, 2, 1},
		{"Moonshot, thinking", "m",
			[]rule{{choice("auto", "none"), 400,
				errorBody("tool_choice 'specified' is incompatible with thinking enabled")}},
			"auto system" + bothLimits, 2, 1},
		{"DashScope, thinking", "m",
			[]rule{{choice("auto", "none"), 400,
				`{"error":{"message":"<400> InternalError.Algo.InvalidParameter: The tool_choice parameter does not support being set to required or object in thinking mode","type":"invalid_request_error","param":null,"code":"invalid_parameter_error"},"id":"chatcmpl-5","request_id":"5"}`}}, "auto system" + bothLimits, 2, 1},
		{"Groq's words", "m", []rule{{choice("none", "auto", "required"), 400,
			errorBody("Only allowed string values for 'tool_choice' are none, auto, and required")}},
			"required system" + bothLimits, 2, 1},
		{"Gemini without forced calls", "m",
			[]rule{{has("tool_choice"), 400,
				"[{\"error\":{\"code\":400,\"message\":\"Function calling mode `ANY` is not enabled for api version v1beta\",\"status\":\"INVALID_ARGUMENT\"}}]"}}, "auto system" + bothLimits, 2, 1},
		{"OpenAI, auto only", "m",
			[]rule{{choice("auto"), 400, errorBody("Tool choices other than 'auto' are not supported with model 'm'",
				"param", "tool_choice")}}, "auto system" + bothLimits, 2, 1},
		{"Cohere", "m", []rule{{has("tool_choice"), 422,
			`{"id":"x","message":"unknown field: parameter 'tool_choice' is not a valid field. For proper usage, please refer to https://docs.cohere.com/reference/chat"}`}}, "auto system" + bothLimits, 2, 1},
		{"Writer", "m", []rule{{has("tool_choice"), 400,
			`{"tpe":"fail.input.generic","errors":[{"description":"Invalid value for 'tool_choice'","key":"fail.input.generic","extras":null}],"extras":null}`}}, "auto system" + bothLimits, 2, 1},
		{"OpenAI, tools by responses alone", "gpt-5.6-terra",
			[]rule{{has("tools"), 400,
				errorBody("Function tools with reasoning_effort are not supported for gpt-5.6-terra in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.", "param", "reasoning_effort")}}, "none system max_completion=16384", 2, 1},
		{"llama.cpp's grammar", "m",
			[]rule{{schemaHas("solver_shape"), 400,
				errorBody("Failed to initialize samplers: failed to parse grammar")}},
			"named short system" + bothLimits, 2, 1},
		{"Gemini's states", "m", []rule{{schemaHas("solver_shape"), 400,
			`[{"error":{"code":400,"message":"The specified schema produces a constraint that has too many states for serving. Typical causes of this error are schemas with lots of text (for example, very long property or enum names)","status":"INVALID_ARGUMENT"}}]`}}, "named short system" + bothLimits, 2, 1},
		{"Perplexity", "m", []rule{{has("tools"), 400,
			`{"error":{"message":"Tool calling is not supported for this model","type":"invalid_request","code":400}}`}}, "none system" + bothLimits, 2, 1},
		{"Azure without tools", "m",
			[]rule{{has("tools"), 400,
				`{"error":{"code":"UnsupportedToolUse","message":"Request included unsupported tool use."}}`}},
			"none system" + bothLimits, 2, 1},
		{"DeepInfra behind a gateway", "m",
			[]rule{{has("tools"), 405,
				`{"status":"failure","message":"deepinfra error: Tool calling is not supported for model: mistralai/Mistral-Small-24B-Instruct-2501","error":{"message":"deepinfra error: Tool calling is not supported for model: mistralai/Mistral-Small-24B-Instruct-2501","type":"APIError","code":"405"},"error_origin_level":"api_error","provider":"deepinfra"}`}}, "none system" + bothLimits, 2, 1},
		{"DeepInfra through LiteLLM", "m",
			[]rule{{choice("auto", "none"), 400,
				errorBody("litellm.BadRequestError: DeepinfraException - Deepinfra doesn't support tool_choice={'type': 'function', 'function': {'name': 'submit_program'}}. To drop unsupported deepinfra params from the call, set `litellm.drop_params = True`")}}, "auto system" + bothLimits, 2, 1},
		{"SiliconFlow", "m", []rule{{choice("auto", "none"), 400,
			"{\"code\":20015,\"message\":\"Value error, The `required` option for tool_choice is not yet supported.\",\"data\":null}"}}, "auto system" + bothLimits, 3, 1},
		{"Groq's check of schemas", "m",
			[]rule{{schemaHas("solver_shape"), 400,
				`{"error":{"message":"invalid JSON schema for tool submit_program, tools[0].function.parameters: 'required' present but 'properties' is missing","type":"invalid_request_error","param":"tool submit_program, tools[0].function.parameters"}}`}}, "named short system" + bothLimits, 2, 1},
		{"OpenRouter behind a router", "m",
			[]rule{{has("tools"), 404,
				`{"error":{"message":"Error from provider(404): {\"error\":{\"message\":\"No endpoints found that support tool use. To learn more about provider routing, visit: https://openrouter.ai/docs/provider-routing\",\"code\":404}}Error: Error from provider(404)","type":"api_error","code":"provider_response_error"}}`}}, "none system" + bothLimits, 2, 1},
		{"gpt-oss at Azure", "m",
			[]rule{{choice("auto", "none"), 400,
				`{"error":{"code":"UnsupportedToolUse","message":"Request included unsupported tool use."}}`}},
			"none system" + bothLimits, 2, 1},
		// The system's role.
		{"vLLM with Gemma 2", "m",
			[]rule{{withSystem, 400, `{"object":"error","message":"System role not supported","type":"BadRequestError","param":null,"code":400}`}}, "named user" + bothLimits, 2, 1},
		{"roles alternate", "m", []rule{{withSystem, 400,
			`{"object":"error","message":"Conversation roles must alternate user/assistant/user/assistant/...","type":"BadRequestError"}`}}, "named user" + bothLimits, 2, 1},
		{"llama.cpp with Ministral", "m",
			[]rule{{withSystem, 500, `{"error":{"code":500,"message":"Only user, assistant and tool roles are supported, got system.","type":"server_error"}}`}}, "named user" + bothLimits, 2, 1},
		{"Gemma at Google, system", "m",
			[]rule{{withSystem, 400, `[{"error":{"code":400,"message":"Developer instruction is not enabled for models/gemma-3-27b-it","status":"INVALID_ARGUMENT"}}]`}}, "named user" + bothLimits, 2, 1},
		{"o1-mini", "m", []rule{{withSystem, 400,
			errorBody("Unsupported value: 'messages[0].role' does not support 'system' with this model.", "param",
				"messages[0].role", "code", "unsupported_value")}}, "named user" + bothLimits, 2, 1},
		{"Qwen3.5", "m", []rule{{withSystem, 500,
			`{"error":{"code":500,"message":"Jinja Exception: System message must be at the beginning.","type":"server_error"}}`}}, "named user" + bothLimits, 2, 1},
		{"neither tools nor system", "m",
			[]rule{{has("tools"), 400, errorBody("This model does not support function calling")},
				{withSystem, 400, errorBody("system messages are not supported")}}, "none user" + bothLimits, 3, 1},
		// The limit's name.
		{"newer models of OpenAI", "gpt-5-mini",
			[]rule{{has("max_tokens"), 400, errorBody("Unsupported parameter: 'max_tokens'")}},
			"named system max_completion=16384", 1, 1},
		{"OpenAI behind a gateway", "m",
			[]rule{{has("max_tokens"), 400,
				errorBody("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", "param", "max_tokens")}}, "named system max_completion=16384", 2, 1},
		{"not both at once", "m",
			[]rule{{both, 400, errorBody(
				"Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported")}},
			"named system max_completion=16384", 2, 1},
		{"Mistral", "m", []rule{{has("max_completion_tokens"), 422,
			`{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","max_completion_tokens"],"msg":"Extra inputs are not permitted","input":16384}]},"type":"invalid_request_error","param":null,"code":null}`}}, "named system max=16384", 2, 1},
		{"vLLM, older", "m", []rule{{has("max_completion_tokens"), 400,
			`{"object":"error","message":"[{'type': 'extra_forbidden', 'loc': ('body', 'max_completion_tokens'), 'msg': 'Extra inputs are not permitted', 'input': 16384}]","type":"BadRequestError","param":null,"code":400}`}}, "named system max=16384", 2, 1},
		{"the name as parameter alone", "m",
			[]rule{{has("max_completion_tokens"), 400, errorBody("Unrecognized request argument", "param",
				"max_completion_tokens")}}, "named system max=16384", 2, 1},
		{"Azure's validation", "m",
			[]rule{{has("max_completion_tokens"), 400,
				`{"error":{"requestid":"b","code":400,"message":"Validation error at #/max_completion_tokens: Extra inputs are not permitted"}}`}}, "named system max=16384", 2, 1},
		{"Databricks", "m", []rule{{has("max_completion_tokens"), 400,
			`{"error_code":"BAD_REQUEST","message":"Bad request: json: unknown field \"max_completion_tokens\"\n"}`}},
			"named system max=16384", 2, 1},
		{"NVIDIA", "m", []rule{{has("max_completion_tokens"), 400,
			"{\"error\":{\"message\":\"Validation: Unsupported parameter(s): `max_completion_tokens`\",\"code\":400}}"}}, "named system max=16384", 2, 1},
		{"serverless models at Azure", "m",
			[]rule{{has("max_completion_tokens"), 400,
				`{"detail":"Extra parameters ['max_completion_tokens'] are not allowed when extra-parameters is not set or set to be 'error'. Set extra-parameters to 'pass-through' to pass to the model."}`}}, "named system max=16384", 2, 1},
		{"Mistral behind OpenRouter", "m",
			[]rule{{has("max_completion_tokens"), 400,
				`{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"object\":\"error\",\"message\":{\"detail\":[{\"type\":\"extra_forbidden\",\"loc\":[\"body\",\"max_completion_tokens\"],\"msg\":\"Extra inputs are not permitted\"}]},\"type\":\"invalid_request_error\"}","provider_name":"Mistral","is_byok":false}},"user_id":"user_1"}`}}, "named system max=16384", 2, 1},
		{"no limit at all", "m", []rule{{has("max_completion_tokens"), 400,
			errorBody("Unknown parameter: max_completion_tokens")},
			{has("max_tokens"), 400, errorBody("Unknown parameter: max_tokens")}}, "named system", 3, 1},
		// The limit.
		{"OpenAI's limit", "m", []rule{{above(4096), 400,
			errorBody("max_tokens is too large: 16384. This model supports at most 4096 completion tokens, whereas you provided 16384.", "param", "max_tokens")}}, "named system max_completion=4096 max=4096", 2, 1},
		{"DeepSeek's limit", "m",
			[]rule{{above(8192), 400,
				errorBody("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]")}},
			"named system max_completion=8192 max=8192", 2, 1},
		{"Groq's limit", "m", []rule{{above(8192), 400,
			errorBody("`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than the `context_window` for this model", "param", "max_tokens")}}, "named system max_completion=8192 max=8192", 2, 1},
		{"Anthropic's limit", "m",
			[]rule{{above(8192), 400,
				errorBody("max_tokens: 16384 > 8192, which is the maximum allowed number of output tokens for claude-3-5-sonnet-20241022")}}, "named system max_completion=8192 max=8192", 2, 1},
		{"Bedrock's limit", "m", []rule{{above(2048), 400,
			`{"detail":"The maximum tokens you requested exceeds the model limit of 2048. Try again with a maximum tokens value that is lower than 2048."}`}}, "named system max_completion=2048 max=2048", 2, 1},
		{"Ollama's cloud", "m", []rule{{above(8192), 400,
			errorBody("max_tokens (16384) exceeds model's maximum output tokens (8192) for model m:0731")}},
			"named system max_completion=8192 max=8192", 2, 1},
		{"Groq's limit, by the new name", "m",
			[]rule{{above(8192), 400,
				errorBody("max_completion_tokens must be less than or equal to 8192, the maximum value for max_completion_tokens is less than the context_window for this model", "param", "max_completion_tokens")}}, "named system max_completion=8192 max=8192", 2, 1},
		{"what Databricks passes on", "m",
			[]rule{{above(4096), 400,
				`{"error":"Received error from databricks-model-serving","external_model_message":{"error_code":"INVALID_PARAMETER_VALUE","message":"INVALID_PARAMETER_VALUE: max_tokens must be at most 4096"}}`}}, "named system max_completion=4096 max=4096", 2, 1},
		{"a limit that is not stated", "m",
			[]rule{{above(4096), 400, errorBody("Invalid value", "param", "max_tokens")}},
			"named system max_completion=4096 max=4096", 3, 1},
		{"Scaleway's limit", "m",
			[]rule{{above(8192), 416, errorBody("max_completion_tokens is limited for this model")}},
			"named system max_completion=8192 max=8192", 2, 1},
		// The context.
		{"TGI", "m", []rule{{above(1000), 422, `{"error":"Input validation error: ` +
			"`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 3096 `inputs` tokens and 16384 `max_new_tokens`" + `","error_type":"validation"}`}}, "named system max_completion=1000 max=1000", 2, 2},
		{"the sum in other words", "m",
			[]rule{{above(1096), 400,
				errorBody("The sum of prompt and generated tokens may not exceed 4096; the prompt contains 3000")}},
			"named system max_completion=1096 max=1096", 2, 2},
		{"vLLM's context", "m", []rule{{above(1084), 400,
			`{"object":"error","message":"'max_tokens' or 'max_completion_tokens' is too large: 16384. This model's maximum context length is 4096 tokens and your request has 3012 input tokens (16384 > 4096 - 3012).","type":"BadRequestError","param":null,"code":400}`}}, "named system max_completion=1084 max=1084", 2, 2},
		{"OpenRouter's context", "m",
			[]rule{{above(1000), 400,
				errorBody("This endpoint's maximum context length is 6000 tokens. However, you requested about 21384 tokens (3000 of text input, 2000 of tool input, 16384 in the output). Please reduce the length of either one")}}, "named system max_completion=1000 max=1000", 2, 4},
		{"SGLang's context", "m",
			[]rule{{above(1000), 400,
				`{"object":"error","message":"Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total of 19480 tokens: 3096 tokens from the input messages and 16384 tokens for the completion. Please reduce the number of tokens in the input messages or the completion to fit within the limit.","type":"BadRequestError","param":null,"code":400}`}}, "named system max_completion=1000 max=1000", 2, 2},
		{"a context without figures", "m",
			[]rule{{above(4096), 400, errorBody("Please reduce the length of the messages or completion", "code",
				"context_length_exceeded")}}, "named system max_completion=4096 max=4096", 3, 3},
		{"a llama.cpp without figures", "m",
			[]rule{{above(4096), 500,
				`{"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}}`}},
			"named system max_completion=4096 max=4096", 3, 3},
		// Streams.
		{"streams alone", "m", []rule{{notStreamed, 400,
			errorBody("This model only support stream mode, please enable the stream parameter to access the model. ",
				"code", "invalid_parameter_error")}}, "named system" + bothLimits + " stream", 2, 1},
		{"thinking streams", "m",
			[]rule{{notStreamed, 400,
				errorBody("parameter.enable_thinking must be set to false for non-streaming calls")}},
			"named system" + bothLimits + " stream", 2, 1},
		{"streams by detail", "m", []rule{{notStreamed, 400, `{"detail":"Stream must be set to true"}`}},
			"named system" + bothLimits + " stream", 2, 1},
		{"ModelScope streams", "m",
			[]rule{{notStreamed, 400,
				"{\"error\":{\"code\":\"invalid_parameter_error\",\"message\":\"enable thinking can not be support when `stream=False`.\",\"type\":\"invalid_request_error\"},\"request_id\":\"2\"}"}}, "named system" + bothLimits + " stream", 2, 1},
		{"Fireworks streams long replies", "m",
			[]rule{{notStreamed, 400,
				`{"error":{"message":"Requests with max_tokens > 4096 must have stream=true","param":"max_tokens","code":"BAD_REQUEST","type":"error"}}`}}, "named system" + bothLimits + " stream", 2, 1},
		{"streams without usage", "m", []rule{{notStreamed, 400, `{"detail":"Stream must be set to true"}`},
			{has("stream_options"), 400, errorBody("Unknown parameter: stream_options")}},
			"named system" + bothLimits + " stream", 3, 1},
		// Nothing is learned.
		{"only its kind", "m", []rule{{has("tools"), 400,
			`{"error":{"message":"Bad Request","type":"invalid_request_error","code":400}}`}}, "none user max=16384", 2,
			2},
		{"no reason", "m", []rule{{has("tools"), 400, errorBody("Request contains an invalid argument.")}},
			"none user max=16384", 2, 2},
		{"a template that LM Studio cannot render", "m",
			[]rule{{has("tools"), 400,
				`{"error":"Error rendering prompt with jinja template: \"Unknown StringValue filter: safe\".\n\nThis is usually an issue with the model's prompt template."}`}}, "none user max=16384", 2, 2},
		{"a template that fails", "m",
			[]rule{{has("tools"), 500,
				`{"error":{"code":500,"message":"Value is not callable: null at row 62, chat template","type":"server_error"}}`}}, "none user max=16384", 2, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, s := start(t, nil)
			s.Default(func(r openaitest.Request) openaitest.Reply {
				for _, rule := range tt.rules {
					if rule.when(r.Body) {
						return openaitest.Reply{Status: rule.status, Body: rule.body}
					}
				}
				return openaitest.Code(source)
			})
			q := request()
			q.Model = tt.model
			var paid purse
			q.Charge = paid.charge
			for i, want := range []int{tt.requests, tt.again} {
				before := s.Count("", "")
				if _, err := p.Program(t.Context(), q); err != nil {
					t.Fatalf("question %d: %v", i, err)
				}
				if got := s.Count("", "") - before; got != want {
					t.Errorf("question %d: got %d requests, want %d", i, got, want)
				}
			}
			for _, r := range s.Requests()[tt.requests-1 : tt.requests] {
				if got := asked(r.Body); got != tt.want {
					t.Errorf("asked at last: %s, want %s", got, tt.want)
				}
			}
			for i, r := range s.Requests() {
				if limit := max(number(r.Body["max_tokens"]),
					number(r.Body["max_completion_tokens"])); limit > 0 && paid.asked[i].Completion != int64(limit) {
					t.Errorf("request %d is charged %+v for a limit of %v", i, paid.asked[i], limit)
				}
			}
			doctor(t, s, func(o *provider.OpenAIOptions) { o.Model = tt.model }, true, "")
		})
	}
}

// A server that only streams is read like any other, and the stream is requested with usage.
func TestStream(t *testing.T) {
	t.Parallel()
	p, s := start(t, nil)
	s.Default(func(r openaitest.Request) openaitest.Reply {
		if r.Body["stream"] != true {
			return openaitest.Reply{Status: 400, Body: `{"detail":"Stream must be set to true"}`}
		}
		return openaitest.Reply{Header: map[string]string{"Content-Type": "text/event-stream"},
			Body: `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"{\"code\":\"package "}}]}` +
				"\n\n" +
				`data: {"choices":[{"index":0,"delta":{"content":"tool\"}"},"finish_reason":"stop"}]}` + "\n\n" +
				`data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":5}}` + "\n\ndata: [DONE]\n\n"}
	})
	var paid purse
	q := request()
	q.Charge = paid.charge
	reply, err := p.Program(t.Context(), q)
	if err != nil || reply.Code != "package tool" || reply.Usage.PromptTokens != 7 ||
		paid.bills[1] != (provider.Bill{Reported: true, Prompt: 7, Completion: 5}) {
		t.Errorf("got %+v, %v, %+v", reply, err, paid.bills)
	}
	last := s.Requests()[1]
	if last.Header.Get("Accept") != "text/event-stream" ||
		last.Body["stream_options"].(map[string]any)["include_usage"] != true ||
		!p.Profile("scripted").StreamOnly.Value {
		t.Errorf("asked with %v, %v", last.Header, last.Body["stream_options"])
	}
}

// The client library rejects parameters that it believes some models of OpenAI lack. It is bypassed.
func TestLibraryDecidesNothing(t *testing.T) {
	t.Parallel()
	for _, model := range []string{"o1", "o3-mini", "o4-mini", "gpt-5", "gpt-6-sol", "gpt-6-luna", "gpt-6-astra",
		"gpt-6.1-sol", "text-davinci-003", ""} {
		p, s := start(t, nil)
		s.Default(func(openaitest.Request) openaitest.Reply { return openaitest.Code(source) })
		q := request()
		q.Model = model
		if reply, err := p.Program(t.Context(), q); err != nil || reply.Code != source {
			t.Errorf("%s: got %v", model, err)
			continue
		}
		r := s.Requests()[0]
		if got := asked(r.Body); !strings.HasPrefix(got, "named system") || r.Body["model"] != model {
			t.Errorf("%s: asked %s for %v", model, got, r.Body["model"])
		}
	}
}

// Every node of the tool's schema has a type of its own.
func TestSchemaOfTool(t *testing.T) {
	t.Parallel()
	for _, short := range []bool{false, true} {
		p, s := start(t, nil)
		s.Default(func(r openaitest.Request) openaitest.Reply {
			if short && strings.Contains(asked(r.Body), "named system") {
				return openaitest.Reply{Status: 400, Body: errorBody("Invalid value", "param",
					"tools[0].function.parameters")}
			}
			return openaitest.Code(source)
		})
		if _, err := p.Program(t.Context(), request()); err != nil {
			t.Fatal(err)
		}
		tool := s.Requests()[s.Count("", "")-1].Body["tools"].([]any)[0].(map[string]any)
		nodes := 0
		var visit func(at string, node map[string]any)
		visit = func(at string, node map[string]any) {
			nodes++
			if _, ok := node["type"].(string); !ok {
				t.Errorf("%s has no type", at)
			}
			if node["type"] == "array" && node["items"] == nil {
				t.Errorf("%s has no items", at)
			}
			if items, ok := node["items"].(map[string]any); ok {
				visit(at+"[]", items)
			}
			properties, _ := node["properties"].(map[string]any)
			if short && node["type"] == "object" && len(properties) == 0 {
				t.Errorf("%s has no members", at)
			}
			for name, child := range properties {
				visit(at+"."+name, child.(map[string]any))
			}
		}
		visit("", tool["function"].(map[string]any)["parameters"].(map[string]any))
		if nodes < 8 {
			t.Errorf("%d nodes", nodes)
		}
	}
}

// A lesson is shown with the server's words, holds for its time, and is then tried again.
func TestProfileExpires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		requests, tools := 0, false
		o := provider.DefaultOpenAIOptions()
		o.BaseURL = "http://127.0.0.1:1/v1"
		o.HTTPClient = &http.Client{Transport: transport(func(body map[string]any) (int, string) {
			requests++
			switch {
			case body["tools"] != nil && !tools:
				return 400, `{"error":"m does not support tools"}`
			case number(body["max_tokens"]) > 8192:
				return 400, errorBody("max_tokens must be at most 8192")
			}
			return 200, `{"choices":[{"message":{"role":"assistant","content":"{\"code\":\"package tool\"}"}}]}`
		})}
		p, err := provider.NewOpenAI(o)
		if err != nil {
			t.Fatal(err)
		}
		ask := func(want int) {
			t.Helper()
			before := requests
			if _, err := p.Program(t.Context(), request()); err != nil || requests-before != want {
				t.Errorf("got %d requests, %v, want %d", requests-before, err, want)
			}
		}
		if got := p.Profile("scripted"); got.Tools.Value != "forced" || got.Tools.At != nil ||
			got.System.Value != "role" || got.LimitField.Value != "both" || got.Limit.Value != 16384 ||
			got.Context.Value != 0 || got.StreamOnly.Value {
			t.Errorf("before: %+v", got)
		}
		ask(3)
		got := p.Profile("scripted")
		if got.Tools.Value != "none" || !strings.Contains(got.Tools.LearnedFrom, "does not support tools") ||
			!got.Tools.ExpiresAt.Equal(got.Tools.At.Add(time.Hour)) ||
			got.Limit.Value != 8192 || !got.Limit.ExpiresAt.Equal(got.Limit.At.Add(24*time.Hour)) ||
			p.Profile("other").Tools.Value != "forced" {
			t.Errorf("after: %+v", got)
		}
		ask(1)
		time.Sleep(time.Hour)
		tools = true
		ask(1)
		if got := p.Profile("scripted"); got.Tools.Value != "forced" || got.Limit.Value != 8192 {
			t.Errorf("after an hour: %+v", got)
		}
		time.Sleep(24 * time.Hour)
		ask(2)
	})
}

// transport answers in place of a network, so that synctest's clock can run.
func transport(answer func(body map[string]any) (status int, text string)) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		var body map[string]any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			return nil, err
		}
		status, text := answer(body)
		return response(status, text), nil
	})
}

// Clients choose the names of models. However many there are, profiles stay bounded and are learned again.
func TestProfilesAreBounded(t *testing.T) {
	t.Parallel()
	requests := 0
	o := provider.DefaultOpenAIOptions()
	o.BaseURL = "http://127.0.0.1:1/v1"
	o.HTTPClient = &http.Client{Transport: transport(func(body map[string]any) (int, string) {
		if requests++; body["tools"] != nil {
			return 400, `{"error":"m does not support tools"}`
		}
		return 200, `{"choices":[{"message":{"role":"assistant","content":"{\"code\":\"package tool\"}"}}]}`
	})}
	p, err := provider.NewOpenAI(o)
	if err != nil {
		t.Fatal(err)
	}
	q := request()
	for i := range 1001 {
		q.Model = fmt.Sprint("m", i)
		if _, err := p.Program(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	if first, last := p.Profile("m0"), p.Profile("m1000"); requests != 2002 || first.Tools.Value != "forced" ||
		last.Tools.Value != "none" {
		t.Errorf("%d requests; %+v, %+v", requests, first, last)
	}
}

// A context that the operator sets is respected from the first request.
func TestContextGiven(t *testing.T) {
	t.Parallel()
	p, s := start(t, func(o *provider.OpenAIOptions) { o.Context = 4096 })
	s.Default(func(openaitest.Request) openaitest.Reply { return openaitest.Code(source) })
	if _, err := p.Program(t.Context(), request()); err != nil {
		t.Fatal(err)
	}
	if got := number(s.Requests()[0].Body["max_tokens"]); got < 3000 || got >= 4096 {
		t.Errorf("asked for %v tokens", got)
	}
	if got := p.Profile("scripted").Context; got.Value != 4096 || got.At != nil {
		t.Errorf("got %+v", got)
	}
}

// A server that stops counting once the prompt does not fit states no size of it. The rest is estimated, not lowered
// token by token.
func TestContextAtLeast(t *testing.T) {
	t.Parallel()
	const context, prompt = 20000, 5000
	p, s := start(t, nil)
	s.Default(func(r openaitest.Request) openaitest.Reply {
		if most := int(number(r.Body["max_tokens"])); prompt+most > context {
			return openaitest.Reply{Status: 400,
				Body: errorBody(fmt.Sprintf(
					"This model's maximum context length is %d tokens. However, you requested %d output tokens and your prompt contains at least %d input tokens, for a total of at least %d tokens. Please reduce the length of the input prompt or the number of requested output tokens. (parameter=input_tokens, value=%d)", context, most, context-most+1, context+1, context-most+1))}
		}
		return openaitest.Code(source)
	})
	if _, err := p.Program(t.Context(), request()); err != nil || s.Count("", "") > 3 ||
		p.Profile("scripted").Context.Value != context {
		t.Errorf("got %v after %d requests, %+v", err, s.Count("", ""), p.Profile("scripted").Context)
	}
	doctor(t, s, nil, true, "")
}

// A prompt that does not fit is not sent again, and the context is known from then on.
func TestContextTooSmall(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"error":{"message":"The sum of prompt length (5000.0), query length (0) should not exceed max_num_tokens (4096)","type":"BadRequestError","code":400}}`,
		errorBody("Prompt length (5000) exceeds maximum sequence length (4096)"),
		errorBody("Input length (5000 tokens) exceeds the maximum allowed length (4096 tokens). Use a shorter input or enable --allow-auto-truncate."),
		`{"error":{"code":400,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"exceed_context_size_error","n_prompt_tokens":5000,"n_ctx":4096}}`,
		`{"error":"Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough. Try to load the model with a larger context length, or provide a shorter input"}`,
		`{"error":"The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 5000>= n_ctx: 4096). Try to load the model with a larger context length, or provide a shorter input."}`,
		errorBody("Prompt contains 5000 tokens and 0 draft tokens, too large for model with 4096 maximum context length"),
		errorBody("This model's maximum prompt length is 4096 but the request contains 5000 tokens."),
	} {
		p, s := start(t, nil)
		s.Answer("r", "m", openaitest.Reply{Status: 400, Body: body})
		_, err := p.Program(t.Context(), request())
		var failed *provider.Error
		if !errors.As(err, &failed) || failed.Usage.ModelRequests != 1 ||
			!strings.Contains(err.Error(), "OLLAMA_CONTEXT_LENGTH") {
			t.Errorf("got %v", err)
		}
		if got := p.Profile("scripted").Context; got.Value != 4096 || got.LearnedFrom == "" {
			t.Errorf("%s: got %+v", body, got)
		}
		doctor(t, s, nil, false, "OLLAMA_CONTEXT_LENGTH")
	}
}

// A service's limit of request size is respected like a context, and the prompt is short from then on.
func TestRequestTooLarge(t *testing.T) {
	t.Parallel()
	p, s := start(t, nil)
	s.Answer("r", "m", openaitest.Reply{Status: 413,
		Body: `{"error":{"code":"tokens_limit_reached","message":"Request body too large for gpt-4o model. Max size: 4000 tokens.","details":"Request body too large for gpt-4o model. Max size: 4000 tokens."}}`})
	_, err := p.Program(t.Context(), request())
	if !provider.TooLong(err) || s.Count("", "") != 1 || p.Profile("scripted").Context.Value != 4000 {
		t.Errorf("got %v after %d requests, %+v", err, s.Count("", ""), p.Profile("scripted").Context)
	}
	doctor(t, s, nil, false, "OLLAMA_CONTEXT_LENGTH")
}
