package provider_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/provider/openaitest"
)

// steps renders a check in one line: ok, warn, failed or unknown for each step.
func steps(c provider.Check) string {
	var out []string
	for _, s := range c.Steps {
		out = append(out, s.Name+" "+s.Result)
	}
	return strings.Join(out, ", ")
}

// doctor checks the model with a daemon that has learned nothing of the server yet. The check must succeed, or name the
// one step that failed, with want in its detail. Steps before it must be right, except those that could not be
// determined, and steps after it unknown.
func doctor(t *testing.T, s *openaitest.Server, change func(*provider.OpenAIOptions), ok bool, want string) {
	t.Helper()
	o := provider.DefaultOpenAIOptions()
	o.Key, o.BaseURL, o.Model, o.RetryInterval = key, s.URL, "scripted", time.Millisecond
	if change != nil {
		change(&o)
	}
	p, err := provider.NewOpenAI(o)
	if err != nil {
		t.Fatal(err)
	}
	examine(t, p, ok, want)
}

func examine(t *testing.T, p *provider.OpenAI, ok bool, want string) {
	t.Helper()
	c := p.Check(t.Context(), request(), func(context.Context, string) (string, error) { return "fine", nil })
	failed := -1
	for i, s := range c.Steps {
		switch {
		case s.Result == provider.StepFailed && failed < 0:
			failed = i
			if !strings.Contains(s.Detail, want) || s.Detail == "" {
				t.Errorf("doctor says of %s: %s, want %q", s.Name, s.Detail, want)
			}
		case s.Result == provider.StepFailed, ok && s.Result == provider.StepUnknown, failed >= 0 && failed < 3 &&
			s.Result != provider.StepUnknown:
			t.Errorf("doctor says of %s: %s %s, in %s", s.Name, s.Result, s.Detail, steps(c))
		}
		if strings.Contains(s.Detail, key) {
			t.Errorf("doctor shows the key: %s", s.Detail)
		}
	}
	if c.OK != ok || ok != (c.Err == nil) || ok != (failed < 0) {
		t.Errorf("doctor says %s, want %v: %v", steps(c), ok, c.Err)
	}
}

// A check reports the result of each step: steps before the failed one are right, and steps after it are unknown.
func TestCheck(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		base   string // "" is the server's
		reply  openaitest.Reply
		want   string
		detail string // in any step
	}{
		{"all right", "", openaitest.Code(source),
			"reached ok, key ok, model ok, tools ok, limit ok, context ok, program ok, compiles ok", "3 lines of Go"},
		{"not Go", "", openaitest.Code("nonsense"),
			"reached ok, key ok, model ok, tools ok, limit ok, context ok, program ok, compiles failed", "not today"},
		{"no program", "", openaitest.Reply{Content: "I cannot do that."},
			"reached ok, key ok, model ok, tools ok, limit ok, context ok, program failed, compiles unknown",
			"holds no program"},
		{"not there", "http://127.0.0.1:1/v1", openaitest.Reply{},
			"reached failed, key unknown, model unknown, tools unknown, limit unknown, context unknown, program unknown, compiles unknown", "is it running"},
		{"wrong address", "", openaitest.Reply{Status: 404, Body: "404 page not found"},
			"reached failed, key unknown, model unknown, tools unknown, limit unknown, context unknown, program unknown, compiles unknown", "OPENAI_BASE_URL"},
		{"wrong key", "", openaitest.Reply{Status: 401},
			"reached ok, key failed, model unknown, tools unknown, limit unknown, context unknown, program unknown, compiles unknown", "OPENAI_API_KEY"},
		{"wrong model", "", openaitest.Reply{Status: 404, Body: errorBody("The model `scripted` does not exist", "code",
			"model_not_found")}, "reached ok, key ok, model failed, tools unknown, limit unknown, context unknown, program unknown, compiles unknown", "the server has qwen3-coder:30b, llama3"},
		{"small context", "", openaitest.Reply{Status: 400,
			Body: errorBody("Prompt contains 5000 tokens, too large for model with 4096 maximum context length")},
			"reached ok, key ok, model ok, tools unknown, limit unknown, context failed, program unknown, compiles unknown", "OLLAMA_CONTEXT_LENGTH"},
		{"overloaded", "", openaitest.Reply{Status: 503},
			"reached ok, key unknown, model unknown, tools unknown, limit unknown, context unknown, program failed, compiles unknown", "not available"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, s := start(t, func(o *provider.OpenAIOptions) {
				o.Model, o.MaxTries = "scripted", 2
				if tt.base != "" {
					o.BaseURL = tt.base
				}
			})
			s.List("qwen3-coder:30b", "llama3")
			s.Answer("r", "m", tt.reply)
			c := p.Check(t.Context(), request(), func(_ context.Context, code string) (string, error) {
				if code != source {
					return "", errors.New("not today")
				}
				return "fine", nil
			})
			if got := steps(c); got != tt.want || c.OK != (tt.name == "all right") {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if all := fmt.Sprint(c.Steps); !strings.Contains(all, tt.detail) || strings.Contains(all, key) {
				t.Errorf("%s lacks %s", all, tt.detail)
			}
		})
	}
}

// A look at the server's list costs nothing and reveals a wrong key, address or model. A server without a list reveals
// nothing.
func TestLook(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		models []string
		base   string // after the server's address
		want   string // in the error; "" is none
	}{
		"listed":              {[]string{"scripted"}, "/v1", ""},
		"listed with a tag":   {[]string{"scripted:latest"}, "/v1", ""},
		"Google's folder":     {[]string{"models/scripted"}, "/v1", ""},
		"not listed":          {[]string{"other"}, "/v1", `does not list the model "scripted"; it has other`},
		"no list":             {nil, "/v1", ""},
		"without a version":   {[]string{"scripted"}, "", "try http"},
		"nobody":              {nil, "nobody", "cannot be reached"},
		"deployment of Azure": {[]string{"other"}, "/v1?api-version=2", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, s := start(t, func(o *provider.OpenAIOptions) {
				o.Model, o.BaseURL = "scripted", strings.TrimSuffix(o.BaseURL, "/v1")+tt.base
				if tt.base == "nobody" {
					o.BaseURL = "http://127.0.0.1:1/v1"
				}
			})
			s.List(tt.models...)
			_, err := p.Look(t.Context())
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if failed := p.Status().LastError; (failed != nil) != (tt.want != "") || s.Count("", "") != 0 {
				t.Errorf("got %+v after %d requests", failed, s.Count("", ""))
			}
		})
	}
}

// The first failure is reported, another one if the server's words change, and the recovery. A fault of a model that a
// client named is not the daemon's.
func TestStatus(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var changes []string
	p, s := start(t, func(o *provider.OpenAIOptions) {
		o.Model, o.MaxTries = "scripted", 1
		o.Changed = func(f *provider.Failure) {
			mu.Lock()
			defer mu.Unlock()
			if f == nil {
				changes = append(changes, "again")
				return
			}
			changes = append(changes, fmt.Sprint(f.Status, " ", f.Message))
		}
	})
	ask := func(model string, r openaitest.Reply) {
		s.Answer("r", "m", r)
		q := request()
		q.Model = model
		_, _ = p.Program(t.Context(), q) // Status has the outcome
	}
	if p.Asked() {
		t.Error("nothing was asked yet")
	}
	busy := func(id string) openaitest.Reply {
		return openaitest.Reply{Status: 429, Body: errorBody("Too many requests (" + id + ")")}
	}
	ask("scripted", openaitest.Code(source))
	ask("other", openaitest.Reply{Status: 404, Body: errorBody("model not found", "code", "model_not_found")})
	ask("scripted", busy("req_17"))
	ask("scripted", busy("req_18"))
	ask("scripted", openaitest.Reply{Status: 401, Body: errorBody("no such key")})
	ask("scripted", openaitest.Reply{Content: "no program"})
	ask("other", openaitest.Reply{Status: 402, Body: errorBody("Insufficient balance")})
	ask("other", openaitest.Code(source))
	ask("scripted", openaitest.Code(source))
	want := []string{"429 ", "401 ", "again", "402 ", "again"}
	if len(changes) != len(want) {
		t.Fatalf("got %q", changes)
	}
	for i, c := range changes {
		if !strings.HasPrefix(c, want[i]) {
			t.Errorf("change %d: %s, want %s", i, c, want[i])
		}
	}
	if got := p.Status(); got.Model != "scripted" || got.BaseURL != s.URL || got.LastError.Status != 402 ||
		got.LastOK.Before(got.LastError.At) || !p.Asked() {
		t.Errorf("got %+v", got)
	}
}
