package provider_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/provider/openaitest"
)

func TestReplay(t *testing.T) {
	t.Parallel()
	p, err := provider.NewReplay(strings.NewReader(`{"role":"r","method":"m","kind":"forge","code":"one"}

{"role":"r","method":"m","kind":"repair","code":"fixed","origin":"written"}
{"role":"r","method":"m","kind":"forge","code":"two"}
`), "demo")
	if err != nil {
		t.Fatal(err)
	}
	ask := func(kind, method string) (string, error) {
		r, err := p.Program(t.Context(), provider.Request{Kind: kind, Role: "r", Method: method, Model: "x"})
		return r.Code, err
	}
	for i, want := range []struct{ kind, code string }{{"forge", "one"}, {"repair", "fixed"}, {"forge", "two"},
		{"forge", "two"}, {"repair", "fixed"}} {
		if got, err := ask(want.kind, "m"); got != want.code || err != nil {
			t.Errorf("answer %d: got %q, %v, want %q", i, got, err, want.code)
		}
	}
	_, err = ask("forge", "other")
	var failed *provider.Error
	if !errors.As(err, &failed) || failed.Type != agent.ErrProvider || !strings.Contains(err.Error(), "r.other") ||
		!strings.Contains(err.Error(), "OPENAI_API_KEY") {
		t.Errorf("got %v, want a provider error that says what to do", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Program(ctx, provider.Request{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestReplayRefusesBadLines(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{`{`, `{"role":"r","method":"m","kind":"forge"}`,
		`{"role":"r","method":"m","kind":"think","code":"x"}`, `{"kind":"chat"}`,
		`{"role":"r","method":"m","kind":"forge","code":"x","usage":{"prompt_tokens":-1}}`} {
		_, err := provider.NewReplay(strings.NewReader(`{"role":"r","method":"m","kind":"forge","code":"one"}`+"\n"+
			bad), "file")
		if err == nil || !strings.Contains(err.Error(), "file, line 2") {
			t.Errorf("%s: got %v, want an error that names line 2", bad, err)
		}
	}
}

// A recording is replayed, and the file contains no key.
func TestRecordThenReplay(t *testing.T) {
	t.Parallel()
	s := openaitest.New()
	defer s.Close()
	s.Default(func(r openaitest.Request) openaitest.Reply {
		if r.Role == "" {
			return openaitest.Reply{Content: "Answer: " + key}
		}
		return openaitest.Code("package tool // " + r.Method + " " + key + " sk-another-key-01234567890123456789\n")
	})
	path := filepath.Join(t.TempDir(), "recording.jsonl")
	o := provider.DefaultOpenAIOptions()
	o.Key, o.BaseURL = key, s.URL
	p, err := provider.New(provider.Options{Kind: "record", OpenAI: o, Recording: path,
		OnRecordError: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var programUsage atomic.Value // the same each time
	for range 8 {
		wg.Go(func() {
			r, err := p.Program(t.Context(), request())
			if err != nil || r.Usage.PromptTokens == 0 {
				t.Error(r.Usage, err)
			}
			programUsage.Store(r.Usage)
		})
	}
	wg.Wait()
	chat := provider.ChatRequest{Model: "scripted", Messages: []provider.Message{{Role: "user", Content: "q"}}}
	said, err := p.Chat(t.Context(), chat)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.(*provider.Record).Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil || strings.Count(string(text), "\n") != 9 || strings.Contains(string(text), "sk-") {
		t.Fatalf("got %v and %s", err, text)
	}
	again, err := provider.New(provider.Options{Kind: "replay", Recording: path})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := again.Program(t.Context(), request()); err != nil || !strings.Contains(r.Code, "// m [secret]") ||
		r.Usage != programUsage.Load() {
		t.Errorf("got %q, %v, %v", r.Code, r.Usage, err)
	}
	if r, err := again.Chat(t.Context(), chat); err != nil || r.Content != "Answer: [secret]" || r.Usage != said.Usage {
		t.Errorf("got %q, %v, %v", r.Content, r.Usage, err)
	}
}

// A recorded unchanged is replayed if it is allowed, and is an unusable reply otherwise. It does not count if there is
// code.
func TestRecordedUnchanged(t *testing.T) {
	t.Parallel()
	server := openaitest.New()
	defer server.Close()
	server.Answer("", "", openaitest.Reply{Message: map[string]any{"role": "assistant", "content": nil,
		"tool_calls": []any{openaitest.ToolCall("submit_program", `{"unchanged":true}`)}}},
		openaitest.Code("package tool\n\nfunc Run() {}\n"))
	path := filepath.Join(t.TempDir(), "recording.jsonl")
	o := provider.DefaultOpenAIOptions()
	o.BaseURL = server.URL
	model, err := provider.NewOpenAI(o)
	if err != nil {
		t.Fatal(err)
	}
	record, err := provider.NewRecord(provider.RecordOptions{Inner: model, Path: path})
	if err != nil {
		t.Fatal(err)
	}
	asked := provider.Request{Kind: provider.KindForge, Role: "r", Method: "m", Model: "x", MayKeep: true,
		Messages: []provider.Message{{Role: "user", Content: "?"}}}
	for range 2 {
		if _, err := record.Program(t.Context(), asked); err != nil {
			t.Fatal(err)
		}
	}
	if err := record.Close(); err != nil {
		t.Fatal(err)
	}
	for _, mayKeep := range []bool{true, false} {
		p, err := provider.OpenReplay(path)
		if err != nil {
			t.Fatal(err)
		}
		asked.MayKeep = mayKeep
		got, err := p.Program(t.Context(), asked)
		if mayKeep != (err == nil && got.Unchanged && got.Code == "") || !mayKeep &&
			!errors.Is(err, provider.ErrInvalidPayload) {
			t.Errorf("where it may be kept (%t): %+v, %v", mayKeep, got, err)
		}
		if got, err := p.Program(t.Context(), asked); err != nil || got.Unchanged || got.Code == "" {
			t.Errorf("the program: %+v, %v", got, err)
		}
	}
}
