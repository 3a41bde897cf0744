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
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text))}
}

// What no repetition can cure is sent once, and the error says what to do about it.
func TestFinal(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		status int
		body   string
		want   string // in the message
	}{
		{"no balance at DeepSeek", 402, errorBody("Insufficient Balance", "type", "unknown_error"), "OPENAI_API_KEY"},
		{"quota at OpenAI", 429, errorBody("You exceeded your current quota, please check your plan and billing details.", "type", "insufficient_quota", "code", "insufficient_quota"), "add credit"},
		{"suspended at Moonshot", 429, errorBody("Your account org-x is suspended due to insufficient balance, please recharge your account or check your plan and billing details", "type", "exceeded_current_quota_error"), "add credit"},
		{"no balance at Zhipu", 429, `{"error":{"code":"1113","message":"您的账户已欠费，请充值后重试"}}`, "add credit"},
		{"quota 0 at Gemini", 429, `[{"error":{"code":429,"message":"You exceeded your current quota. * Quota exceeded for metric: generativelanguage.googleapis.com/generate_content_free_tier_requests, limit: 0\nPlease retry in 33.2s.","status":"RESOURCE_EXHAUSTED"}}]`, "add credit"},
		{"too large for Groq's rate", 413, errorBody("Request too large for model `x` in organization `org_y` service tier `on_demand` on tokens per minute (TPM): Limit 6000, Requested 12328, please reduce your message size and try again.", "type", "tokens", "code", "rate_limit_exceeded"), "--max-completion-tokens"},
		{"too large for OpenAI's rate", 429, errorBody("Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 342389. The input or output tokens must be reduced in order to run successfully.", "type", "tokens", "code", "rate_limit_exceeded"), "--max-completion-tokens"},
		{"credits at OpenRouter", 402, `{"error":{"message":"This request requires more credits, or fewer max_tokens. You requested up to 16384 tokens, but can only afford 2816.","code":402}}`, "add credit"},
		{"budget of LiteLLM", 400, errorBody("Budget has been exceeded! Current cost: 1.2, Max budget: 1.0", "type", "budget_exceeded"), "add credit"},
		{"wrong key", 401, errorBody("Incorrect API key provided: x", "code", "invalid_api_key"), "OPENAI_API_KEY"},
		{"wrong key at Gemini", 400, `[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]`, "OPENAI_API_KEY"},
		{"wrong key at xAI", 400, `{"code":"Client specified an invalid argument","error":"Incorrect API key provided: x. You can obtain an API key from https://console.x.ai."}`, "OPENAI_API_KEY"},
		{"wrong key behind LiteLLM", 500, errorBody("litellm.AuthenticationError: AuthenticationError: OpenAIException - Incorrect API key provided"), "OPENAI_API_KEY"},
		{"no key, by detail", 401, `{"detail":"Not authenticated"}`, "OPENAI_API_KEY"},
		{"forbidden", 403, errorBody("You have no access"), "right to ask this model"},
		{"no model at Ollama", 404, errorBody(`model "scripted" not found, try pulling it first`, "type", "api_error"), "ollama pull"},
		{"no model at OpenAI", 404, errorBody("The model `scripted` does not exist or you do not have access to it.", "code", "model_not_found"), "--model"},
		{"no model at DeepSeek", 400, errorBody("Model Not Exist"), "--model"},
		{"no deployment at Azure", 404, `{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}`, "--model"},
		{"no model at Anthropic", 404, `{"type":"error","error":{"type":"not_found_error","message":"model: claude-x"}}`, "--model"},
		{"no model at LM Studio", 404, `{"error":{"message":"No models loaded. Please load a model in the developer page or use the 'lms load' command."}}`, "--model"},
		{"nothing there", 404, `404 page not found`, "nothing is served at the address"},
		{"nothing there, by detail", 404, `{"detail":"Not Found"}`, "nothing is served at the address"},
		{"not by POST", 405, ``, "nothing is served at the address"},
		{"http to https", 400, "<html><head><title>400 The plain HTTP request was sent to HTTPS port</title></head></html>", "https://"},
		{"contents", 400, errorBody("The response was filtered due to the prompt triggering Azure OpenAI's content management policy.", "code", "content_filter"), "rules for contents"},
		{"memory", 500, `{"error":"model requires more system memory (9.9 GiB) than is available (4.2 GiB)"}`, "smaller model"},
		{"a model that cannot be loaded", 500, `{"error":"error loading model: unable to load model"}`, "its log says why"},
		{"an error of the gateway's own", 400, `{"error":{"message":"{\"error\":{\"message\":\"Model Not Exist\"}}","code":400}}`, "--model"},
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
			if !errors.As(err, &failed) || s.Count("", "") != 1 || !strings.Contains(err.Error(), tt.want) || failed.Reason == provider.ReasonNetwork {
				t.Errorf("got %v after %d requests, want one and %q", err, s.Count("", ""), tt.want)
			}
			if tt.status < 500 && !paid.bills[0].Free {
				t.Errorf("a refusal is billed %+v", paid.bills[0])
			}
			doctor(t, s, nil, false, tt.want)
		})
	}
}

// A server that loads its model is waited for, a full one within the tries, and both within the budget.
func TestPatience(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		status   int
		body     string
		ready    time.Duration // when the server answers; 0: never
		requests int           // at least
		ok       bool
		waited   time.Duration // at most
	}{
		{"llama.cpp loads", 503, `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`, 45 * time.Second, 20, true, 48 * time.Second},
		{"Hugging Face loads", 503, `{"error":"Model x is currently loading","estimated_time":20.5}`, 25 * time.Second, 10, true, 28 * time.Second},
		{"loads for ever", 503, `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`, 0, 50, false, 121 * time.Second},
		{"overloaded for a moment", 529, errorBody("Overloaded", "type", "overloaded_error"), time.Second, 2, true, 5 * time.Second},
		{"overloaded", 503, errorBody("The server is overloaded"), 0, 4, false, 61 * time.Second},
		{"rate by Gemini", 429, `[{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"33s"}]}}]`, 30 * time.Second, 2, true, 33 * time.Second},
		{"rate by text", 429, errorBody("Rate limit reached for x on tokens per min (TPM): Limit 10000, Used 9000, Requested 3000. Please try again in 12s."), 10 * time.Second, 2, true, 12 * time.Second},
		{"rate of the day", 429, errorBody("Rate limit reached for model `x` on tokens per day (TPD): Limit 100000, Used 97050, Requested 3619. Please try again in 9m38.016s. Need more tokens? Upgrade to Dev Tier today at https://console.groq.com/settings/billing"), 0, 1, false, 0},
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

// What the server could not read as a call is read here; where it holds no program, the question stays as it is, tools included.
func TestFailedCall(t *testing.T) {
	t.Parallel()
	for name, said := range map[string]string{
		"a call":           `{"name": "submit_program", "arguments": {"code": "package tool\n"}}`,
		"a fence":          "```go\npackage tool\n```",
		"the code in JSON": `{"code":"package tool\n"}`,
	} {
		p, s := start(t, nil)
		s.Answer("r", "m", openaitest.Reply{Status: 400, Body: errorBody("Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.", "code", "tool_use_failed", "failed_generation", said)})
		if reply, err := p.Program(t.Context(), request()); err != nil || strings.TrimSpace(reply.Code) != "package tool" || s.Count("", "") != 1 {
			t.Errorf("%s: got %q, %v", name, reply.Code, err)
		}
		doctor(t, s, nil, true, "")
	}
	for _, r := range []openaitest.Reply{
		{Status: 400, Body: errorBody("Failed to call a function. Please adjust your prompt.", "code", "tool_use_failed", "failed_generation", "x")},
		{Status: 400, Body: errorBody("tool call validation failed: parameters for tool submit_program did not match schema", "code", "tool_use_failed", "param", "")},
		{Status: 500, Body: `{"error":"error parsing tool call: raw='ls -R', err=invalid character 'l' looking for beginning of value"}`},
		{Status: 500, Body: `{"error":{"code":500,"message":"Failed to parse input at pos 12: <tool_call>","type":"server_error"}}`},
	} {
		p, s := start(t, nil)
		s.Answer("r", "m", r)
		_, err := p.Program(t.Context(), request())
		if !errors.Is(err, provider.ErrInvalidPayload) || s.Count("", "") != 1 || p.Profile("scripted").Tools.Value != "forced" {
			t.Errorf("%s: got %v after %d requests, profile %+v", r.Body, err, s.Count("", ""), p.Profile("scripted").Tools)
		}
		again, ok := provider.Again(request().Messages, err)
		if !ok || len(again) < 2 || !strings.Contains(again[len(again)-1].Content, "could not be used") {
			t.Errorf("%s: %v, %+v", r.Body, ok, again)
		}
		doctor(t, s, nil, false, "")
	}
}

// A redirect is named with what to set, and not followed.
func TestRedirect(t *testing.T) {
	t.Parallel()
	p, s := start(t, nil)
	s.Answer("r", "m", openaitest.Reply{Status: 301, Header: map[string]string{"Location": "https://models.example/v1/chat/completions?key=sesame-open"}})
	_, err := p.Program(t.Context(), request())
	if err == nil || s.Count("", "") != 1 || !strings.Contains(err.Error(), "set OPENAI_BASE_URL to https://models.example/v1") || strings.Contains(err.Error(), "sesame") {
		t.Errorf("got %v after %d requests", err, s.Count("", ""))
	}
	doctor(t, s, nil, false, "set OPENAI_BASE_URL to https://models.example/v1")
}

// An address without a version is named.
func TestAddressWithoutVersion(t *testing.T) {
	t.Parallel()
	for _, r := range []openaitest.Reply{{Status: 404, Body: "404 page not found"}, {Status: 405, Body: `{"detail":"Method Not Allowed"}`}, {Body: "<!DOCTYPE html><html><title>Open WebUI</title></html>"}} {
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
