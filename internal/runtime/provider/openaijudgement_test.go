package provider_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/provider/openaitest"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func response(status int, text string) *http.Response {
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: http.Header{},
		Body: io.NopCloser(strings.NewReader(text))}
}

// A failure that no repetition can cure is sent once, and the error names the remedy.
func TestFinal(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		status int
		body   string
		want   string // in the message
	}{
		{"no balance at DeepSeek", 402, errorBody("Insufficient Balance", "type", "unknown_error"), "OPENAI_API_KEY"},
		{"quota at OpenAI", 429, errorBody(
			"You exceeded your current quota, please check your plan and billing details.", "type",
			"insufficient_quota", "code", "insufficient_quota"), "add credit"},
		{"suspended at Moonshot", 429,
			errorBody("Your account org-x is suspended due to insufficient balance, please recharge your account or check your plan and billing details", "type", "exceeded_current_quota_error"), "add credit"},
		{"no balance at Zhipu", 429, `{"error":{"code":"1113","message":"您的账户已欠费，请充值后重试"}}`, "add credit"},
		{"quota 0 at Gemini", 429,
			`[{"error":{"code":429,"message":"You exceeded your current quota. * Quota exceeded for metric: generativelanguage.googleapis.com/generate_content_free_tier_requests, limit: 0\nPlease retry in 33.2s.","status":"RESOURCE_EXHAUSTED"}}]`, "add credit"},
		{"too large for Groq's rate", 413,
			errorBody("Request too large for model `x` in organization `org_y` service tier `on_demand` on tokens per minute (TPM): Limit 6000, Requested 12328, please reduce your message size and try again.", "type", "tokens", "code", "rate_limit_exceeded"), "--max-completion-tokens"},
		{"too large for OpenAI's rate", 429,
			errorBody("Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 342389. The input or output tokens must be reduced in order to run successfully.", "type", "tokens", "code", "rate_limit_exceeded"), "--max-completion-tokens"},
		{"credits at OpenRouter", 402,
			`{"error":{"message":"This request requires more credits, or fewer max_tokens. You requested up to 16384 tokens, but can only afford 2816.","code":402}}`, "add credit"},
		{"budget of LiteLLM", 400, errorBody("Budget has been exceeded! Current cost: 1.2, Max budget: 1.0", "type",
			"budget_exceeded"), "add credit"},
		{"no balance at MiniMax", 500,
			`{"type":"error","error":{"type":"api_error","message":"insufficient balance (1008)"},"request_id":"0"}`,
			"add credit"},
		{"no balance at SiliconFlow", 403,
			`{"code":30001,"message":"Sorry, your account balance is insufficient","data":null}`, "add credit"},
		{"spent at xAI", 429, `{"code":"Some resource has been exhausted","error":"Your team x has either used all available credits or reached its monthly spending limit. To continue making API requests, please purchase more credits or raise your spending limit."}`, "add credit"},
		{"the week's use at Ollama", 429,
			`{"error":"you (x) have reached your weekly usage limit, upgrade for higher limits: https://ollama.com/upgrade"}`, "raise the plan"},
		{"the hour's use at Ollama", 429,
			`{"error":"you've reached your hourly usage limit, please wait or upgrade to continue"}`, "raise the plan"},
		{"the plan at Ollama", 403,
			errorBody("this model requires a subscription, upgrade for access: https://ollama.com/upgrade", "type",
				"permission_error"), "raise the plan"},
		{"the cycle's use at Kimi", 403,
			`{"error":{"type":"permission_error","message":"You've reached your usage limit for this billing cycle. Your quota will be refreshed in the next cycle. To continue now, purchase extra usage or upgrade your plan"},"type":"error"}`, "raise the plan"},
		{"the session's use at Ollama", 429,
			`{"error":"you (x) have reached your session usage limit, upgrade for higher limits: https://ollama.com/upgrade"}`, "raise the plan"},
		{"five hours' use at Z.ai", 429,
			`{"error":{"code":"1308","message":"Usage limit reached for 5 hour. Your limit will reset at 2026-09-09 05:38:28"}}`, "raise the plan"},
		{"five hours' use at Zhipu", 429,
			`{"error":{"code":"1308","message":"已达到 5 小时的使用上限。您的限额将在 2026-08-25 07:41:44 重置。"}}`, "raise the plan"},
		{"the day's use at Cloudflare", 429,
			`{"result":null,"success":false,"errors":[{"code":4006,"message":"AiError: you have used up your daily free allocation of 10,000 neurons, please upgrade to Cloudflare's Workers Paid plan if you would like to continue usage."}],"messages":[]}`, "raise the plan"},
		{"the day's use at OpenRouter", 429,
			`{"error":{"message":"Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day","code":429}}`, "raise the plan"},
		{"the day's use at Baidu", 200,
			`{"error_code":17,"error_msg":"Open api daily request limit reached","id":"as-x"}`, "raise the plan"},
		{"no balance at MiniMax, within a 200", 200,
			`{"choices":null,"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}`,
			"insufficient balance; add credit"},
		{"no model at RunPod, within a 200", 200,
			"{\"code\":404,\"message\":\"The model `scripted` does not exist.\",\"object\":\"error\",\"param\":null,\"type\":\"NotFoundError\"}", "--model"},
		{"paused at Volcengine", 429,
			`{"error":{"code":"SetLimitExceeded","message":"Your account [2] has reached the set inference limit for the [m] model, and the model service has been paused. To continue using this model, please visit the Model Activation page to adjust or close the \"Safe Experience Mode\".","type":"TooManyRequests"}}`, "raise the plan"},
		{"credits at Hugging Face", 402,
			`{"error":"You have exceeded your monthly included credits for Inference Providers. Subscribe to PRO to get 20x more monthly included credits."}`, "add credit"},
		{"wrong key", 401, errorBody("Incorrect API key provided: x", "code", "invalid_api_key"), "OPENAI_API_KEY"},
		{"wrong key at Gemini", 400,
			`[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]`, "OPENAI_API_KEY"},
		{"wrong key at xAI", 400,
			`{"code":"Client specified an invalid argument","error":"Incorrect API key provided: x. You can obtain an API key from https://console.x.ai."}`, "OPENAI_API_KEY"},
		{"wrong key behind LiteLLM", 500,
			errorBody("litellm.AuthenticationError: AuthenticationError: OpenAIException - Incorrect API key provided"),
			"OPENAI_API_KEY"},
		{"no key, by detail", 401, `{"detail":"Not authenticated"}`, "OPENAI_API_KEY"},
		{"forbidden", 403, errorBody("You have no access"), "right to ask this model"},
		{"no model at Ollama", 404, errorBody(`model "scripted" not found, try pulling it first`, "type", "api_error"),
			"ollama pull"},
		{"no model at OpenAI", 404, errorBody("The model `scripted` does not exist or you do not have access to it.",
			"code", "model_not_found"), "--model"},
		{"no model at DeepSeek", 400, errorBody("Model Not Exist"), "--model"},
		{"no deployment at Azure", 404,
			`{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}`,
			"--model"},
		{"no model at Anthropic", 404,
			`{"type":"error","error":{"type":"not_found_error","message":"model: claude-x"}}`, "--model"},
		{"no model at LM Studio", 404,
			`{"error":{"message":"No models loaded. Please load a model in the developer page or use the 'lms load' command."}}`, "--model"},
		{"no model at Hugging Face", 400,
			errorBody("The requested model 'scripted' is not supported by any provider you have enabled.", "param",
				"model", "code", "model_not_supported"), "--model"},
		{"no model for chats at OpenAI", 404,
			errorBody("This is not a chat model and thus not supported in the v1/chat/completions endpoint. Did you mean to use v1/completions?", "param", "model"), "--model"},
		{"a model for responses at OpenAI", 404,
			errorBody("This model is only supported in v1/responses and not in v1/chat/completions.", "param", "model"),
			"--model"},
		{"no model at Perplexity", 400,
			errorBody("Invalid model 'scripted'. Permitted models can be found in the documentation at https://docs.perplexity.ai/guides/model-cards.", "type", "invalid_model"), "--model"},
		{"no model at SiliconFlow", 400,
			`{"code":20012,"message":"Model does not exist. Please check it carefully.","data":null}`, "--model"},
		{"no model that is served at Together", 400,
			errorBody("Unable to access non-serverless model scripted. Please visit https://api.together.ai/models/scripted to create and start a new dedicated endpoint for the model.", "code", "model_not_available"), "--model"},
		{"no endpoint at Together", 400,
			errorBody("The dedicated endpoint for scripted is not running. Please visit https://api.together.ai/models to start the endpoint.", "code", "dedicated_endpoint_not_running"), "--model"},
		{"a model that is not opened at Volcengine", 404,
			`{"error":{"code":"ModelNotOpen","message":"Your account 2 has not activated the model scripted. Please activate the model service in the Ark Console.","type":"NotFound"}}`, "--model"},
		{"no endpoint at OpenRouter", 404,
			`{"error":{"message":"No endpoints found matching your data policy. Configure: https://openrouter.ai/settings/privacy","code":404}}`, "--model"},
		{"no provider at OpenRouter", 404,
			`{"error":{"message":"No allowed providers are available for the selected model.","code":404}}`, "--model"},
		{"no channel at One API", 503,
			`{"error":{"message":"当前分组 default 下对于模型 scripted 无可用渠道 (request id: 2)","type":"one_api_error"}}`,
			"--model"},
		{"no channel at New API", 503,
			`{"error":{"code":"model_not_found","message":"No available channel for model scripted under group default (distributor) (request id: 2)","type":"new_api_error"}}`, "--model"},
		{"no profile at Bedrock", 400,
			`{"detail":"Invocation of model ID scripted with on-demand throughput isn\u2019t supported. Retry your request with the ID or ARN of an inference profile that contains this model."}`, "--model"},
		{"an unloaded model at LM Studio", 400, `{"error":"Model is unloaded."}`, "--model"},
		{"a model that SambaNova dropped", 410,
			errorBody("The requested model (scripted) is not available on SambaNova Cloud. For more information, please visit https://docs.sambanova.ai/cloud/docs/resources/deprecations."), "--model"},
		{"no route at Cloudflare", 404,
			`{"result":null,"success":false,"errors":[{"code":7003,"message":"Could not route to /client/v4/accounts/x/ai/v1/chat/completions, perhaps your object identifier is invalid?"}],"messages":[]}`, "nothing is served at the address"},
		{"nothing there", 404, `404 page not found`, "nothing is served at the address"},
		{"nothing there, by detail", 404, `{"detail":"Not Found"}`, "nothing is served at the address"},
		{"not by POST", 405, ``, "nothing is served at the address"},
		{"http to https", 400, "<html><head><title>400 The plain HTTP request was sent to HTTPS port</title></head></html>", "https://"},
		{"contents", 400, errorBody(
			"The response was filtered due to the prompt triggering Azure OpenAI's content management policy.", "code",
			"content_filter"), "rules for contents"},
		{"too long for Anthropic behind LiteLLM", 400,
			errorBody("litellm.BadRequestError: litellm.ContextWindowExceededError: AnthropicError - {\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"prompt is too long: 3100 tokens > 2000 maximum\"}}\nReceived Model Group=x\nAvailable Model Group Fallbacks=None", "code", "400"), "OLLAMA_CONTEXT_LENGTH"},
		{"too long for Gemini", 400,
			`[{"error":{"code":400,"message":"The input token count (3100) exceeds the maximum number of tokens allowed (2000).","status":"INVALID_ARGUMENT"}}]`, "OLLAMA_CONTEXT_LENGTH"},
		{"memory", 500, `{"error":"model requires more system memory (9.9 GiB) than is available (4.2 GiB)"}`,
			"smaller model"},
		{"a model that cannot be loaded", 500, `{"error":"error loading model: unable to load model"}`,
			"its log says why"},
		{"a model that LM Studio does not load", 400,
			`{"error":"Failed to load model \"scripted\". Error: Model loading aborted due to insufficient system resources. Overloading the system will likely cause it to freeze."}`, "smaller model"},
		{"a model that crashed", 400,
			`{"error":"The model has crashed without additional information. (Exit code: 18446744072635812000)"}`,
			"its log says why"},
		{"a model that LocalAI cannot load", 500,
			`{"error":{"code":500,"message":"could not load model: rpc error: code = Unavailable desc = error reading from server: EOF","type":""}}`, "its log says why"},
		{"an error of the gateway's own", 400,
			`{"error":{"message":"{\"error\":{\"message\":\"Model Not Exist\"}}","code":400}}`, "--model"},
		{"a plain refusal", 400, errorBody("frequency must be low"), "frequency must be low"},
		{"one that asks for no retry", 500, "", "failed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, s := start(t, nil)
			r := openaitest.Reply{Status: tt.status, Body: tt.body}
			if tt.status == 500 {
				r.Header = map[string]string{"X-Should-Retry": "false"}
			}
			if tt.body == "" {
				r.Body = " "
			}
			s.Answer("r", "m", r)
			var paid purse
			q := request()
			q.Charge = paid.charge
			_, err := p.Program(t.Context(), q)
			var failed *provider.Error
			if !errors.As(err, &failed) || s.Count("", "") != 1 || !strings.Contains(err.Error(), tt.want) ||
				failed.Reason == provider.ReasonNetwork {
				t.Errorf("got %v after %d requests, want one and %q", err, s.Count("", ""), tt.want)
			}
			if tt.status < 500 && !paid.bills[0].Free {
				t.Errorf("a refusal is billed %+v", paid.bills[0])
			}
			doctor(t, s, nil, false, tt.want)
		})
	}
}

// The daemon waits for a server that loads its model, repeats requests to a full one up to MaxTries, and keeps both
// within the budget.
func TestPatience(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		status   int
		body     string
		ready    time.Duration // when the server answers; 0 means never
		requests int           // at least
		ok       bool
		waited   time.Duration // at most
	}{
		{"llama.cpp loads", 503, `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`,
			45 * time.Second, 20, true, 48 * time.Second},
		{"Hugging Face loads", 503, `{"error":"Model x is currently loading","estimated_time":20.5}`, 25 * time.Second,
			10, true, 28 * time.Second},
		{"loads for ever", 503, `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`, 0, 50,
			false, 121 * time.Second},
		{"overloaded for a moment", 529, errorBody("Overloaded", "type", "overloaded_error"), time.Second, 2, true,
			5 * time.Second},
		{"overloaded", 503, errorBody("The server is overloaded"), 0, 4, false, 61 * time.Second},
		{"rate by Gemini", 429, `[{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"33s"}]}}]`, 30 * time.Second, 2, true, 33 * time.Second},
		{"rate by text", 429, errorBody(
			"Rate limit reached for x on tokens per min (TPM): Limit 10000, Used 9000, Requested 3000. Please try again in 12s."), 10 * time.Second, 2, true, 12 * time.Second},
		{"rate by words", 429, errorBody(
			"Requests to the ChatCompletions_Create Operation have exceeded token rate limit of your current OpenAI S0 pricing tier. Please retry after 20 seconds.", "code", "429"), 18 * time.Second, 2, true, 20 * time.Second},
		{"rate at Azure's gateway", 429,
			`{"statusCode":429,"message":"Rate limit is exceeded. Try again in 7 seconds."}`, 6 * time.Second, 2, true,
			7 * time.Second},
		{"rate in minutes", 429, errorBody("Rate limit exceeded, please try again in 20 minutes"), 0, 1, false, 0},
		{"rate of the day at GitHub", 429,
			`{"error":{"code":"RateLimitReached","message":"Rate limit of 50 per 86400s exceeded for UserByModelByDay. Please wait 41000 seconds before retrying.","details":"Please wait 41000 seconds before retrying."}}`, 0, 1, false, 0},
		{"busy KoboldCpp", 503, `{"detail":{"msg":"Server is busy; please try again later.","type":"service_unavailable"}}`, time.Second, 2, true, 5 * time.Second},
		{"busy Zhipu", 429, `{"error":{"code":"1305","message":"该模型当前访问量过大，请您稍后再试"}}`, time.Second, 2, true,
			5 * time.Second},
		{"rate of the day", 429, errorBody(
			"Rate limit reached for model `x` on tokens per day (TPD): Limit 100000, Used 97050, Requested 3619. Please try again in 9m38.016s. Need more tokens? Upgrade to Dev Tier today at https://console.groq.com/settings/billing"), 0, 1, false, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, requests := time.Now(), 0
				o := provider.DefaultOpenAIOptions()
				o.HTTPClient = &http.Client{Transport: transport(func(map[string]any) (int, string) {
					requests++
					if tt.ready == 0 || time.Since(began) < tt.ready {
						return tt.status, tt.body
					}
					return 200, `{"choices":[{"message":{"role":"assistant","content":"{\"code\":\"package tool\"}"}}]}`
				})}
				p, err := provider.NewOpenAI(o)
				if err != nil {
					t.Fatal(err)
				}
				var paid purse
				q := request()
				q.Charge = paid.charge
				_, err = p.Program(t.Context(), q)
				if waited := time.Since(began); (err == nil) != tt.ok || requests < tt.requests || waited > tt.waited {
					t.Errorf("got %v after %d requests and %s", err, requests, waited)
				}
				for _, b := range paid.bills[:requests-1] {
					if !b.Free {
						t.Errorf("a request that was turned away is billed %+v", b)
					}
				}
				began, o.Model = time.Now(), "scripted"
				if p, err = provider.NewOpenAI(o); err != nil {
					t.Fatal(err)
				}
				examine(t, p, tt.ok, "")
			})
		})
	}
}

// A model's output that the server could not read as a call is read here. If it contains no program, the question stays
// unchanged, including its tools.
func TestFailedCall(t *testing.T) {
	t.Parallel()
	for name, said := range map[string]string{
		"a call":           `{"name": "submit_program", "arguments": {"code": "package tool\n"}}`,
		"a fence":          "```go\npackage tool\n```",
		"the code in JSON": `{"code":"package tool\n"}`,
	} {
		p, s := start(t, nil)
		s.Answer("r", "m", openaitest.Reply{Status: 400,
			Body: errorBody("Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.", "code", "tool_use_failed", "failed_generation", said)})
		if reply, err := p.Program(t.Context(), request()); err != nil ||
			strings.TrimSpace(reply.Code) != "package tool" || s.Count("", "") != 1 {
			t.Errorf("%s: got %q, %v", name, reply.Code, err)
		}
		doctor(t, s, nil, true, "")
	}
	for _, r := range []openaitest.Reply{
		{Status: 400, Body: errorBody("Failed to call a function. Please adjust your prompt.", "code",
			"tool_use_failed", "failed_generation", "x")},
		{Status: 400, Body: errorBody(
			"tool call validation failed: parameters for tool submit_program did not match schema", "code",
			"tool_use_failed", "param", "")},
		{Status: 500, Body: `{"error":"error parsing tool call: raw='ls -R', err=invalid character 'l' looking for beginning of value"}`},
		{Status: 500, Body: `{"error":{"code":500,"message":"Failed to parse input at pos 12: <tool_call>","type":"server_error"}}`},
		{Status: 500, Body: `{"error":{"code":500,"message":"The model produced output that does not match the expected peg-native format","type":"server_error"}}`},
		{Status: 500, Body: errorBody(
			"litellm.InternalServerError: InternalServerError: Custom_openaiException - Failed to parse tool call arguments as JSON: [json.exception.parse_error.101] parse error at line 1, column 131: unexpected end of input")},
	} {
		p, s := start(t, nil)
		s.Answer("r", "m", r)
		_, err := p.Program(t.Context(), request())
		if !errors.Is(err, provider.ErrInvalidPayload) || s.Count("", "") != 1 ||
			p.Profile("scripted").Tools.Value != "forced" {
			t.Errorf("%s: got %v after %d requests, profile %+v", r.Body, err, s.Count("", ""),
				p.Profile("scripted").Tools)
		}
		again, ok := provider.Again(request().Messages, err)
		if !ok || len(again) < 2 || !strings.Contains(again[len(again)-1].Content, "could not be used") {
			t.Errorf("%s: %v, %+v", r.Body, ok, again)
		}
		doctor(t, s, nil, false, "")
	}
}

// A redirect is reported with the setting that it requires, and not followed.
func TestRedirect(t *testing.T) {
	t.Parallel()
	p, s := start(t, nil)
	s.Answer("r", "m", openaitest.Reply{Status: 301,
		Header: map[string]string{"Location": "https://models.example/v1/chat/completions?key=sesame-open"}})
	_, err := p.Program(t.Context(), request())
	if err == nil || s.Count("", "") != 1 || !strings.Contains(err.Error(),
		"set OPENAI_BASE_URL to https://models.example/v1") || strings.Contains(err.Error(), "sesame") {
		t.Errorf("got %v after %d requests", err, s.Count("", ""))
	}
	doctor(t, s, nil, false, "set OPENAI_BASE_URL to https://models.example/v1")
}

// An address without a version is reported.
func TestAddressWithoutVersion(t *testing.T) {
	t.Parallel()
	for _, r := range []openaitest.Reply{{Status: 404, Body: "404 page not found"},
		{Status: 405, Body: `{"detail":"Method Not Allowed"}`},
		{Body: "<!DOCTYPE html><html><title>Open WebUI</title></html>"}} {
		change := func(o *provider.OpenAIOptions) { o.BaseURL = strings.TrimSuffix(o.BaseURL, "/v1") }
		p, s := start(t, change)
		s.Answer("r", "m", r)
		_, err := p.Program(t.Context(), request())
		if err == nil || s.Count("", "") != 1 || !strings.Contains(err.Error(), "try "+s.URL) {
			t.Errorf("got %v", err)
		}
		doctor(t, s, change, false, "try "+s.URL)
	}
}
