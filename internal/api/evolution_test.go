package api

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/evolve"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
)

func anAdvice() operator.Advice {
	return operator.Advice{Status: operator.AdviceOpen, CallerContracts: 1,
		Recommendation: evolve.Recommendation{ID: "rec_1", Role: "movie finder", Method: "find",
			Kind:  evolve.StrengthenContract,
			Score: 0.9, Reason: "r", Evidence: []string{knownCall}, Proposal: evolve.Proposal{Action: "put_contract",
				Value: 1, Constraint: "c", Deliverable: json.RawMessage(`{"type":"object"}`)},
			Simulation: &evolve.Simulation{Calls: 3, WouldFail: 2, WouldFailReasked: 1, WouldFailAccepted: 1}}}
}

func (f *fake) Recommendations(ctx context.Context, _ string,
	sees func(context.Context, string) bool) ([]operator.Advice, error) {
	one := anAdvice()
	if sees != nil && !sees(ctx, one.Evidence[0]) {
		one.Evidence = []string{}
	}
	return []operator.Advice{one, one}, f.note("Recommendations")
}

func (f *fake) ApplyRecommendation(_ context.Context, d operator.AdviceDecision) (operator.Advice, error) {
	return anAdvice(), f.known("ApplyRecommendation", d.ID, "rec_1")
}

func (f *fake) DismissRecommendation(_ context.Context, d operator.AdviceDecision) (operator.Advice, error) {
	return anAdvice(), f.known("DismissRecommendation", d.ID, "rec_1")
}

func (f *fake) PatternReport(_ context.Context, role string) (operator.PatternReport, error) {
	return operator.PatternReport{Role: role,
		Patterns: []evolve.Pattern{{Capability: "http_fetch", Count: 2, Window: 5, LastSeen: agent.FormatTime(at)}},
		Events: []agent.PatternEvent{{CallID: knownCall, SessionID: knownSession, Timestamp: agent.FormatTime(at),
			Role: role, MethodName: "m", Capabilities: []string{"http_fetch"}, Status: "ok"}}}, f.note("PatternReport")
}

func (f *fake) HistoryUsage(context.Context, time.Time, time.Time) (operator.HistoryUsage, error) {
	u := operator.Usage{Calls: 1, WithAccess: 1, Share: 1, Tags: map[string]int{"count": 1}, Verdicts: map[string]int{}}
	none := operator.Outcomes{ErrorTypes: map[string]int{}}
	return operator.HistoryUsage{Usage: u, Roles: []operator.RoleUsage{{Role: "r", Usage: u}},
			ByAccess: operator.ByAccess{With: none, Without: none}, Delegation: []operator.Delegation{}},
		f.note("HistoryUsage")
}

func (f *fake) Trends(_ context.Context, w time.Duration) (operator.Trends, error) {
	t := operator.Trend{Since: agent.FormatTime(at), Until: agent.FormatTime(at),
		ProgramSource: map[string]int{"persisted": 1}, FailureClass: map[string]int{}, ErrorType: map[string]int{},
		Verdicts: map[string]int{}}
	return operator.Trends{Window: w.String(), Total: t, Buckets: []operator.Trend{t},
		KnownTools: operator.KnownTools{Starving: []string{}}}, f.note("Trends")
}

func TestEvolutionRoutes(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	for _, c := range []struct {
		method, path, body string
		want               int
	}{
		{"GET", "/v1/recommendations", "", 200},
		{"GET", "/v1/recommendations?status=dismissed&limit=1", "", 200},
		{"GET", "/v1/recommendations?status=other", "", 400},
		{"POST", "/v1/recommendations/rec_1/apply", "", 200},
		{"POST", "/v1/recommendations/rec_1/apply", `{"undo":true,"reason":"was wrong"}`, 200},
		{"POST", "/v1/recommendations/rec_1/dismiss", `{"reason":"no"}`, 200},
		{"POST", "/v1/recommendations/rec_2/dismiss", "", 404},
		{"POST", "/v1/recommendations/UPPER/dismiss", "", 404},
		{"POST", "/v1/recommendations/rec_1/apply", `{"force":true}`, 422},
		{"GET", "/v1/patterns/movie%20finder", "", 200},
		{"GET", "/v1/patterns/..", "", 422},
		{"GET", "/v1/reports/history-usage", "", 200},
		{"GET", "/v1/reports/history-usage?x=1", "", 400},
		{"GET", "/v1/reports/trends?window=1h", "", 200},
		{"GET", "/v1/reports/trends?window=1", "", 400},
		{"GET", "/v1/reports/trends?window=9000h", "", 400},
	} {
		if a := g.ask(c.method, c.path, c.body); a.status != c.want {
			t.Errorf("%s %s %s: status %d, want %d: %.200s", c.method, c.path, c.body, a.status, c.want, a.body)
		}
	}
}
