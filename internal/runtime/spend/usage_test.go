package spend_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/spend"
	"github.com/recurgentd/recurgentd/internal/store"
)

const priceList = "currency: EUR\nmodels:\n  gpt: {input: 2.0, cached_input: 0.5, output: 8.0}\n"

// commit ends a call of alice: a warm one, or one with a program that cost the model that many tokens.
func (r *rig) commit(method string, warm bool, forged ...int) {
	r.t.Helper()
	held, err := r.store.Namespace("default")
	if err != nil {
		r.t.Fatal(err)
	}
	c := store.CallCommit{Log: agent.LogEntry{Owner: "alice", CallID: "call_" + method, Role: "calculator",
		Method: method, ArtifactHit: warm, OutcomeStatus: agent.StatusOK}}
	for i, tokens := range forged {
		c.Artifacts = append(c.Artifacts, agent.ArtifactChange{Role: "calculator", MethodName: method,
			Generation: &agent.Generation{ID: "gen-" + string(rune('1'+i)), Model: "gpt-2026-01-31",
				ForgeUsage: agent.Usage{ModelRequests: 2, PromptTokens: tokens, CompletionTokens: tokens}}})
	}
	if err := held.CommitCall(r.ctx, &c); err != nil {
		r.t.Fatal(err)
	}
}

// Savings are the warm calls of a method times the average cost of its own programs. Costs are null without a price.
func TestUsage(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.SpendPolicy{DayTokens: 10_000, OwnerDayTokens: 1000})
	file := filepath.Join(t.TempDir(), "prices.yaml")
	if err := os.WriteFile(file, []byte(priceList), 0o600); err != nil {
		t.Fatal(err)
	}
	prices, err := spend.OpenPrices(file, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	if r.ledger, err = spend.New(r.ctx, spend.Options{Store: r.store, Now: r.clock, Prices: prices}); err != nil {
		t.Fatal(err)
	}
	r.commit("add", false, 1_000_000, 3_000_000)
	for range 3 {
		r.commit("add", true)
	}
	r.commit("sub", true) // a program from elsewhere, of unknown cost
	settle, err := r.account("default").Charge(spend.Request{Role: "calculator", Method: "add", Owner: "alice",
		Model: "gpt"})(r.ctx, provider.Estimate{Prompt: 200})
	if err != nil {
		t.Fatal(err)
	}
	settle(provider.Bill{Reported: true, Prompt: 100, Cached: 60, Completion: 10})
	if settle, err = r.account("default").Charge(spend.Request{Method: "predict", Owner: "bob", Model: "other"})(r.ctx,
		provider.Estimate{Prompt: 7}); err != nil {
		t.Fatal(err)
	}
	settle(provider.Bill{})
	row := func(by, key string, own *string) string {
		report, err := r.account("default").Usage(r.ctx, spend.UsageQuery{By: by, Owner: own})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range report.Data {
			if row.Key == key {
				text, _ := json.Marshal(row)
				return string(text)
			}
		}
		return "none"
	}
	bob := "bob"
	tests := []struct {
		by, key string
		own     *string
		want    string
	}{
		{"method", "calculator.add", nil,
			`"calls":4,"warm_calls":3,"model_requests":1,"prompt_tokens":100,"cached_tokens":60,"completion_tokens":10,"estimated_tokens":0,"cost":0.00019,"saved_requests":6,"saved_tokens":12000000,"saved_cost":60}`},
		{"method", "calculator.sub", nil,
			`"calls":1,"warm_calls":1,"model_requests":0,"prompt_tokens":0,"cached_tokens":0,"completion_tokens":0,"estimated_tokens":0,"cost":0,"saved_requests":null,"saved_tokens":null,"saved_cost":null}`},
		{"method", "predict", nil,
			`"calls":0,"warm_calls":0,"model_requests":1,"prompt_tokens":7,"cached_tokens":0,"completion_tokens":0,"estimated_tokens":7,"cost":null,"saved_requests":null,"saved_tokens":null,"saved_cost":null}`},
		{"role", "calculator", nil,
			`"calls":5,"warm_calls":4,"model_requests":1,"prompt_tokens":100,"cached_tokens":60,"completion_tokens":10,"estimated_tokens":0,"cost":0.00019,"saved_requests":6,"saved_tokens":12000000,"saved_cost":60}`},
		{"owner", "alice", nil, `"calls":5,"warm_calls":4,"model_requests":1,`},
		{"owner", "alice", &bob, "none"},
		{"day", "2026-11-22", &bob, `"calls":0,"warm_calls":0,"model_requests":1,"prompt_tokens":7,`},
		{"day", "2026-11-22", nil, `"calls":5,"warm_calls":4,"model_requests":2,"prompt_tokens":107,`},
	}
	for _, tt := range tests {
		want := `{"key":"` + tt.key + `",` + tt.want
		if tt.want == "none" {
			want = "none"
		}
		if got := row(tt.by, tt.key, tt.own); !strings.HasPrefix(got, want) {
			t.Errorf("by %s:\n got %s\nwant %s", tt.by, got, want)
		}
	}
	report, err := r.account("default").Usage(r.ctx, spend.UsageQuery{By: "owner", Owner: &bob})
	if err != nil || len(report.Limits) != 1 || report.Limits[0].Name != "bob" || report.Limits[0].Used != 7 ||
		report.Currency != "EUR" {
		t.Errorf("bob sees %+v, %v", report, err)
	}
	carol := "carol" // an owner without use has the same cap; the daemon's cap is also visible
	r.daemon = 50_000
	r.restart()
	report, err = r.account("default").Usage(r.ctx, spend.UsageQuery{Owner: &carol, Daemon: true})
	if l := report.Limits; err != nil || len(l) != 2 || l[0].Scope != spend.ScopeDaemon || l[0].Limit != 50_000 ||
		l[0].Used == 0 || l[1].Name != "carol" || l[1].Limit != 1000 || l[1].Used != 0 {
		t.Errorf("carol sees %+v, %v", report, err)
	}
	first, err := r.account("default").Usage(r.ctx, spend.UsageQuery{By: "method", Limit: 2})
	if err != nil || len(first.Data) != 2 || first.NextCursor == nil || *first.NextCursor != "2" {
		t.Errorf("the first page: %+v, %v", first, err)
	}
	rest, err := r.account("default").Usage(r.ctx, spend.UsageQuery{By: "method", Limit: 2, After: 2})
	if err != nil || len(rest.Data) != 1 || rest.NextCursor != nil || rest.Data[0].Key != "calculator.sub" {
		t.Errorf("the last page: %+v, %v", rest, err)
	}
	if none, err := r.account("default").Usage(r.ctx, spend.UsageQuery{By: "method",
		After: 9}); err != nil || len(none.Data) != 0 {
		t.Errorf("behind the last page: %+v, %v", none, err)
	}
	yesterday := r.clock().Add(-24 * time.Hour)
	if report, err := r.account("default").Usage(r.ctx, spend.UsageQuery{By: "day",
		Until: yesterday}); err != nil || len(report.Data) != 0 {
		t.Errorf("until yesterday: %+v, %v", report.Data, err)
	}
}

// An error in a price file is reported with its line and key.
func TestPriceFiles(t *testing.T) {
	t.Parallel()
	tests := []struct{ text, want string }{
		{"currency: EUR\nmodels:\n  m: {input: 1, output: 2}\n", ""},
		{"currency: EUR\n", ""},
		{"models: {}\n", ":1: currency is missing"},
		{"currency: euro\n", ":1: currency must be three capital letters"},
		{"currency: EUR\nprices: {}\n", ":2: prices is not known"},
		{"currency: EUR\nmodels:\n  m: {input: 1}\n", ":3: models.m.output is missing"},
		{"currency: EUR\nmodels:\n  m:\n    input: 1\n    output: -2\n",
			":5: models.m.output must be a number of at least 0"},
		{"currency: EUR\nmodels:\n  m:\n    input: .inf\n    output: 2\n", ":4: models.m.input must be a number"},
		{"currency: EUR\nmodels:\n  m: {input: 1, output: 2, price: 3}\n", ":3: models.m.price is not known"},
		{"currency: EUR\nmodels:\n  m: {input: 1, output: 2}\n  m: {input: 1, output: 2}\n",
			":4: models.m appears twice"},
		{"currency: EUR\nmodels: [m]\n", ":2: models must be a mapping"},
		{"- 1\n", ":1: must be a mapping"},
		{"", ":1: is not YAML with prices"},
		{"a: b: c\n", "is not YAML with prices"},
	}
	for _, tt := range tests {
		file := filepath.Join(t.TempDir(), "prices.yaml")
		if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := spend.ReadPrices(file)
		if tt.want == "" {
			if err != nil {
				t.Errorf("%q: %v", tt.text, err)
			}
			continue
		}
		var bad *spend.PriceError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), tt.want) || bad.File != file {
			t.Errorf("%q: got %v, want %s", tt.text, err, tt.want)
		}
	}
	if _, err := spend.OpenPrices(filepath.Join(t.TempDir(), "none"), zerolog.Nop()); !os.IsNotExist(err) {
		t.Errorf("got %v", err)
	}
}

// A changed price file applies from the next report on. An invalid or missing one changes nothing.
func TestPricesReload(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "prices.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(priceList)
	var log strings.Builder
	p, err := spend.OpenPrices(file, zerolog.New(&log))
	if err != nil {
		t.Fatal(err)
	}
	cost := func() float64 {
		c, _ := p.Now().Cost("gpt", agent.Tokens{Prompt: 1_000_000})
		return c
	}
	if got := cost(); got != 2 {
		t.Errorf("got %v", got)
	}
	write(strings.Replace(priceList, "2.0", "22.5", 1))
	if got := cost(); got != 22.5 {
		t.Errorf("after a change: %v", got)
	}
	write("currency: EUR\nmodels: nonsense\n")
	for range 3 {
		if got := cost(); got != 22.5 {
			t.Errorf("after a change that is not valid: %v", got)
		}
	}
	if n := strings.Count(log.String(), ":2: models must be a mapping"); n != 1 {
		t.Errorf("%d lines in the log: %s", n, log.String())
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if got := cost(); got != 22.5 {
		t.Errorf("without the file: %v", got)
	}
}
