package overview

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/spend"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// A hall is a store with an overview, and the expected content of each role.
type hall struct {
	*Overview
	t      *testing.T
	at     time.Time
	tokens map[string]int64
}

func newHall(t *testing.T) *hall {
	t.Helper()
	h := &hall{t: t, at: time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC), tokens: map[string]int64{}}
	var err error
	h.Overview, err = New(Options{Store: storetest.NewMemory(time.Now),
		Usage: func(context.Context) (spend.UsageReport, error) {
			var r spend.UsageReport
			for role, n := range h.tokens {
				r.Data = append(r.Data, spend.UsageRow{Key: role, PromptTokens: n})
			}
			return r, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

// tool registers the role.
func (h *hall) tool(role, purpose string) {
	h.t.Helper()
	if _, err := h.store.PutTool(h.t.Context(), agent.Tool{Role: role, Contract: agent.Contract{Purpose: purpose}},
		store.AnyRevision, nil); err != nil {
		h.t.Fatal(err)
	}
}

// change changes an artifact. It gets its first program if it has none.
func (h *hall) change(role, method string, c agent.ArtifactChange) {
	h.t.Helper()
	if _, err := h.store.Artifact(h.t.Context(), role, method); err != nil && c.Generation == nil {
		c.Generation = &agent.Generation{ID: "gen-1", CreatedAt: h.at}
	}
	c.Role, c.MethodName, c.At = role, method, h.at
	if _, err := h.store.ChangeArtifact(h.t.Context(), store.AnyRevision, c, nil); err != nil {
		h.t.Fatal(err)
	}
}

// used counts calls of the role.
func (h *hall) used(role string, n int64) {
	h.t.Helper()
	t, err := h.store.Tool(h.t.Context(), role)
	if err != nil {
		h.t.Fatal(err)
	}
	t.UsageCount += n
	if _, err := h.store.PutTool(h.t.Context(), t, t.Revision, nil); err != nil {
		h.t.Fatal(err)
	}
}

func (h *hall) page(q Query) (roles []string, next string) {
	h.t.Helper()
	tools, next, err := h.Tools(h.t.Context(), q)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, tool := range tools {
		roles = append(roles, tool.Role)
	}
	return roles, next
}

// list follows the cursors to the end and returns the roles.
func (h *hall) list(q Query) (roles []string) {
	h.t.Helper()
	for {
		page, next := h.page(q)
		roles = append(roles, page...)
		if next == "" {
			return roles
		}
		q.After = next
	}
}

// After any changes, each order equals that of sorting all tools, for every page length.
func TestOrders(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	r := rand.New(rand.NewPCG(1, 2))
	results := []agent.Class{agent.ClassOK, agent.ClassIntrinsic, agent.ClassAdaptive, agent.ClassExtrinsic}
	for range 300 {
		role := fmt.Sprint("role", r.IntN(20))
		switch r.IntN(6) {
		case 0:
			// none: nothing happens
			_ = h.store.Archive(t.Context(), []store.Target{{Role: role}}, agent.AuditEntry{ID: fmt.Sprint(r.Int())})
			continue
		case 1:
			h.tokens[role] = int64(r.IntN(5))
		case 2:
			delete(h.tokens, role)
		}
		h.tool(role, "")
		h.used(role, int64(r.IntN(3)))
		h.change(role, fmt.Sprint("m", r.IntN(2)), agent.ArtifactChange{Result: results[r.IntN(4)]})
		if r.IntN(4) == 0 {
			h.compare(1 + r.IntN(7))
		}
	}
}

// compare checks each order against all tools sorted.
func (h *hall) compare(limit int) {
	h.t.Helper()
	type figures struct {
		role   string
		used   int64
		rate   float64
		failed int64
		tokens int64
	}
	var all []figures
	known, err := h.store.ListTools(h.t.Context(), "", 1000)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, k := range known {
		f := figures{role: k.Role, used: k.UsageCount, tokens: h.tokens[k.Role]}
		artifacts, err := h.store.ListArtifacts(h.t.Context(), k.Role)
		if err != nil {
			h.t.Fatal(err)
		}
		for _, a := range artifacts {
			f.rate, f.failed = max(f.rate, a.RecentFailureRate), f.failed+a.FailureCount
		}
		all = append(all, f)
	}
	h.costs.took = 0 // however long it takes
	for sort, order := range map[string]func(a, b figures) int{
		ByName: func(a, b figures) int { return 0 },
		Used:   func(a, b figures) int { return cmp.Compare(b.used, a.used) },
		Failed: func(a, b figures) int { return cmp.Or(cmp.Compare(b.rate, a.rate), cmp.Compare(b.failed, a.failed)) },
		Cost:   func(a, b figures) int { return cmp.Compare(b.tokens, a.tokens) },
	} {
		slices.SortFunc(all, func(a, b figures) int { return cmp.Or(order(a, b), cmp.Compare(a.role, b.role)) })
		var want []string
		for _, f := range all {
			want = append(want, f.role)
		}
		if got := h.list(Query{Sort: sort, Limit: limit}); !slices.Equal(got, want) {
			h.t.Fatalf("%s, %d a page: got %v, want %v", sort, limit, got, want)
		}
	}
}

// While tools are called, created and archived between two pages, those that keep their place are on exactly one page.
func TestCursorsHold(t *testing.T) {
	t.Parallel()
	for _, sort := range []string{ByName, Used, Failed, Cost} {
		h := newHall(t)
		still := map[string]bool{}
		for i := range 40 {
			role := fmt.Sprintf("role%02d", i)
			h.tool(role, "")
			h.used(role, int64(40-i))
			h.change(role, "m", agent.ArtifactChange{Result: agent.ClassIntrinsic})
			h.tokens[role] = int64(40 - i)
			still[role] = i%4 == 1
		}
		seen := map[string]int{}
		q := Query{Sort: sort, Limit: 3}
		for n := 0; ; n++ {
			page, next := h.page(q)
			for _, role := range page {
				seen[role]++
			}
			if q.After = next; next == "" {
				break
			}
			moves := fmt.Sprintf("role%02d", n%10*4) // none of the unchanged ones
			if _, err := h.store.Tool(t.Context(), moves); err == nil {
				h.used(moves, 100)
			}
			h.tokens[moves] = 0
			h.tool(fmt.Sprintf("role%02d-new", n), "")
			h.costs.took = 0
			if err := h.store.Archive(t.Context(), []store.Target{{Role: page[len(page)-1]}},
				agent.AuditEntry{ID: fmt.Sprint("aud", n)}); err != nil {
				t.Fatal(err)
			}
		}
		for role, stays := range still {
			if stays && seen[role] != 1 {
				t.Errorf("%s: %s is on %d pages", sort, role, seen[role])
			}
		}
	}
}

func TestCursorsOfOthers(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	h.tool("a", "")
	h.tool("b", "")
	_, of := h.page(Query{Sort: Used, Limit: 1})
	for _, after := range []string{of, "a", "e30", "%", strings.Repeat("A", 5000)} {
		if _, _, err := h.Tools(t.Context(), Query{Sort: Failed, Limit: 1, After: after}); !errors.Is(err, ErrCursor) {
			t.Errorf("after %.20q: %v", after, err)
		}
	}
}

func TestSearch(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	hostile := "<script>alert(1)</script>\x1b[2J\u202e"
	h.tool("Movie finder", "Find MOVIES nearby")
	h.tool("calculator", "")
	h.tool(hostile, strings.Repeat("é", 10_000)+" far away")
	h.change("calculator", "add", agent.ArtifactChange{})
	h.change("nobody's", "sub", agent.ArtifactChange{}) // a role that nobody registered or called
	for words, want := range map[string][]string{
		"":                {hostile, "Movie finder", "calculator", "nobody's"},
		"nobody sub":      {"nobody's"},
		"movie":           {"Movie finder"},
		" nearby  FIND ":  {"Movie finder"},
		"movie add":       nil,
		"calc add":        {"calculator"},
		"<SCRIPT>":        {hostile},
		"far away":        nil, // beyond the searched part
		"éé":              {hostile},
		"%_*.":            nil,
		"add\x00":         nil,
		"\xff":            nil,
		"calculator calc": {"calculator"},
	} {
		if got := h.list(Query{Words: words, Sort: ByName, Limit: 2}); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", words, got, want)
		}
	}
}

// A page of ten thousand tools costs as much as a page of a hundred, including a change between pages.
func TestCostDoesNotGrow(t *testing.T) {
	h := newHall(t)
	h.Overview.o.Usage = nil
	cost := func(n int) map[string]float64 {
		for i := range n {
			role := fmt.Sprint("role", i)
			h.tool(role, "")
			h.change(role, "m", agent.ArtifactChange{Result: agent.ClassOK})
		}
		h.list(Query{Sort: ByName, Limit: 1000})
		out := map[string]float64{}
		for _, sort := range []string{ByName, Used, Failed, Cost} {
			out[sort] = testing.AllocsPerRun(20, func() {
				h.used("role7", 1)
				_, next := h.page(Query{Sort: sort, Limit: 50})
				h.page(Query{Sort: sort, Limit: 50, After: next})
			})
		}
		return out
	}
	few, many := cost(100), cost(10_000)
	for sort, n := range many {
		if n > 1.5*few[sort] {
			t.Errorf("%s: %v allocations with 10,000 tools, %v with 100", sort, n, few[sort])
		}
	}
}

// The waits follow the stored data.
func TestWaits(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	p := agent.DefaultPolicy()
	waits := func() (kinds []string) {
		t.Helper()
		all, err := h.Waits(t.Context(), &p)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range all {
			kinds = append(kinds, w.Kind)
		}
		slices.Sort(kinds)
		return kinds
	}
	want := func(when string, kinds ...string) {
		t.Helper()
		if got := waits(); !slices.Equal(got, kinds) {
			t.Errorf("%s: %v, want %v", when, got, kinds)
		}
	}
	h.change("r", "m", agent.ArtifactChange{})
	want("without approvals")
	p.ApprovalRequired = true
	want("with approvals", Approval)
	yes := true
	h.change("r", "m", agent.ArtifactChange{Approve: &yes})
	want("approved")

	x := agent.Example{ID: "ex_1", State: agent.ExampleProposed, Expect: agent.Expectation{Value: []byte("1")},
		CreatedAt: h.at}
	h.change("r", "m", agent.ArtifactChange{Example: &x})
	want("proposed", Proposal)
	h.change("r", "m", agent.ArtifactChange{DropExample: "ex_1"})
	want("rejected")

	v := agent.Verdict{CallID: "call_1", Generation: "gen-1", Verdict: agent.VerdictWrong, State: agent.ExampleActive,
		At: h.at}
	h.change("r", "m", agent.ArtifactChange{Verdict: &v, Correction: &agent.Correction{State: agent.CorrectionQueued}})
	want("a correction goes on")
	for _, state := range []string{agent.CorrectionFailed, agent.CorrectionNone} {
		h.change("r", "m", agent.ArtifactChange{Correction: &agent.Correction{State: state}})
		want("a correction is "+state, Correction)
	}
	h.change("r", "m", agent.ArtifactChange{DropVerdict: "call_1"})
	want("the verdict is taken back")
	v.State = agent.ExampleProposed
	h.change("r", "m", agent.ArtifactChange{Verdict: &v})
	want("a verdict is proposed", Proposal)
	h.change("r", "m", agent.ArtifactChange{DropVerdict: "call_1"})

	parent := "gen-1"
	h.change("r", "m", agent.ArtifactChange{Approve: &yes, Generation: &agent.Generation{ID: "gen-2", ParentID: &parent,
		CreatedAt: h.at, Facts: []byte(`{"literals":["\"https://evil.example.org/x\""]}`)}})
	want("a new host", Effects)
	h.change("r", "m", agent.ArtifactChange{Manifest: &agent.Manifest{Effects: agent.Effects{Hosts: []string{"other.example.org"}}, ApprovedBy: "ann"}})
	want("a manifest that lacks it", Effects)
	listed, err := h.Waits(t.Context(), &p)
	if err != nil {
		t.Fatal(err)
	}
	stands := func() bool {
		a, err := h.store.Artifact(t.Context(), "r", "m")
		return err == nil && listed[0].StandsIn(a)
	}
	if !stands() {
		t.Error("what waits does not stand in the artifact")
	}
	h.change("r", "m", agent.ArtifactChange{Manifest: &agent.Manifest{Effects: agent.Effects{Hosts: []string{"*"}},
		ApprovedBy: "ann"}})
	want("allowed")
	if stands() {
		t.Error("what was decided since it was listed stands in the artifact")
	}

	h.change("r", "m", agent.ArtifactChange{Example: &x})
	if err := h.store.Archive(t.Context(), []store.Target{{Role: "r", Method: "m"}},
		agent.AuditEntry{ID: "aud_1"}); err != nil {
		t.Fatal(err)
	}
	want("archived")

	tool := agent.Tool{Role: "r"}
	tool.Proposals, _ = tool.Proposals.Add(agent.ContractProposal{ID: "prop_1", Owner: "ann", CreatedAt: h.at})
	put := func() {
		t.Helper()
		if _, err := h.store.PutTool(t.Context(), tool, store.AnyRevision, nil); err != nil {
			t.Fatal(err)
		}
	}
	put()
	want("a contract is proposed", Proposal)
	h.used("r", 1)
	want("the role is called", Proposal)
	tool.Proposals = tool.Proposals.Reject("prop_1")
	put()
	want("the contract is rejected")
	tool.Proposals, _ = tool.Proposals.Add(agent.ContractProposal{ID: "prop_2", Owner: "ann", CreatedAt: h.at})
	put()
	want("another one is proposed", Proposal)
	if err := h.store.Archive(t.Context(), []store.Target{{Role: "r"}}, agent.AuditEntry{ID: "aud_2"}); err != nil {
		t.Fatal(err)
	}
	want("the role is archived")
}
