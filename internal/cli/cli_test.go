package cli

import (
	"bytes"
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/recurgentd/recurgentd/internal/client"
)

// A command with too few or too many arguments prints its usage.
func TestNumbersOfArguments(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{"why": "recurgentd: write recurgentd why CALL_ID, such as: recurgentd why call_", "tools show a b c": "recurgentd: write recurgentd tools show ", "store copy x": "recurgentd: write recurgentd store copy FROM TO"} {
		var stderr bytes.Buffer
		sh := Shell{Stdin: strings.NewReader(""), Stdout: &stderr, Stderr: &stderr,
			Env: func(string) (string, bool) { return "", false }}
		if code := Main(sh, strings.Fields(line)); code != ExitUsage || !strings.HasPrefix(stderr.String(), want) ||
			!strings.Contains(stderr.String(), "--help") {
			t.Errorf("%s: %d, %q", line, code, stderr.String())
		}
	}
}

// An unknown command is a command line error in every group, as at the top level, so that a script does not take help
// for success.
func TestUnknownCommands(t *testing.T) {
	t.Parallel()
	var groups [][]string
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.HasSubCommands() {
			groups = append(groups, strings.Fields(c.CommandPath())[1:])
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(Command(Shell{}))
	if len(groups) < 8 {
		t.Fatalf("the groups are %v", groups)
	}
	for _, group := range groups {
		var stdout, stderr bytes.Buffer
		sh := Shell{Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr,
			Env: func(string) (string, bool) { return "", false }}
		if code := Main(sh, append(group, "nonsense",
			"more")); code != ExitUsage || stdout.Len() > 0 || !strings.Contains(stderr.String(),
			`unknown command "nonsense"`) || strings.Count(stderr.String(), "\n") != 1 {
			t.Errorf("%v nonsense: %d, %q, %q", group, code, stdout.String(), stderr.String())
		}
		stdout.Reset()
		if code := Main(sh, append(group, "--help")); code != 0 || stdout.Len() == 0 {
			t.Errorf("%v --help: %d, %q", group, code, stdout.String())
		}
	}
}

// A mistake on the command line gets one line that says what was meant.
func TestMistakes(t *testing.T) {
	t.Parallel()
	page := httptest.NewServer(http.NotFoundHandler())
	defer page.Close()
	locked := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":0,"error":{"code":-32000,"message":"no","data":{"status":401,`+
			`"title":"Unauthorized","detail":"no token","hint":"Send the header Authorization: Bearer TOKEN"}}}`)
	}))
	defer locked.Close()
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	for _, c := range []struct {
		line string
		code int
		want string
		not  string
	}{
		{"cal", ExitUsage, `unknown command "cal" for "recurgentd"; did you mean call?; see recurgentd --help`, "Did"},
		{"tools lineag", ExitUsage, `unknown command "lineag" for "recurgentd tools"; did you mean lineage?`, ""},
		{"help nosuch", ExitUsage, `unknown command "nosuch" for "recurgentd"`, ""},
		{"help tools lineag", ExitUsage, `did you mean lineage?`, ""},
		{"call a b --sesion x", ExitUsage, `unknown flag: --sesion; did you mean --session?`, ""},
		{"serve extra", ExitUsage, `recurgentd serve takes no arguments, got "extra"; see recurgentd serve --help`,
			"unknown"},
		{"watch extra", ExitUsage, `recurgentd watch takes no arguments, got "extra"`, "unknown"},
		{"tools list --url 127.0.0.1:8430", ExitUsage, "write http://127.0.0.1:8430", ""},
		{"tools list --url ftp://x:1", ExitUsage, "is not an http or https URL", "write"},
		{"tools list --url " + page.URL, ExitUnreachable, "is there a recurgentd at " + page.URL + "?",
			"tools list lists"},
		{"mcp --url " + page.URL, ExitUnreachable, "is there a recurgentd at " + page.URL + "?", "MCP"},
		{"mcp --url " + page.URL + "/v1", ExitUnreachable,
			"the daemon's address without /v1: " + page.URL, "{"},
		{"mcp --url http://127.0.0.1:1", ExitUnreachable, "is recurgentd serve running?", "/mcp"},
		{"mcp --url " + locked.URL, ExitUnreachable, "in RECURGENT_TOKEN or with --token-file", "header"},
		{"tools list --url " + page.URL + "/ui/", ExitUnreachable, "without a path such as /ui", "tools list lists"},
		{"tools list --url " + strings.Replace(page.URL, "http:", "https:", 1), ExitUnreachable,
			"does not speak https; --url or RECURGENT_URL is " + page.URL, "is recurgentd serve running"},
		{"tools list --url " + strings.Replace(secure.URL, "https:", "http:", 1), ExitUnreachable,
			"begins with https://", "tools list lists"},
	} {
		var stdout, stderr bytes.Buffer
		code := Main(Shell{Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr, Env: noEnvironment},
			strings.Fields(c.line))
		if said := stderr.String(); code != c.code || !strings.Contains(said, c.want) || stdout.Len() > 0 ||
			strings.Count(said, "\n") != 1 || c.not != "" && strings.Contains(said, c.not) {
			t.Errorf("%s: %d, %s%s", c.line, code, stdout.String(), said)
		}
	}
}

// The version is printed as by the command.
func TestVersionFlag(t *testing.T) {
	t.Parallel()
	printed := func(word string) string {
		var stdout bytes.Buffer
		if code := Main(Shell{Stdout: &stdout, Stderr: io.Discard, Env: noEnvironment}, []string{word}); code != 0 {
			t.Errorf("%s: %d", word, code)
		}
		return stdout.String()
	}
	if want := printed("version"); printed("--version") != want || printed("-v") != want {
		t.Errorf("%q, want %q", printed("-v"), want)
	}
}

// A refusal whose detail repeats its title says it once.
func TestRefusalOnce(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"code":"draining","title":"The daemon is shutting down",`+
			`"detail":"The daemon is shutting down"}`)
	}))
	defer s.Close()
	var stderr bytes.Buffer
	Main(Shell{Stdout: io.Discard, Stderr: &stderr, Env: noEnvironment}, []string{"tools", "list", "--url", s.URL})
	if strings.Count(stderr.String(), "shutting down") != 1 {
		t.Errorf("got %s", stderr.String())
	}
}

// A change of the policy is printed alone; a role that nobody knows is not an empty list; a tool is shown as text.
func TestWhatIsPrinted(t *testing.T) {
	t.Parallel()
	replies := map[string]string{
		"GET /v1/policy":   `{"repair_enabled":true,"spend":{"day_tokens":1},"x":1}`,
		"PATCH /v1/policy": `{"repair_enabled":false,"spend":{"day_tokens":1,"owner":2}}`,
		"GET /v1/tools/calculator": `{"role":"calculator","purpose":"Does arithmetic.",` +
			`"deliverable":{"type":"number"},` +
			`"methods":{"add":{"purpose":"adds"}},"usage_count":3,"score":0.5}`,
		"GET /v1/tools/calculator/methods": `{"data":[]}`, "GET /v1/tools/nosuch/methods": `{"data":[]}`,
		"GET /v1/tools": `{"data":[{"role":"r","usage_count":5,"health":{"failure_count":1}}]}`}
	for _, c := range []struct {
		line, want string
		code       int
	}{
		{"policy set repair_enabled=false", "repair_enabled=false, was true\nspend.owner=2, was (not set)\n" +
			"x=(not set), was 1\n", 0},
		{"policy set repair_enabled=false --json", replies["PATCH /v1/policy"] + "\n", 0},
		{"tools show calculator", "calculator: Does arithmetic.\n  deliverable: {\"type\":\"number\"}\n" +
			"calculator.add: adds\n" +
			"used 3 times, last never; score 0.50\n\nnothing\n", 0},
		{"tools show calculator --json", replies["GET /v1/tools/calculator"] + "\n", 0},
		{"tools list nosuch", "", ExitUnreachable},
		{"tools list", "ROLE  USED  FAILED  RECENT  TOKENS  SCORE  LAST   PURPOSE\n" +
			"r     5     1       0%      -       0.00   never  -\n", 0},
	} {
		if _, out, errs, code := answers(t, replies, strings.Fields(c.line)...); out != c.want || code != c.code {
			t.Errorf("%s: %d, %s\n%s", c.line, code, out, errs)
		}
	}
}

// wrong --wait says why there was nothing to wait for.
func TestNoCorrection(t *testing.T) {
	t.Parallel()
	replies := map[string]string{"POST /v1/calls/call_1/verdict": `{"role":"tax","method":"net",` +
		`"verdict":"wrong","correction":{"state":"none"}}`}
	_, out, errs, code := answers(t, replies, "wrong", "call_1", "--wait")
	if code != 0 || !strings.Contains(out, "\nno correction was begun: ") {
		t.Errorf("%d, %s%s", code, out, errs)
	}
}

// An interrupted call has its id printed, although its reply never came.
func TestInterruptedCall(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery == "limit=1&method=add&role=calculator&session_id=sess_1" {
			_, _ = io.WriteString(w, `{"data":[{"call_id":"call_1"}]}`)
		}
	}))
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stderr bytes.Buffer
	errand := &callErrand{sh: Shell{Stderr: &stderr, Env: noEnvironment}, session: "sess_1"}
	errand.printCanceled(ctx, client.New(s.URL, "", nil), client.CallRequest{Role: "calculator", Method: "add"})
	if stderr.String() != "call call_1\n" {
		t.Errorf("got %q", stderr.String())
	}
}

// Help is wrapped evenly: no line could hold the first word of the next one.
func TestHelpIsFilled(t *testing.T) {
	t.Parallel()
	if got := fill("one two\nthree\n\n  kept\n  so\n\n" + strings.Repeat("word ", 20)); got !=
		"one two three\n\n  kept\n  so\n\n"+strings.TrimSpace(strings.Repeat("word ", 16))+"\nword word word word" {
		t.Errorf("got %q", got)
	}
}
