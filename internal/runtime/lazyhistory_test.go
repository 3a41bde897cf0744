//go:build !scripted

package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/attempt"
	"github.com/recurgentd/recurgentd/internal/runtime/sessions"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// readings is a store that notes how its histories are read.
type readings struct {
	store.Namespace
	mu      sync.Mutex
	queries []store.HistoryQuery // guarded by mu
	ranked  int                  // readings of the registry, guarded by mu
}

func (a *readings) RankTools(ctx context.Context, now time.Time, limit int) ([]store.RankedTool, error) {
	a.mu.Lock()
	a.ranked++
	a.mu.Unlock()
	return a.Namespace.RankTools(ctx, now, limit)
}

func (a *readings) History(ctx context.Context, id string, q store.HistoryQuery) (store.HistoryPage, error) {
	a.mu.Lock()
	a.queries = append(a.queries, q)
	a.mu.Unlock()
	return a.Namespace.History(ctx, id, q)
}

// longest returns the longest page that was asked for since the last time.
func (a *readings) longest() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for _, q := range a.queries {
		n = max(n, q.Limit)
	}
	a.queries = nil
	return n
}

// Only a program that looks costs a reading of the history, on warm calls too; the context key is a way to look.
func TestHistoryIsReadOnlyWhenLookedAt(t *testing.T) {
	r, _ := newRuntime(t, map[string][]string{"r.blind": {run("\treturn call.Args, nil")},
		"r.looks": {run("\t_ = call.Args\n\treturn len(call.History()), nil")},
		"r.may":   {run("\tif call.Arg(0, \"look\") == true {\n\t\treturn len(call.History()), nil\n\t}\n\treturn -1, nil")}, "r.named": {run("\t_ = call.Args\n\tlist, _ := call.Context[\"conversation_history\"].([]any)\n\treturn len(list), nil")},
		"r.remembers": {run("\tcall.Context[\"seen\"] = call.Args\n\treturn call.Context[\"seen\"], nil")}})
	a := &readings{Namespace: r.env.Store}
	r.env.Store = a
	_, call := conversation(t, r, sessions.Request{Role: "r"})
	for _, method := range []string{"blind", "looks", "may", "named", "remembers"} {
		call(method, false) // forged: the prompt's preview is read
	}
	a.longest()
	for _, c := range []struct {
		method string
		arg    bool
		reads  bool
	}{{"blind", true, false}, {"remembers", true, false}, {"may", false, false}, {"may", true, true},
		{"looks", true, true}, {"named", true, true}} {
		if got := call(c.method, c.arg); !got.Outcome.OK() || got.Program.Source != "persisted" {
			t.Fatalf("%s: %+v", c.method, got)
		}
		if n := a.longest(); (n > 1) != c.reads {
			t.Errorf("%s(%v): a page of %d records was read, want any: %v", c.method, c.arg, n, c.reads)
		}
	}
}

// A program that asks for the history or the registry repeatedly costs the daemon a single read, however large the data
// is.
func TestRepeatedQuestionsCostOneReading(t *testing.T) {
	r, _ := newRuntime(t, map[string][]string{"r.flood": {run(
		"\tn := 0\n\tfor range 40 {\n\t\tn += len(call.HistoryAll()) + len(call.Tools())\n\t}\n\treturn n, nil")}})
	r.env.RunTimeout = time.Hour // it reads some 500 MB
	id, call := conversation(t, r, sessions.Request{Role: "r"})
	arg := json.RawMessage(`"` + strings.Repeat("x", 1_300_000) + `"`)
	for i := range 6 {
		commit := storetest.NewCommit(id, fmt.Sprintf("call_big_%d", i), r.env.Now())
		commit.Record.Args = []json.RawMessage{arg}
		if err := r.env.Store.CommitCall(t.Context(), commit); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 1200 {
		if _, err := r.env.Store.PutTool(t.Context(), agent.Tool{Role: fmt.Sprintf("role_%d", i),
			Contract: agent.Contract{Purpose: strings.Repeat("x", 10_000)}}, 0, nil); err != nil {
			t.Fatal(err)
		}
	}
	a := &readings{Namespace: r.env.Store}
	r.env.Store = a
	got := call("flood")
	if !got.Outcome.OK() {
		t.Fatal(got.Outcome.ErrorMessage)
	}
	histories, registries := 0, a.ranked
	for _, q := range a.queries {
		if q.Bytes == attempt.MaxHistoryBytes && q.Limit > 10 {
			histories++
		}
	}
	var n int
	if err := json.Unmarshal(got.Outcome.Value, &n); err != nil || n/40 < 300 || n/40 > 6+1000 {
		t.Errorf("each look saw %d records and tools, want 6 records, and the tools that fit 4 MiB", n/40)
	}
	if histories != 2 || registries > 2 { // one of each for the prompt
		t.Errorf("40 questions cost %d readings of the history and %d of the registry", histories, registries)
	}
}

// A program gets the newest 10,000 records or 8 MiB of them, and the others by page.
func TestHistoryIsBounded(t *testing.T) {
	ends := "\th := call.History()\n\tp := call.HistoryPage(0, 2)\n\treturn []any{len(h), h[0].Seq, h[len(h)-1].Seq, len(p), p[0].Seq}, nil"
	r, _ := newRuntime(t, map[string][]string{"r.ends": {run(ends)}})
	for _, c := range []struct {
		name    string
		records int
		size    int // bytes of an argument
		want    string
	}{
		{"by number", 10_050, 1, "[10000,51,10050,2,1]"},
		{"by size", 30, 600_000, "[13,18,30,2,1]"},
		{"short", 3, 1, "[3,1,3,2,1]"},
	} {
		id, call := conversation(t, r, sessions.Request{Role: "r"})
		arg := json.RawMessage(`"` + strings.Repeat("x", c.size) + `"`)
		for i := range c.records {
			commit := storetest.NewCommit(id, fmt.Sprintf("call_%s_%d", strings.Fields(c.name)[0], i), r.env.Now())
			commit.Record.Args = []json.RawMessage{arg}
			if err := r.env.Store.CommitCall(t.Context(), commit); err != nil {
				t.Fatal(err)
			}
		}
		if got := call("ends"); string(got.Outcome.Value) != c.want {
			t.Errorf("%s: got %s (%s), want %s", c.name, got.Outcome.Value, got.Outcome.ErrorMessage, c.want)
		}
	}
}
