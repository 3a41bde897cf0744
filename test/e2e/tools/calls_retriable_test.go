package tools

import (
	"net/http"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/provider/openaitest"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// retries checks that the outcome, the history and the log say the same of a second try, and what that is.
func retries(d *rig.Daemon, t *testing.T, s, what string, got rig.Reply, errorType string, want bool) {
	t.Helper()
	d.WantError(got, errorType)
	record := d.History(s)
	summary, _ := record[len(record)-1]["outcome_summary"].(map[string]any)
	if logged := d.LogOf(got)["outcome_retriable"]; got.Outcome.Retriable != want || summary["retriable"] != want ||
		logged != want {
		t.Errorf("%s: retriable is %v in the outcome, %v in the history, %v in the log, want %v", what,
			got.Outcome.Retriable, summary["retriable"], logged, want)
	}
}

// Whether a second try may help is true of what passes by itself, and of nothing else.
func TestSeed000Line114Retriable(t *testing.T) {
	t.Parallel()
	site := rig.NewSource(t, "down")
	site.Status(http.StatusServiceUnavailable)
	reads := rig.Program("\tr, err := call.Fetch(\"" + site.URL +
		"\")\n\tif err != nil {\n\t\treturn nil, err\n\t}\n\tif r.Status >= 400 {\n\t\treturn nil, recurgent.Fail(\"fetch_failed\", \"the site is down\")\n\t}\n\treturn r.Body, nil")
	opens := rig.Program("\tif call.Arg(0, \"wrapped\") == true {\n\t\treturn nil, fmt.Errorf(\"not yet: %w\", recurgent.FailRetriable(\"closed\", \"opens at eight\"))\n\t}\n\treturn nil, recurgent.FailRetriable(\"closed\", \"opens at eight\")", "fmt")
	asks := rig.Program("\to := call.Tool(\"shop\").Call(\"opens\", false)\n\tif o.Retriable && call.Arg(0, \"on\") == true {\n\t\treturn nil, recurgent.FailRetriable(o.ErrorType, o.ErrorMessage)\n\t}\n\treturn nil, recurgent.Fail(o.ErrorType, o.ErrorMessage)")
	m := rig.NewModel(t, rig.Script{"shop.reads": {reads}, "shop.opens": {opens},
		"shop.closed": {rig.Program("\treturn nil, recurgent.FailRetriable(\"closed\", \"opens at eight\")")},
		"shop.asks":   {asks}, "shop.fails": {rig.ProgFails}, "shop.panics": {rig.ProgPanic},
		"shop.odd": {"package tool\n\nfunc Run("}, "shop.denied": {rig.Status(http.StatusUnauthorized)},
		"shop.broke": {openaitest.Reply{Status: http.StatusTooManyRequests,
			Body: `{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}`}}})
	d := rig.Start(t, m, "--fetch-allow", site.Host())
	s := d.Session("shop")
	for _, x := range []struct {
		method, errorType string
		arg, want         bool
	}{
		{"reads", "fetch_failed", false, true}, {"opens", "closed", false, true}, {"opens", "closed", true, true},
		{"asks", "closed", true, true}, {"asks", "closed", false, false},
		{"fails", "not_today", false, false}, {"panics", "execution", false, false},
		{"odd", "invalid_code", false, true}, {"denied", "provider", false, false}, {"broke", "provider", false, false},
	} {
		retries(d, t, s, x.method, d.Call(s, x.method, x.arg), x.errorType, x.want)
	}
	retries(d, t, s, "panics, during the delay", d.Call(s, "panics", false), "execution", true)
	plain := rig.Start(t, m, "--engine", "yaegi")
	room := plain.Session("shop")
	retries(plain, t, room, "on the other engine", plain.Call(room, "closed"), "closed", true)
	m.Close()
	retries(d, t, s, "the model is away", d.Call(s, "unknown"), "provider", true)
}
