package provider_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/provider/openaitest"
)

// purse records what a provider asks for and how it settles. It serves one request at a time.
type purse struct {
	refuse error // returned from request number refuseAt on
	at     int
	asked  []provider.Estimate
	bills  []provider.Bill
}

func (p *purse) charge(_ context.Context, e provider.Estimate) (func(provider.Bill), error) {
	if p.refuse != nil && len(p.asked) >= p.at {
		return nil, p.refuse
	}
	p.asked = append(p.asked, e)
	return func(b provider.Bill) { p.bills = append(p.bills, b) }, nil
}

// Each request is charged before it is sent, with an upper bound of its cost, and settled once with what is known
// afterwards.
func TestCharge(t *testing.T) {
	t.Parallel()
	body := func(usage string) openaitest.Reply {
		return openaitest.Reply{Body: `{"choices":[{"message":{"content":"{\"code\":\"package tool\"}"}}],"usage":` +
			usage + `}`}
	}
	unknown, free := provider.Bill{}, provider.Bill{Free: true}
	bill := func(prompt, cached, completion int64) provider.Bill {
		return provider.Bill{Reported: true, Prompt: prompt, Cached: cached, Completion: completion}
	}
	tests := []struct {
		name    string
		replies []openaitest.Reply
		want    []provider.Bill
	}{
		{"reported", []openaitest.Reply{body(`{"prompt_tokens":70,"completion_tokens":5}`)},
			[]provider.Bill{bill(70, 0, 5)}},
		{"cached", []openaitest.Reply{body(
			`{"prompt_tokens":70,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":64}}`)},
			[]provider.Bill{bill(70, 64, 5)}},
		{"more cached than there are",
			[]openaitest.Reply{body(`{"prompt_tokens":70,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":640}}`)}, []provider.Bill{bill(70, 70, 5)}},
		{"no usage", []openaitest.Reply{body(`null`)}, []provider.Bill{unknown}},
		{"negative usage", []openaitest.Reply{body(`{"prompt_tokens":-70,"completion_tokens":-5}`)},
			[]provider.Bill{unknown}},
		{"negative completion", []openaitest.Reply{body(`{"prompt_tokens":70,"completion_tokens":-5}`)},
			[]provider.Bill{unknown}},
		{"huge usage", []openaitest.Reply{body(
			`{"prompt_tokens":9000000000000000000,"completion_tokens":9000000000000000000}`)},
			[]provider.Bill{bill(1<<40, 0, 1<<40)}},
		{"a retry after a failing server", []openaitest.Reply{{Status: 500},
			body(`{"prompt_tokens":7,"completion_tokens":5}`)}, []provider.Bill{unknown, bill(7, 0, 5)}},
		{"a retry after a refusal", []openaitest.Reply{{Status: 429},
			body(`{"prompt_tokens":7,"completion_tokens":5}`)}, []provider.Bill{free, bill(7, 0, 5)}},
		{"a connection that breaks off", []openaitest.Reply{{Abort: true},
			body(`{"prompt_tokens":7,"completion_tokens":5}`)}, []provider.Bill{unknown, bill(7, 0, 5)}},
		{"a server without tools",
			[]openaitest.Reply{{Status: 400, Body: `{"error":{"message":"tools are not supported"}}`},
				body(`{"prompt_tokens":7,"completion_tokens":5}`)}, []provider.Bill{free, bill(7, 0, 5)}},
		{"a server that is full", []openaitest.Reply{{Status: 503}, body(`{"prompt_tokens":7,"completion_tokens":5}`)},
			[]provider.Bill{free, bill(7, 0, 5)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, s := start(t, nil)
			s.Answer("r", "m", tt.replies...)
			var paid purse
			q := request()
			q.Charge = paid.charge
			reply, err := p.Program(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			if u := reply.Usage; min(u.PromptTokens, u.CompletionTokens) < 0 ||
				max(u.PromptTokens, u.CompletionTokens) > 1<<40 {
				t.Errorf("the call's own usage is %+v", u)
			}
			if fmt.Sprint(paid.bills) != fmt.Sprint(tt.want) {
				t.Errorf("got %+v, want %+v", paid.bills, tt.want)
			}
			for i, r := range s.Requests() {
				text, _ := json.Marshal(r.Body)
				if e := paid.asked[i]; e.Prompt < int64(len(text)) || e.Completion != provider.DefaultMaxCompletion ||
					r.Body["max_completion_tokens"] != float64(e.Completion) {
					t.Errorf("estimate %+v for a body of %d bytes with limit %v", e, len(text),
						r.Body["max_completion_tokens"])
				}
			}
		})
	}
}

// If a charge refuses, nothing is sent, not even a retry.
func TestChargeRefuses(t *testing.T) {
	t.Parallel()
	p, s := start(t, nil)
	s.Answer("r", "m", openaitest.Reply{Status: 500})
	paid := purse{refuse: errors.New("no money"), at: 1}
	q := request()
	q.Charge = paid.charge
	_, err := p.Program(t.Context(), q)
	var refused *provider.ChargeError
	if !errors.As(err, &refused) || !errors.Is(err, paid.refuse) || refused.Usage.ModelRequests != 1 ||
		s.Count("", "") != 1 || len(paid.bills) != 1 {
		t.Errorf("got %v after %d requests and %d bills", err, s.Count("", ""), len(paid.bills))
	}
	if outcome, usage := provider.Answered(err,
		refused.Usage); outcome != provider.ReasonNotSent || usage.ModelRequests != 1 {
		t.Errorf("got %s, %+v", outcome, usage)
	}
}

// A request that never got a connection costs nothing. One that was canceled or timed out in flight may have cost
// everything.
func TestChargeOfUnanswered(t *testing.T) {
	t.Parallel()
	var paid purse
	q := request()
	q.Charge = paid.charge
	unreachable := func(o *provider.OpenAIOptions) { o.BaseURL, o.MaxTries = "http://127.0.0.1:1/v1", 2 }
	p, _ := start(t, unreachable)
	if _, err := p.Program(t.Context(), q); err == nil || len(paid.bills) != 2 || !paid.bills[0].Free ||
		!paid.bills[1].Free {
		t.Errorf("unreachable: got %v, %+v", err, paid.bills)
	}

	paid = purse{}
	p, s := start(t, nil)
	s.Answer("r", "m", openaitest.Reply{Hang: true})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { s.Arrived(1); cancel() }()
	if _, err := p.Program(ctx, q); err == nil || len(paid.bills) != 1 || paid.bills[0] != (provider.Bill{}) {
		t.Errorf("canceled: got %v, %+v", err, paid.bills)
	}
	if _, err := p.Program(ctx, q); err == nil || len(paid.asked) != 1 {
		t.Errorf("canceled before: got %v, %+v", err, paid.asked)
	}

	paid = purse{}
	o := provider.DefaultOpenAIOptions()
	o.Timeout, o.HTTPClient = time.Millisecond, &http.Client{Transport: hanging(func() {})}
	p, err := provider.NewOpenAI(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Program(t.Context(), q); err == nil || len(paid.bills) != 1 || paid.bills[0] != (provider.Bill{}) {
		t.Errorf("timed out: got %v, %+v", err, paid.bills)
	}
}

func number(v any) float64 {
	n, _ := v.(float64)
	return n
}

// A replayed answer is charged with zero cost.
func TestChargeOfReplay(t *testing.T) {
	t.Parallel()
	p, err := provider.NewReplay(strings.NewReader(`{"role":"r","method":"m","kind":"forge","code":"package tool"}`),
		"test")
	if err != nil {
		t.Fatal(err)
	}
	var paid purse
	q := request()
	q.Charge = paid.charge
	if _, err := p.Program(t.Context(), q); err != nil || len(paid.asked) != 1 ||
		paid.asked[0] != (provider.Estimate{}) || len(paid.bills) != 1 ||
		paid.bills[0] != (provider.Bill{Reported: true}) {
		t.Errorf("got %v, %+v, %+v", err, paid.asked, paid.bills)
	}
}
