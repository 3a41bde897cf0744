package cli

import (
	"bytes"
	"encoding/xml"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// answers runs a command against a daemon that answers by "METHOD path". It returns the requests, the output and the
// exit code.
func answers(t *testing.T, replies map[string]string, args ...string) (sent []string, out, errs string, code int) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // a missing one shows in the comparison
		what := r.Method + " " + r.URL.Path
		sent = append(sent, strings.TrimSpace(what+" "+string(body)+" "+r.Header.Get("Prefer")))
		reply, ok := replies[what]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			reply = `{"code":"not_found","title":"Not Found"}`
		}
		_, _ = io.WriteString(w, reply)
	}))
	defer s.Close()
	var stdout, stderr bytes.Buffer
	code = Main(Shell{Stdout: &stdout, Stderr: &stderr, Env: environment(t, map[string]string{"RECURGENT_URL": s.URL})},
		args)
	return sent, stdout.String(), stderr.String(), code
}

// Arguments are sent as JSON if they parse as JSON, and as text otherwise.
func TestVerdictsAreSentAsMeant(t *testing.T) {
	t.Parallel()
	const path = "POST /v1/calls/call_1/verdict"
	verdict := map[string]string{path: `{"call_id":"call_1","role":"tax","method":"net","generation":"gen-1","verdict":"wrong","note":"","example_id":null,"example_state":null,"dropped_fixtures":0,` +
		`"correction":{"state":"backing_off","generation":null,"changed_answers":0,"attempts":2,"last_error":"\u001b[31mno","next_try_at":null}}`}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"right", "call_1"}, `{"verdict":"right"}`},
		{[]string{"wrong", "call_1"}, `{"verdict":"wrong"}`},
		{[]string{"wrong", "call_1", "--expected", "-5"}, `{"verdict":"wrong","expected":-5}`},
		{[]string{"wrong", "call_1", "--expected", "null"}, `{"verdict":"wrong","expected":null}`},
		{[]string{"wrong", "call_1", "--expected", `{"a": [1.10]}`}, `{"verdict":"wrong","expected":{"a":[1.10]}}`},
		{[]string{"wrong", "call_1", "--expected", "Paris", "--note", "the capital"},
			`{"verdict":"wrong","expected":"Paris","note":"the capital"}`},
		{[]string{"wrong", "call_1", "--expected-error", "invalid_input", "--wait"},
			`{"verdict":"wrong","expected_error_type":"invalid_input"} wait=60`},
	} {
		sent, out, errs, code := answers(t, verdict, c.args...)
		if len(sent) != 1 || sent[0] != path+" "+c.want || code != 0 || errs != "" {
			t.Errorf("%q: sent %q, want %s; exit code %d, %s", c.args, sent, c.want, code, errs)
		}
		if want := "tax.net (gen-1): wrong\ncorrection: backing_off, 2 attempts: [31mno\n"; out != want {
			t.Errorf("%q prints %q, want %q", c.args, out, want)
		}
	}
	if sent, _, errs, code := answers(t, nil, "verdict", "a/b",
		"--drop"); code != ExitUnreachable || len(sent) != 1 || !strings.Contains(errs, "404") {
		t.Errorf("a verdict of nothing: %d, %q, %q", code, errs, sent)
	}
}

// The changed answers are those of all generations in between, oldest first. Another line of descent has none.
func TestChangedAnswersOfALineage(t *testing.T) {
	t.Parallel()
	one, two := "gen-1", "gen-2"
	g := generations{Data: []*agent.Generation{
		{ID: "gen-3", ParentID: &two, ChangedAnswers: []agent.ChangedAnswer{{CallID: "c"}}},
		{ID: two, ParentID: &one, ChangedAnswers: []agent.ChangedAnswer{{CallID: "a"}, {CallID: "b"}}},
		{ID: one},
	}}
	for _, c := range []struct{ from, to, want string }{{"gen-1", "gen-3", "abc"}, {"gen-2", "gen-3", "c"},
		{"gen-1", "gen-2", "ab"}, {"gen-3", "gen-1", ""}, {"gen-1", "gen-1", ""}} {
		got := ""
		for _, x := range g.changed(g.find(c.from), g.find(c.to)) {
			got += x.CallID
		}
		if got != c.want {
			t.Errorf("from %s to %s: %q, want %q", c.from, c.to, got, c.want)
		}
	}
}

// A report has one suite per file, and is valid XML whatever a program answered.
func TestJUnitReport(t *testing.T) {
	t.Parallel()
	data, err := junitReport([]tested{
		{File: "a.yaml", Line: 4, Role: "tax", Method: "net", Result: "passed", Got: []byte("700")},
		{File: "a.yaml", Line: 7, Role: "tax", Method: "net", Result: "failed", Got: []byte("\"<\x1b\x00\""),
			Expect: agent.Expectation{ErrorType: "x"}},
		{File: "b.yaml", Line: 4, Role: "a", Method: "b", Result: "skipped"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var r junitSuites
	if err := xml.Unmarshal(data, &r); err != nil {
		t.Fatalf("%v:\n%s", err, data)
	}
	if len(r.Suites) != 2 || r.Suites[0].Tests != 2 || r.Suites[0].Failures != 1 || r.Suites[1].Skipped != 1 ||
		!strings.HasPrefix(r.Suites[0].Cases[1].Failure.Message, `got "<`) {
		t.Errorf("the report is\n%s", data)
	}
}
