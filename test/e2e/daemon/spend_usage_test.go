package daemon

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

const (
	annToken, benToken, opsToken, rootToken = "token-of-ann-0001", "token-of-ben-0002", "token-of-ops-0003",
		"token-of-root-0004"
	tokensOfScopes = "ann " + annToken + " scopes=read,call\nben " + benToken +
		" scopes=read,call\nops " + opsToken + " scopes=read,operate\nroot " + rootToken + "\n"
	priceList = "currency: EUR\nmodels:\n  scripted: {input: 2.0, output: 8.0}\n"
)

// Owners see what is their own, with what it cost and what stored programs saved; with operate one sees all of it.
func TestUsageOfOwners(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{".": {rig.ProgGiven}})
	d, resets := start(t, m, "--auth-tokens-file", rig.WriteFile(t, "tokens", tokensOfScopes), "--model-prices",
		rig.WriteFile(t, "prices", priceList), "--spend-day-tokens", "9000000")
	ann, ben, ops, root := d.As(annToken), d.As(benToken), d.As(opsToken), d.As(rootToken)
	root.Policy(map[string]any{"spend": map[string]any{"owner_day_tokens": 1_000_000}})
	for who, calls := range map[*rig.Daemon][]string{ann: {"a1", "a2"}, ben: {"b1"}} {
		s := who.Session("worker")
		for _, method := range calls {
			who.WantValue(who.Call(s, method, "x"), "x", "generated")
		}
		for range 2 {
			who.WantValue(who.Call(s, calls[0], "x"), "x", "persisted")
		}
	}
	// A forge is 10 tokens at 2 and 5 at 8 euros a million; it is saved by each of the two warm calls.
	const forge = 0.00006
	owner := func(name string, forges int) usageRow {
		cost, saved, requests, tokens := float64(forges)*forge, 2*forge, 2, 2*perForge
		return usageRow{Key: name, Calls: forges + 2, WarmCalls: 2, ModelRequests: forges, PromptTokens: 10 * forges,
			Completion: 5 * forges, Cost: &cost, SavedRequests: &requests, SavedTokens: &tokens, SavedCost: &saved}
	}
	ofOwner := func(name string, used int) limit {
		return limit{Scope: "owner", Name: name, Window: "day", Limit: 1_000_000, Used: used, ResetsAt: resets}
	}
	both, caps := []usageRow{owner("ann", 2), owner("ben", 1)},
		[]limit{ofOwner("ann", 2*perForge), ofOwner("ben", perForge)}
	for _, c := range []struct {
		name   string
		who    *rig.Daemon
		rows   []usageRow
		limits []limit
	}{
		{"ann", ann, both[:1], caps[:1]}, {"ben", ben, both[1:], caps[1:]}, {"ops", ops, both, caps},
		{"root", root, both, append([]limit{{Scope: "daemon", Window: "day", Limit: 9_000_000, Used: 3 * perForge,
			ResetsAt: resets}}, caps...)},
	} {
		got := usage(c.who, "?by=owner")
		if got.Currency != "EUR" || encodedRows(t, got.Data) != encodedRows(t, c.rows) ||
			!slices.Equal(got.Limits, c.limits) {
			t.Errorf("%s sees %s\n%+v\nwant %s\n%+v", c.name, encodedRows(t, got.Data), got.Limits,
				encodedRows(t, c.rows), c.limits)
		}
	}
	if methods := keys(usage(ben, "?by=method")); !slices.Equal(methods, []string{"worker.b1"}) {
		t.Errorf("by method ben sees %q", methods)
	}
	if methods := keys(usage(ops, "?by=method")); !slices.Equal(methods,
		[]string{"worker.a1", "worker.a2", "worker.b1"}) {
		t.Errorf("by method ops sees %q", methods)
	}
	if got := usage(ops, "?by=day&until=2001-01-01T00:00:00Z"); len(got.Data) != 0 {
		t.Errorf("in another century there is %+v", got.Data)
	}
	out, errs, code := rig.Run(t, append(rig.Environment(t.TempDir()), "RECURGENT_URL="+d.URL,
		"RECURGENT_TOKEN="+annToken), "usage", "--by", "owner")
	if code != 0 || !strings.Contains(out, "ann") || strings.Contains(out, "ben") ||
		!strings.Contains(out, "0.00012 EUR") {
		t.Errorf("recurgentd usage: %d %s\n%s", code, errs, out)
	}
	d.As("token-of-nobody-0005").Do(http.StatusUnauthorized, http.MethodGet, "/v1/usage", nil)
}

func keys(r report) []string {
	var all []string
	for _, row := range r.Data {
		all = append(all, row.Key)
	}
	slices.Sort(all)
	return all
}

func encodedRows(t *testing.T, rows []usageRow) string { return string(rig.Encode(t, rows)) }
