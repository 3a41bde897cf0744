package tools

import (
	"fmt"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// counts is a program that counts what it finds at the source, and says by an error of its own that there is nothing.
func counts(url, expression, errorType string) string {
	return rig.Program("\tr, err := call.Fetch(\""+url+
		"\")\n\tif err != nil {\n\t\treturn nil, err\n\t}\n\tvar m struct {\n\t\tItems   []any `json:\"items\"`\n\t\tResults []any `json:\"results\"`\n\t}\n"+
		"\t_ = json.Unmarshal([]byte(r.Body), &m)\n\tn := "+expression+
		"\n\t_ = strings.Count(\"\", \"\")\n\tif n == 0 {\n\t\treturn nil, recurgent.Fail(\""+errorType+
		"\", \"nothing today\")\n\t}\n\treturn n, nil", "encoding/json", "strings")
}

// Sources of every kind: with something, with nothing today, and changed. Both expressions count what there is.
var sources = []struct {
	method, errorType, before, after string
	full, changed                    string
	nothing                          []string
}{
	{"list", "low_utility", "len(m.Items)", "len(m.Results)", `{"items":[{"title":"a"},{"title":"b"}],"page":1}`,
		`{"results":[{"title":"a"},{"title":"b"}],"page":1}`,
		[]string{`{"items":[],"page":1}`, `{"items":null,"page":1}`, `{"page":1}`, ``}},
	{"page", "not_found", "strings.Count(r.Body, `<li class=\"hit\">`)",
		"strings.Count(r.Body, `<li class=\"result\">`)",
		`<html><body><h1>All</h1><ul><li class="hit">a</li><li class="hit">b</li></ul></body></html>`,
		`<html><body><h1>All</h1><ul><li class="result">a</li><li class="result">b</li></ul></body></html>`,
		[]string{`<html><body><h1>All</h1><ul></ul></body></html>`,
			`<html><body><h1>All</h1><p class="none">Nothing <b>today</b></p></body></html>`}},
	{"feed", "wrong_tool_boundary", "strings.Count(r.Body, \"<item>\")", "strings.Count(r.Body, \"<entry>\")",
		`<rss><channel><title>f</title><item><title>a</title></item><item><title>b</title></item></channel></rss>`,
		`<rss><channel><title>f</title><entry><title>a</title></entry><entry><title>b</title></entry></channel></rss>`,
		[]string{`<rss><channel><title>f</title></channel></rss>`}},
	{"price", "unsupported_capability", "strings.Count(r.Body, `class=\"price\"`) * 2",
		"strings.Count(r.Body, `class=\"cost\"`) * 2",
		`<html><h1>Shop</h1><i class="price">2</i></html>`, `<html><h1>Shop</h1><i class="cost">2</i></html>`,
		[]string{``}},
	{"own", "closed_today", "len(m.Items)", "len(m.Results)", `{"items":["a","b"]}`, `{"results":["a","b"]}`,
		[]string{`{"items":[],"note":"closed"}`}},
}

// A tool whose source has nothing today says so as often as it is asked, over a restart too: no adaptive failure is
// counted, no repair asked, and it is healthy. Once the source has changed, the same error ends in a repair.
func TestSeed003Line37HonestErrorsAreNotHeldAgainstTheTool(t *testing.T) {
	t.Parallel()
	site := rig.NewSource(t, "")
	script := rig.Script{}
	for _, x := range sources {
		script["shop."+x.method] = []any{counts(site.URL, x.before, x.errorType),
			counts(site.URL, x.after, x.errorType)}
	}
	m := rig.NewModel(t, script)
	d := rig.Start(t, m, "--fetch-allow", site.Host())
	s := d.Session("shop")
	for _, x := range sources {
		site.Body(x.full)
		d.WantValue(d.Call(s, x.method), 2, "generated")
	}
	for round := range 2 {
		for _, x := range sources {
			for _, nothing := range x.nothing {
				site.Body(nothing)
				for range 3 {
					got := d.Call(s, x.method)
					if d.WantError(got, x.errorType); !got.Outcome.Authored ||
						d.LogOf(got)["failure_class"] != "authored" {
						t.Errorf("%s: authored %v, class %v", x.method, got.Outcome.Authored,
							d.LogOf(got)["failure_class"])
					}
				}
			}
			a := d.Artifact("shop", x.method)
			if a["adaptive_failure_count"] != 0.0 || a["failure_count"] != 0.0 || a["lifecycle_state"] == "degraded" ||
				asked(m, "shop", x.method) != 1 {
				t.Errorf("%s: %v adaptive of %v failures, %v, %d requests", x.method, a["adaptive_failure_count"],
					a["failure_count"], a["lifecycle_state"], asked(m, "shop", x.method))
			}
			site.Body(x.full)
			d.WantValue(d.Call(s, x.method), 2, "persisted")
		}
		if round == 0 {
			d.Restart()
		}
	}
	for _, x := range sources {
		site.Body(x.changed)
		d.WantError(d.Call(s, x.method), x.errorType)
		d.WantValue(d.Call(s, x.method), 2, "repaired")
		if q := m.LastQuestion(); q.Kind != "repair" || !strings.Contains(q.User, "adaptive") ||
			asked(m, "shop", x.method) != 2 {
			t.Errorf("%s: %s, %d requests", x.method, q.Kind, asked(m, "shop", x.method))
		}
	}
}

// The same for a program that a person put in, and that has had nothing to give since.
func TestHonestErrorsAskForNoOtherProgram(t *testing.T) {
	t.Parallel()
	site := rig.NewSource(t, `{"items":[]}`)
	m := rig.NewModel(t, nil)
	d := rig.Start(t, m, "--fetch-allow", site.Host())
	s := d.Session("shop")
	d.Do(200, "PUT", rig.MethodPath("shop", "list"), object{"code": counts(site.URL, "len(m.Items)", "low_utility")})
	for range 5 {
		d.WantError(d.Call(s, "list"), "low_utility")
	}
	if a := d.Artifact("shop", "list"); asked(m, "shop", "list") != 0 || a["failure_count"] != 0.0 ||
		a["authored_error_count"] != 5.0 {
		t.Errorf("%d requests, %v failures, %v authored errors", asked(m, "shop", "list"), a["failure_count"],
			a["authored_error_count"])
	}
}

// Where the first program of a method says that the task is another tool's, that is the answer: after each delay, too,
// it is given without a request, until a person changes what the method is for. An input for which the program has a
// value has it stored.
func TestSeed003Line37ReferralStands(t *testing.T) {
	t.Parallel()
	refers := rig.Program("\tif call.Arg(0, \"topic\") == \"books\" {\n\t\treturn \"shelf 3\", nil\n\t}\n\treturn nil, recurgent.Fail(\"wrong_tool_boundary\", \"ask the weather service\")")
	m := rig.NewModel(t, rig.Script{"library.find": {refers, rig.ProgGiven}, "library.report": {refers, rig.ProgGiven}})
	d, ahead := rig.StartAhead(t, m)
	d = d.One()
	d.Do(201, "PUT", "/v1/tools/library", object{"purpose": "finds books"})
	s := d.Session("library")
	later := func(days int) {
		t.Helper()
		ahead(fmt.Sprintf("%dh", 24*days)) // every delay is over
		for _, method := range []string{"find", "report", "find", "report"} {
			d.WantError(d.Call(s, method, "weather"), "wrong_tool_boundary")
		}
		if n := m.Count("library", ""); n != 2 {
			t.Errorf("after %d days the model has got %d requests, want one for each method", days, n)
		}
	}
	for days := range 5 {
		later(days)
	}
	if r := d.Send("GET", rig.MethodPath("library", "find"), nil, nil); r.Status != 404 {
		t.Errorf("a program that has answered nothing is stored: %d", r.Status)
	}
	d.WantValue(d.Call(s, "find", "books"), "shelf 3", "generated")
	later(6)
	d.Do(200, "PUT", "/v1/tools/library", object{"purpose": "finds books, and the weather"})
	d.WantValue(d.Call(s, "report", "weather"), "weather", "generated")
}

// Another purpose that a call brings is another question.
func TestReferralOfAnotherPurpose(t *testing.T) {
	t.Parallel()
	refers := rig.Program("\tcall.Arg(0, \"topic\")\n\treturn nil, recurgent.Fail(\"wrong_tool_boundary\", \"ask the weather service\")")
	m := rig.NewModel(t, rig.Script{"library.find": {refers, rig.ProgGiven}})
	d, ahead := rig.StartAhead(t, m)
	d = d.One()
	d.WantError(d.Call(d.Session("library"), "find", "weather"), "wrong_tool_boundary")
	ahead("24h")
	own := d.Session("library", object{"contract": object{"purpose": "finds anything"}})
	d.WantValue(d.Call(own, "find", "weather"), "weather", "generated")
}
