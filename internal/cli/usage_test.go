package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/cli/clitest"
)

const usageReply = `{"currency":"EUR","data":[{"key":"tax.net","calls":41,"warm_calls":40,"model_requests":1,"prompt_tokens":2100,"cached_tokens":1024,"completion_tokens":320,"estimated_tokens":0,` +
	`"cost":0.005224,"saved_requests":40,"saved_tokens":96800,"saved_cost":60},{"key":"","calls":1,"warm_calls":1,"model_requests":0,"prompt_tokens":0,"cached_tokens":0,"completion_tokens":0,` +
	`"estimated_tokens":7,"cost":null,"saved_requests":null,"saved_tokens":null,"saved_cost":null}],"limits":[{"scope":"namespace","window":"day","limit":1000,"used":20,"reserved":3,` +
	`"resets_at":"2026-11-23T00:00:00Z"},{"scope":"owner","name":"ann","window":"day","limit":100,"used":20,"reserved":0,"resets_at":"2026-11-23T00:00:00Z"}],"storage":[{"owner":"ann","files":1048576,"contexts":2,"histories":3,"values":4,"tools":5,"examples":6}]}`

// The rows are followed by the caps and the stored bytes. Null is a dash, and amounts have the currency if there is
// one.
func TestUsageTables(t *testing.T) {
	t.Parallel()
	_, out, errs, code := answers(t, map[string]string{"GET /v1/usage": usageReply}, "usage")
	const want = `METHOD   CALLS  WARM  REQUESTS  PROMPT  CACHED  COMPLETION  ESTIMATED  COST          SAVED-REQUESTS  SAVED-TOKENS  SAVED-COST
tax.net  41     40    1         2100    1024    320         0          0.005224 EUR  40              96800         60 EUR
-        1      1     0         0       0       0           7          -             -               -             -

SCOPE      NAME  WINDOW  LIMIT  USED  RESERVED  RESETS-AT
namespace  -     day     1000   20    3         2026-11-23T00:00:00Z
owner      ann   day     100    20    0         2026-11-23T00:00:00Z

OWNER  FILES    CONTEXTS  HISTORIES  VALUES  TOOLS  EXAMPLES
ann    1048576  2         3          4       5      6
`
	if out != want || errs != "" || code != 0 {
		t.Errorf("%d %s\n%s\nwant\n%s", code, errs, out, want)
	}
	_, out, _, _ = answers(t,
		map[string]string{"GET /v1/usage": strings.Replace(usageReply, `"currency":"EUR",`, "", 1)}, "usage", "--by",
		"role")
	if !strings.HasPrefix(out, "ROLE ") || strings.Contains(out, "EUR") || !strings.Contains(out, " 0.005224  ") {
		t.Errorf("without a currency:\n%s", out)
	}
	_, out, _, _ = answers(t, map[string]string{"GET /v1/usage": `{"data":[],"limits":[]}`}, "usage")
	if out != "nothing\n\nno caps\n" {
		t.Errorf("without anything: %q", out)
	}
	_, out, _, _ = answers(t, map[string]string{"GET /v1/usage": usageReply}, "usage", "--json")
	if out != usageReply+"\n" {
		t.Errorf("--json: %s", out)
	}
}

// All owners are listed, however many pages they fill.
func TestUsageListsAllOwners(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reply := `{"data":[],"limits":[],"storage":[{"owner":"a&b"}],"storage_next":"a&b"}`
		if r.URL.Query().Get("storage_after") == "a&b" {
			reply = `{"data":[],"limits":[],"storage":[{"owner":"zoe"}],"storage_next":null}`
		}
		_, _ = w.Write([]byte(reply)) // a broken reply fails the command
	}))
	defer s.Close()
	var stdout, stderr strings.Builder
	code := Main(Shell{Stdout: &stdout, Stderr: &stderr, Env: environment(t,
		map[string]string{"RECURGENT_URL": s.URL})}, []string{"usage"})
	if out := stdout.String(); code != 0 || !strings.Contains(out, "\na&b ") || strings.Count(out, "zoe") != 1 {
		t.Errorf("%d %s\n%s", code, &stderr, out)
	}
}

// Flags become the query. An invalid one is reported before anything is sent.
func TestUsageFlags(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args, query, errs string
	}{
		{"", "by=method", ""},
		{"--by owner --since 2026-11-01 --until 2026-11-02T10:00:00+02:00",
			"by=owner&since=2026-11-01T00:00:00Z&until=2026-11-02T10:00:00+02:00", ""},
		{"--by model", "", "--by must be"}, {"--by=", "", "--by must be"}, {"--since yesterday", "", "--since must be"},
		{"--until 2026-13-01", "", "--until must be"},
		{"--by day tax", "", "see recurgentd usage --help"},
	} {
		var asked []string
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			q := r.URL.Query()
			got := "by=" + q.Get("by")
			for _, name := range []string{"since", "until"} {
				if q.Has(name) {
					got += "&" + name + "=" + q.Get(name)
				}
			}
			asked = append(asked, got)
			_, _ = w.Write([]byte(`{"data":[],"limits":[]}`)) // a broken reply fails the command
		}))
		var stdout, stderr strings.Builder
		code := Main(Shell{Stdout: &stdout, Stderr: &stderr, Env: environment(t,
			map[string]string{"RECURGENT_URL": s.URL})}, append([]string{"usage"}, strings.Fields(c.args)...))
		s.Close()
		if strings.Join(asked, " ") != c.query || (code != 0) != (c.errs != "") || c.errs != "" && code != ExitUsage ||
			!strings.Contains(stderr.String(), c.errs) {
			t.Errorf("%q: %d, asked %q, %s", c.args, code, asked, &stderr)
		}
	}
}

// Keys, names and the currency come from callers and files, and must not control the terminal.
func TestUsageIsSafeForTerminals(t *testing.T) {
	t.Parallel()
	for _, hostile := range clitest.HostileTexts {
		literal, err := json.Marshal(hostile)
		if err != nil {
			t.Fatal(err)
		}
		v := string(literal)
		reply := strings.NewReplacer(`"tax.net"`, v, `"EUR"`, v, `"ann"`, v, `"owner"`, v, `"month"`,
			v).Replace(usageReply)
		for _, form := range []string{"table", "json", "yaml"} {
			_, out, errs, code := answers(t, map[string]string{"GET /v1/usage": reply}, "usage", "--output", form)
			if code != 0 || strings.ContainsFunc(strings.ReplaceAll(out, "\n", ""), hidden) ||
				strings.ContainsAny(out, "\x1b\r\t\a\b") {
				t.Errorf("%q as %s: %d %s\n%q", hostile, form, code, errs, out)
			}
			if form == "table" && strings.Count(out, "\n") != 10 {
				t.Errorf("%q makes lines:\n%s", hostile, out)
			}
		}
	}
}
