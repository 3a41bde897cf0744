package daemon

import (
	"net/http"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// perForge is what the scripted model reports of each request: 10 tokens of the prompt and 5 of the reply.
const perForge = 15

// start starts a daemon at noon (UTC), so that no test sees the end of a day. resets is the end of that day.
func start(t *testing.T, m *rig.Model, args ...string) (d *rig.Daemon, resets string) {
	t.Helper()
	d, set := rig.StartAhead(t, m, args...)
	now := time.Now().UTC()
	tomorrow := now.Truncate(24 * time.Hour).Add(24 * time.Hour)
	set(tomorrow.Add(12 * time.Hour).Sub(now).String())
	return d, tomorrow.Add(24 * time.Hour).Format(time.RFC3339)
}

// capped sets the namespace's cap of a day.
func capped(d *rig.Daemon, tokens int) {
	d.T.Helper()
	d.Policy(map[string]any{"spend": map[string]any{"day_tokens": tokens}})
}

// most returns what a request for a program costs at most: a cap without room says so.
func most(d *rig.Daemon) int {
	d.T.Helper()
	capped(d, 1)
	got := d.Call(d.Session("worker"), "m99", "x")
	d.WantError(got, "budget_exceeded")
	n, _ := got.Outcome.Metadata["needed"].(float64)
	if n < 16384 {
		d.T.Fatalf("a request needs %v tokens: %+v", n, got.Outcome)
	}
	return int(n)
}

// wantOver checks that the call ended since the cap has no room.
func wantOver(d *rig.Daemon, got rig.Reply, limit, used int, resets string) {
	d.T.Helper()
	d.WantError(got, "budget_exceeded")
	m := got.Outcome.Metadata
	if m["limit"] != float64(limit) || m["used"] != float64(used) || m["resets_at"] != resets {
		d.T.Errorf("%s.%s: limit %v, used %v, resets at %v, want %d, %d, %s", got.Role, got.Method, m["limit"],
			m["used"], m["resets_at"], limit, used, resets)
	}
}

// A report is what GET /v1/usage answers.
type report struct {
	Currency string
	Data     []usageRow
	Limits   []limit
}

type usageRow struct {
	Key             string
	Calls           int
	WarmCalls       int      `json:"warm_calls"`
	ModelRequests   int      `json:"model_requests"`
	PromptTokens    int      `json:"prompt_tokens"`
	Completion      int      `json:"completion_tokens"`
	EstimatedTokens int      `json:"estimated_tokens"`
	Cost            *float64 `json:"cost"`
	SavedRequests   *int     `json:"saved_requests"`
	SavedTokens     *int     `json:"saved_tokens"`
	SavedCost       *float64 `json:"saved_cost"`
}

type limit struct {
	Scope, Name, Window   string
	Limit, Used, Reserved int
	ResetsAt              string `json:"resets_at"`
}

func usage(d *rig.Daemon, query string) (r report) {
	d.T.Helper()
	d.Do(http.StatusOK, http.MethodGet, "/v1/usage"+query, nil).Into(d.T, &r)
	return r
}

// wantLimit checks the only cap in force.
func wantLimit(d *rig.Daemon, want limit) {
	d.T.Helper()
	if got := usage(d, "").Limits; len(got) != 1 || got[0] != want {
		d.T.Errorf("limits %+v, want only %+v", got, want)
	}
}
