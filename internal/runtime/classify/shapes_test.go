package classify

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/fetch"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// The record of a run's sources is bounded, and leaves out failed fetches.
func TestShapes(t *testing.T) {
	t.Parallel()
	fetched := func(url string, status int, shape string) sandbox.Fetch {
		return sandbox.Fetch{URL: url, Status: status, Shape: shape, Outline: shape}
	}
	remembered := func(e Evidence) (shapes, outlines map[string]string) { return e.Remembered(true) }
	if shapes, outlines := remembered(Evidence{}); shapes != nil || outlines != nil {
		t.Error("nothing came in, and is remembered")
	}
	mixed := []sandbox.Fetch{fetched("a?q=1", 200, "x"), fetched("b#f", 299, "y"), fetched("c", 300, "z"),
		fetched("d", 199, "z"), fetched("?e", 200, "w"), fetched("f", 404, "z")}
	shapes, outlines := remembered(Evidence{Fetches: append(mixed, fetched("g", 200, "")),
		Nested: map[string]string{"r.m": "array"}})
	if got := string(agent.Encoded(shapes)); got != `{"":"w","a":"x","b":"y","g":"","r.m":"array"}` {
		t.Errorf("shapes %s", got)
	}
	if got := string(agent.Encoded(outlines)); got != `{"":"w","a":"x","b":"y"}` {
		t.Errorf("outlines %s", got)
	}
	var many []sandbox.Fetch
	nested := map[string]string{}
	for i := range maxShapes + 4 {
		many = append(many, fetched(strings.Repeat("u", i+1), 200, "x"))
		nested[strings.Repeat("n", i+1)] = "array"
	}
	for what, e := range map[string]Evidence{"fetches": {Fetches: many}, "nested values": {Nested: nested},
		"both": {Fetches: many[:10], Nested: nested}} {
		if shapes, outlines := remembered(e); len(shapes) != maxShapes || len(outlines) > maxShapes {
			t.Errorf("%s: %d are remembered, want %d", what, len(shapes), maxShapes)
		}
	}
}

// The sources whose change a failure may come of: those with another shape, or all that were used.
func TestChangedSources(t *testing.T) {
	t.Parallel()
	known := map[string]string{"a": "x", "b": "y", "c": "z"}
	a, b := sandbox.Fetch{URL: "a?q", Asked: "short?q", Status: 200, Shape: "x"},
		sandbox.Fetch{URL: "b", Status: 200, Shape: "y"}
	changed := b
	changed.Shape = "other"
	gone := sandbox.Fetch{URL: "c", Status: 404, Shape: "other"}
	foreign := sandbox.Fetch{URL: "d", Status: 200, Shape: "other"}
	for want, fetches := range map[string][]sandbox.Fetch{"a,b,short": {b, a, a, gone, foreign}, "b": {a, changed},
		"": {gone, foreign}} {
		if got := strings.Join(ChangedSources(Evidence{Fetches: fetches, Shapes: known}), ","); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Drift behind honest errors shows only in a row of them, on data of another shape. On data of the usual shape it shows
// only if the program cannot read the data.
func TestDriftAfter(t *testing.T) {
	t.Parallel()
	e := Evidence{Authored: true, ErrorType: "none", Answered: true, Shapes: map[string]string{"a": "x"},
		Fetches: []sandbox.Fetch{{URL: "a", Status: 200, Shape: "y"}}}
	for _, tt := range []struct {
		streak, after int
		want          agent.Class
	}{{0, 0, agent.ClassAuthored}, {1, 0, agent.ClassAdaptive}, {0, 1, agent.ClassAdaptive},
		{1, 3, agent.ClassAuthored}, {2, 3, agent.ClassAdaptive}, {0, -1, agent.ClassAdaptive}} {
		e.Streak, e.DriftAfter, e.Fetches[0].Shape = tt.streak, tt.after, "y"
		if got := Class(e); got != tt.want {
			t.Errorf("after %d of %d: %s, want %s", tt.streak, tt.after, got, tt.want)
		}
		e.Fetches[0].Shape = "x"
		if got := Class(e); got != agent.ClassAuthored {
			t.Errorf("after %d of %d on the shape of always: %s", tt.streak, tt.after, got)
		}
	}
	for errorType, want := range map[string]agent.Class{agent.ErrExecution: agent.ClassAdaptive,
		agent.ErrContractViolation: agent.ClassIntrinsic, agent.ErrResourceExhausted: agent.ClassIntrinsic} {
		broken := Evidence{ErrorType: errorType, Answered: true, Shapes: e.Shapes, Fetches: e.Fetches, Streak: 5}
		if got := Class(broken); got != want {
			t.Errorf("%s again and again on the shape of always: %s, want %s", errorType, got, want)
		}
	}
}

// The shapes of nested values: null fits a list, more keys break nothing, and what was cut is compared as a whole.
func TestKeepsShape(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		was, now string
		want     bool
	}{{"array", "array", true}, {"array", "null", true}, {"null", "array", true}, {"array", "object{}", false},
		{"string", "null", false},
		{"object{a:array,b:string}", "object{a:null,b:string}", true},
		{"object{a:string}", "object{a:string,b:null}", true}, {"object{}", "object{a:string}", true},
		{"object{a:string,b:number}", "object{a:string}", false}, {"object{a:string}", "object{a:number}", false},
		{"object{a:string", "object{a:string}", false}} {
		if got := keepsShape(tt.was, tt.now); got != tt.want {
			t.Errorf("%s, then %s: %v", tt.was, tt.now, got)
		}
	}
}

// An empty list does not erase the known shape of its elements, and shapes from another owner's call are not mixed in.
func TestFullerShapeStays(t *testing.T) {
	t.Parallel()
	note := func(body string) sandbox.Fetch {
		return fetch.Recorded(recurgent.Request{URL: "http://a.example"}, &recurgent.Response{Status: 200, Body: body},
			"")
	}
	full, _ := (&Evidence{Fetches: []sandbox.Fetch{note(`{"items":[{"name":"x"}]}`)}}).Remembered(true)
	e := Evidence{Shapes: full, Outlines: map[string]string{"http://a.example": "full"},
		Fetches: []sandbox.Fetch{note(`{"items":[]}`)}}
	for same, want := range map[bool]string{true: "full", false: "{items:[],}"} {
		if shapes, outlines := e.Remembered(same); (shapes["http://a.example"] == full["http://a.example"]) != same ||
			outlines["http://a.example"] != want {
			t.Errorf("of the same owner %v: %v, %v", same, shapes, outlines)
		}
	}
	e.Fetches[0] = note(`{"items":[{"name":"x","age":1}]}`)
	if shapes, _ := e.Remembered(true); shapes["http://a.example"] != "json {items:[{age:n,name:s,}],}" {
		t.Errorf("more came in: %v", shapes)
	}
}

// The words of a program are those of its text literals, without addresses and messages.
func TestWords(t *testing.T) {
	t.Parallel()
	got := wordsOf("package tool\n// a comment \"no\"\nvar i, s = 'x', `div.card > a`\ntype t struct { A string `xml:\"channel>item\"` }\nfunc f() error {\n\tif strings.Cut(b, \"<h2 class=\\\"top-news\\\">\") {\n" +
		"\t\treturn recurgent.Fail(\"low_utility\", fmt.Sprint(\"no p\", (g(\"em\"))))\n\t}\n\tfetch(\"https://x.example/li\", \"ul\")\n}\n\"unclosed")
	if words := strings.Join(slices.Sorted(maps.Keys(got)),
		" "); words != "a card channel class div h2 item top-news ul unclosed xml" {
		t.Errorf("got %s", words)
	}
}

// Failed fetches are classified as the server's fault or as a limit of the daemon.
func TestFailedFetches(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		f             sandbox.Fetch
		outside, over bool
	}{
		{sandbox.Fetch{Status: 200}, false, false},
		{sandbox.Fetch{Status: 404}, false, false},
		{sandbox.Fetch{Status: 429}, true, false},
		{sandbox.Fetch{Status: 499}, false, false},
		{sandbox.Fetch{Status: 500}, true, false},
		{sandbox.Fetch{ErrorKind: "denied"}, false, false},
		{sandbox.Fetch{ErrorKind: "redirect_denied"}, true, false},
		{sandbox.Fetch{ErrorKind: "redirects"}, true, false},
		{sandbox.Fetch{ErrorKind: "incomplete"}, true, false},
		{sandbox.Fetch{ErrorKind: "encoding"}, true, false},
		{sandbox.Fetch{ErrorKind: "network"}, true, false},
		{sandbox.Fetch{ErrorKind: "timeout"}, true, true},
		{sandbox.Fetch{Status: 200, ErrorKind: "too_large"}, false, true},
	} {
		if outside, over := OutsideFailed(tt.f), OverLimit(tt.f); outside != tt.outside || over != tt.over {
			t.Errorf("%+v: got outside %v, over %v, want %v, %v", tt.f, outside, over, tt.outside, tt.over)
		}
	}
}
