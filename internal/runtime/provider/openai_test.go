package provider_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/provider/openaitest"
)

const key = "sk-a-very-secret-key-0123456789"

const source = "package tool\n\nfunc Run() {}\n"

func start(t *testing.T, change func(*provider.OpenAIOptions)) (*provider.OpenAI, *openaitest.Server) {
	t.Helper()
	s := openaitest.New()
	t.Cleanup(s.Close)
	o := provider.DefaultOpenAIOptions()
	o.Key, o.BaseURL, o.RetryInterval = key, s.URL, time.Millisecond
	if change != nil {
		change(&o)
	}
	p, err := provider.NewOpenAI(o)
	if err != nil {
		t.Fatal(err)
	}
	return p, s
}

func request() provider.Request {
	return provider.Request{Kind: provider.KindForge, Role: "r", Method: "m", Model: "scripted",
		Messages: []provider.Message{{Role: "system", Content: "s"},
			{Role: "user", Content: "<role>r</role><method>m</method>"}}, TraceParent: "00-aa-bb-01"}
}

// TestProgram covers replies of real servers and what results from them.
func TestProgram(t *testing.T) {
	t.Parallel()
	content := func(c string) []openaitest.Reply { return []openaitest.Reply{{Content: c}} }
	tool := func(name, arguments string) []openaitest.Reply {
		return []openaitest.Reply{{Message: map[string]any{"role": "assistant", "content": nil,
			"tool_calls": []any{openaitest.ToolCall(name, arguments)}}}}
	}
	status := func(n int, then ...openaitest.Reply) []openaitest.Reply {
		return append([]openaitest.Reply{{Status: n}}, then...)
	}
	good := openaitest.Code(source)
	tests := []struct {
		name     string
		replies  []openaitest.Reply
		code     string // "" expects an error
		reason   string
		requests int
		tokens   int // prompt tokens
	}{
		{"tool call", []openaitest.Reply{good}, source, "", 1, 10},
		{"content as JSON", content(`{"code":"package tool\n"}`), "package tool\n", "", 1, 10},
		{"content as JSON in a fence", content("Here:\n```json\n{\"code\":\"package tool\\n\"}\n```"), "package tool\n",
			"", 1, 10},
		{"fenced code", content("Sure!\n```go\npackage tool\n```\nDone."), "package tool\n", "", 1, 10},
		{"fence without a tag", content("```\npackage tool\n```"), "package tool\n", "", 1, 10},
		{"several fences, the last program",
			content("Run\n```sh\nls\n```\nand\n```go\npackage other\n\nfunc Run() {}\n```\n```go\n" + source +
				"```\n```go\nresult := Run()\n```"), source, "", 1, 10},
		{"fence never closed", content("```go\npackage tool"), "package tool", "", 1, 10},
		{"longer fence around a shorter one", content("````go\npackage tool\n// ```\n````"), "package tool\n// ```\n",
			"", 1, 10},
		{"bare source", content("// a program\npackage tool\n"), "// a program\npackage tool", "", 1, 10},
		{"after thoughts", content("<think>```go\nwrong\n```</think>```go\npackage tool\n```"), "package tool\n", "", 1,
			10},
		{"a fence inside the code", tool("submit_program", `{"code":"`+"```go\\npackage tool\\n```"+`"}`),
			"package tool\n", "", 1, 10},
		{"wrong tool name", tool("submitProgram", `{"code":"package tool\n"}`), "package tool\n", "", 1, 10},
		{"source as arguments", tool("submit_program", source), source, "", 1, 10},
		{"old function_call", []openaitest.Reply{{Message: map[string]any{"role": "assistant",
			"function_call": map[string]any{"name": "submit_program", "arguments": `{"code":"package tool\n"}`}}}},
			"package tool\n", "", 1, 10},
		{"arguments are not JSON", tool("submit_program", `{"code":`), "", "invalid_payload", 1, 10},
		{"code is null", tool("submit_program", `{"code":null}`), "", "invalid_payload", 1, 10},
		{"code is blank", tool("submit_program", `{"code":" \n\t"}`), "", "invalid_payload", 1, 10},
		{"code is a number", tool("submit_program", `{"code":5}`), "", "invalid_payload", 1, 10},
		{"no code", tool("submit_program", `{"source":"x"}`), "", "invalid_payload", 1, 10},
		{"empty fence", content("```go\n```"), "", "invalid_payload", 1, 10},
		{"prose", content("I cannot do that."), "", "invalid_payload", 1, 10},
		{"nothing", []openaitest.Reply{{Message: map[string]any{"role": "assistant", "content": ""}}}, "",
			"invalid_payload", 1, 10},
		{"refusal", []openaitest.Reply{{Message: map[string]any{"role": "assistant", "refusal": "no"}}}, "",
			"invalid_payload", 1, 10},
		{"cut off", []openaitest.Reply{{Message: map[string]any{"role": "assistant",
			"tool_calls": []any{openaitest.ToolCall("submit_program", `{"code":"pack`)}}, Finish: "length"}}, "",
			"cut_off", 1, 10},
		{"no choices", []openaitest.Reply{{Body: `{"choices":[],"usage":{"prompt_tokens":7}}`}}, "", "invalid_payload",
			1, 7},
		{"500, then right", status(500, openaitest.Reply{Status: 503}, good), source, "", 3, 10},
		{"429, then right", status(429, good), source, "", 2, 10},
		{"connection closed, then right", []openaitest.Reply{{Abort: true}, good}, source, "", 2, 10},
		{"always 500", status(500), "", "server_error", 3, 0},
		{"always 429", status(429), "", "rate_limited", 3, 0},
		{"always closed", []openaitest.Reply{{Abort: true}}, "", "network", 3, 0},
		{"rubbish", []openaitest.Reply{{Body: `rubbish`}}, "", "network", 1, 0},
		{"truncated JSON", []openaitest.Reply{{Body: `{"choices":[{"mess`}, good}, "", "network", 1, 0},
		{"a web page", []openaitest.Reply{{Body: `<html>`}}, "", "rejected", 1, 0},
		{"quota used up", []openaitest.Reply{{Status: 429,
			Body: `{"error":{"message":"You exceeded your quota","type":"insufficient_quota","code":"insufficient_quota"}}`}}, "", "rate_limited", 1, 0},
		{"bad key", status(401), "", "rejected", 1, 0},
		{"tools not supported, then plain",
			[]openaitest.Reply{{Status: 400, Body: `{"error":{"message":"tools are not supported"}}`}, good}, source,
			"", 2, 10},
		{"a 500 that speaks of tools, then plain",
			[]openaitest.Reply{{Status: 500, Body: `{"error":{"message":"tools param requires --jinja flag"}}`}, good},
			source, "", 2, 10},
		{"refused for a reason that no way cures", status(400), "", "rejected", 1, 0},
		{"refused without a reason, whatever is asked",
			[]openaitest.Reply{{Status: 400, Body: `{"error":{"message":"Bad Request"}}`}}, "", "rejected", 2, 0},
		{"a reply without end", []openaitest.Reply{{Body: `{"id":"` + strings.Repeat("x", 1<<20) + `"}`}}, "",
			"no_answer", 1, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			change := func(o *provider.OpenAIOptions) { o.MaxTries, o.MaxReply = 3, 64<<10 }
			p, s := start(t, change)
			s.Answer("r", "m", tt.replies...)
			defer func() {
				s.Answer("r", "m", tt.replies...)
				doctor(t, s, change, tt.code != "" || tt.name == "truncated JSON", "") // it asks once more
			}()
			reply, err := p.Program(t.Context(), request())
			usage := reply.Usage
			var failed *provider.Error
			if errors.As(err, &failed) {
				usage = failed.Usage
			}
			if n := len(s.Requests()); n != tt.requests || usage.ModelRequests != tt.requests ||
				usage.PromptTokens != tt.tokens {
				t.Errorf("got %d requests and usage %+v, want %d and %d prompt tokens", n, usage, tt.requests,
					tt.tokens)
			}
			if tt.code != "" {
				if err != nil || reply.Code != tt.code || reply.Model == "" {
					t.Errorf("got %q, %v, want %q", reply.Code, err, tt.code)
				}
				return
			}
			if failed == nil || failed.Reason != tt.reason || failed.Message == "" {
				t.Fatalf("got %q, %v, want an Error with reason %s", reply.Code, err, tt.reason)
			}
			payload := tt.reason == "invalid_payload"
			if errors.Is(err, provider.ErrInvalidPayload) != payload ||
				failed.Type != map[bool]string{true: agent.ErrInvalidCode, false: agent.ErrProvider}[payload] {
				t.Errorf("%s has type %s", tt.reason, failed.Type)
			}
		})
	}
}

func TestRequestForm(t *testing.T) {
	t.Parallel()
	p, s := start(t, nil)
	s.Answer("r", "m", openaitest.Code(source))
	if _, err := p.Program(t.Context(), request()); err != nil {
		t.Fatal(err)
	}
	r := s.Requests()[0]
	if r.Path != "/v1/chat/completions" || r.Header.Get("Authorization") != "Bearer "+key ||
		r.Header.Get("Traceparent") != "00-aa-bb-01" {
		t.Errorf("got path %s, headers %v", r.Path, r.Header)
	}
	choice, _ := json.Marshal(r.Body["tool_choice"])
	if string(choice) != `{"function":{"name":"submit_program"},"type":"function"}` || r.Body["stream"] == true {
		t.Errorf("got tool_choice %s", choice)
	}
	tools, _ := json.Marshal(r.Body["tools"])
	for _, want := range []string{`"code"`, `"notes"`, `"solver_shape"`, `"required":["code"]`} {
		if !strings.Contains(string(tools), want) {
			t.Errorf("tools lack %s: %s", want, tools)
		}
	}
}

func TestHangingServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		requests := 0
		o := provider.DefaultOpenAIOptions()
		o.HTTPClient = &http.Client{Transport: hanging(func() { requests++ })}
		p, err := provider.NewOpenAI(o)
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Program(t.Context(), request())
		var failed *provider.Error
		if !errors.As(err, &failed) || failed.Reason != provider.ReasonTimeout || failed.Type != agent.ErrProvider ||
			requests != 1 {
			t.Errorf("got %v after %d requests, want one that timed out", err, requests)
		}
	})
}

// hanging is a network on which no answer ever comes.
type hanging func()

func (f hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	f()
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// A canceled request returns the cause of its context.
func TestCancel(t *testing.T) {
	t.Parallel()
	p, s := start(t, nil)
	s.Answer("r", "m", openaitest.Reply{Hang: true})
	cause := errors.New("client gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() { s.Arrived(1); cancel(cause) }()
	if _, err := p.Program(ctx, request()); !errors.Is(err, cause) {
		t.Errorf("got %v, want the cause", err)
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	o := provider.DefaultOpenAIOptions()
	o.BaseURL, o.RetryInterval, o.MaxTries = "http://user:hidden-password@127.0.0.1:1/v1", time.Millisecond, 2
	p, err := provider.NewOpenAI(o)
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Program(t.Context(), request())
	var failed *provider.Error
	if !errors.As(err, &failed) || failed.Reason != provider.ReasonNetwork || failed.Usage.ModelRequests != 0 ||
		strings.Contains(err.Error(), "hidden-password") || !strings.Contains(err.Error(), "(after 2 requests)") {
		t.Errorf("got %v with %+v, want two attempts and no request that reached a server", err, failed.Usage)
	}
}

func TestErrorsHoldNoSecrets(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{"error":{"message":"Incorrect API key provided: ` + key + `"}}`,
		`plain text with ` + key, ``} {
		p, s := start(t, nil)
		s.Answer("r", "m", openaitest.Reply{Status: 401, Body: body})
		if _, err := p.Program(t.Context(), request()); err == nil || strings.Contains(err.Error(), key) ||
			len(err.Error()) > 600 {
			t.Errorf("got %v", err)
		}
	}
}

// roundTrip answers in place of a network, so that synctest's clock can run.
type roundTrip func(*http.Request) *http.Response

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, r.Body)
	_ = r.Body.Close()
	return f(r), nil
}

// Retry-After is obeyed to the second, and no wait exceeds the budget.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, header, value string
		waits               time.Duration
		requests            int
	}{
		{"seconds", "Retry-After", "7", 7 * time.Second, 2},
		{"milliseconds", "Retry-After-Ms", "250", 250 * time.Millisecond, 2},
		{"beyond the budget", "Retry-After", "3600", 0, 1},
		{"nonsense falls back to backoff", "Retry-After", "soon", -1, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				requests := 0
				o := provider.DefaultOpenAIOptions()
				o.HTTPClient = &http.Client{Transport: roundTrip(func(*http.Request) *http.Response {
					requests++
					r := &http.Response{StatusCode: 429, Status: "429", Header: http.Header{},
						Body: io.NopCloser(strings.NewReader(`{"error":{"message":"slow down"}}`))}
					if requests == 1 {
						r.Header.Set(tt.header, tt.value)
						return r
					}
					r.StatusCode, r.Body = 200,
						io.NopCloser(strings.NewReader(
							`{"choices":[{"message":{"role":"assistant","content":"{\"code\":\"package tool\"}"}}]}`))
					return r
				})}
				p, err := provider.NewOpenAI(o)
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				_, err = p.Program(t.Context(), request())
				waited := time.Since(began)
				if requests != tt.requests || (err == nil) != (tt.requests == 2) || tt.waits >= 0 &&
					waited != tt.waits || tt.waits < 0 && (waited <= 0 || waited > time.Second) {
					t.Errorf("got %d requests after %s, %v", requests, waited, err)
				}
			})
		})
	}
}

func TestChat(t *testing.T) {
	t.Parallel()
	p, s := start(t, nil)
	schema := json.RawMessage(`{"type":"object","properties":{"answer":{"type":"string"}}}`)
	s.Default(func(r openaitest.Request) openaitest.Reply {
		if r.Body["response_format"] != nil {
			return openaitest.Reply{Status: 400,
				Body: `{"error":{"message":"response_format json_schema is not supported"}}`}
		}
		return openaitest.Reply{Content: "<think>hm</think>\nAnswer: ok"}
	})
	for range 2 {
		r, err := p.Chat(t.Context(), provider.ChatRequest{Model: "scripted",
			Messages: []provider.Message{{Role: "user", Content: "q"}}, Schema: schema})
		if err != nil || r.Content != "Answer: ok" {
			t.Errorf("got %+v, %v", r, err)
		}
	}
	if got, _ := json.Marshal(
		s.Requests()[0].Body["response_format"]); !strings.Contains(string(got), `"json_schema"`) ||
		s.Count("", "") != 3 {
		t.Errorf("got %d requests, the first with %s", s.Count("", ""), got)
	}
	s.Default(func(openaitest.Request) openaitest.Reply { return openaitest.Reply{Content: " "} })
	_, err := p.Chat(t.Context(), provider.ChatRequest{Model: "scripted"})
	var failed *provider.Error
	if !errors.As(err, &failed) || failed.Reason != provider.ReasonNoAnswer {
		t.Errorf("got %v, want no_answer", err)
	}
}

func TestObserve(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var seen []string
	p, s := start(t, func(o *provider.OpenAIOptions) {
		o.Observe = func(operation, outcome string, _ time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, operation+" "+outcome)
		}
	})
	s.Answer("r", "m", openaitest.Reply{Status: 500}, openaitest.Code(source))
	if _, err := p.Program(t.Context(), request()); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(seen, ", "); got != "program server_error, program ok" {
		t.Errorf("got %s", got)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*provider.OpenAIOptions){
		"BaseURL":       func(o *provider.OpenAIOptions) { o.BaseURL = "localhost:11434" },
		"Key":           func(o *provider.OpenAIOptions) { o.Key = "a\nb" },
		"Timeout":       func(o *provider.OpenAIOptions) { o.Timeout = 0 },
		"MaxTries":      func(o *provider.OpenAIOptions) { o.MaxTries = 0 },
		"RetryBudget":   func(o *provider.OpenAIOptions) { o.RetryBudget = -1 },
		"RetryInterval": func(o *provider.OpenAIOptions) { o.RetryInterval = 0 },
		"MaxReply":      func(o *provider.OpenAIOptions) { o.MaxReply = 1 },
	} {
		o := provider.DefaultOpenAIOptions()
		change(&o)
		if _, err := provider.NewOpenAI(o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := provider.New(provider.Options{Kind: "oracle"}); err == nil {
		t.Error("an unknown kind must be refused")
	}
}
