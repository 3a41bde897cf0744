//go:build ops

package deploy

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/app/apptest"
)

// What these tests start must answer within this.
const patience = 2 * time.Minute

func run(t *testing.T, stdin io.Reader, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Stdin = stdin
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no %s: %v", pattern, err)
	}
	return files
}

func TestOpsRules(t *testing.T) {
	run(t, nil, "promtool", "check", "config", "prometheus/prometheus.yml")
	run(t, nil, "promtool", "check", "config", "--syntax-only", "compose/prometheus.yml")
	run(t, nil, "promtool", append([]string{"test", "rules"}, glob(t, "prometheus/tests/*.yml")...)...)
}

// A real Prometheus scrapes a real daemon under load; every query of every panel and every rule returns data, or stands
// in the list of those that cannot, with the reason.
func TestOpsQueriesReturnData(t *testing.T) {
	excused := map[string]string{
		"panel Since the model's last answer, query 1": "the demo asks no model",
		"panel Since the model's last answer, query 2": "the demo asks no model",
		"alert RecurgentdTokenSpendHigh":               "compares with the week before, which a test does not have",
		"panel Time of a transaction, query 1":         "divides by transactions of a database, and these daemons have directories",
	}
	binary, dir := buildDaemon(t), t.TempDir()
	daemon := startDaemon(t, binary, "http://")
	address := apptest.Address(t)
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	secured := startSecured(t, binary)
	config := fmt.Sprintf(`global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%s/prometheus/rules/*.yml]
scrape_configs:
  - job_name: recurgentd
    static_configs: [{targets: [%s]}]
  - job_name: secured
    scheme: https
    tls_config: {insecure_skip_verify: true}
    authorization: {credentials: %s}
    static_configs: [{targets: [%s]}]
`, wd, daemon, scraper, secured)
	if err := os.WriteFile(dir+"/prometheus.yml", []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, dir, "prometheus", "--config.file="+dir+"/prometheus.yml", "--storage.tsdb.path="+dir+"/data",
		"--web.listen-address="+address, "--enable-feature=exemplar-storage")

	ctx, stop := context.WithCancel(t.Context())
	loaded := make(chan struct{})
	go func() { defer close(loaded); load(ctx, daemon, secured) }()
	defer func() { stop(); <-loaded }()

	metrics, err := http.Get("http://" + daemon + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer metrics.Body.Close()
	run(t, metrics.Body, "promtool", "check", "metrics")

	missing := queries(t)
	for name := range excused {
		if missing[name] == "" {
			t.Errorf("%s is excused but there is no such query", name)
		}
		delete(missing, name)
	}
	end := time.Now().Add(patience)
	for len(missing) > 0 && time.Now().Before(end) {
		for name, q := range missing {
			if returnsData(t, address, q) {
				delete(missing, name)
			}
		}
		if len(missing) > 0 {
			<-time.After(time.Second) // Prometheus scrapes once a second
		}
	}
	for name, q := range missing {
		t.Errorf("%s returns nothing: %s", name, q)
	}
}

// queries returns every query by the name of its panel or rule. Alerts are asked whether they hold, which has an answer
// where they do not.
func queries(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	variables := strings.NewReplacer("$__rate_interval", "30s", "$__range", "1m", "$job", ".*", "$instance", ".*")
	for _, p := range dashboard(t) {
		for i, q := range p.Targets {
			all[fmt.Sprintf("panel %s, query %d", p.Title, i+1)] = variables.Replace(q.Expr)
		}
	}
	compares := regexp.MustCompile(` (==|>|<) `)
	for _, r := range rules(t) {
		if r.Record != "" {
			all["rule "+r.Record] = r.Record
		} else {
			holds, unless, _ := strings.Cut(r.Expr, " unless ")
			all["alert "+r.Alert] = strings.TrimSuffix(compares.ReplaceAllString(holds, " $1 bool ")+" unless "+unless,
				" unless ")
		}
	}
	return all
}

func returnsData(t *testing.T, address, query string) bool {
	t.Helper()
	res, err := http.Get("http://" + address + "/api/v1/query?query=" + url.QueryEscape(query))
	if err != nil {
		return false // it is still starting
	}
	defer res.Body.Close()
	var answer struct {
		Status, Error string
		Data          struct{ Result []json.RawMessage }
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		return false // it is still starting
	}
	if answer.Status == "error" {
		t.Fatalf("Prometheus refuses %s: %s", query, answer.Error)
	}
	return len(answer.Data.Result) > 0
}

// A process runs until the test ends, or until end.
type process struct {
	cmd    *exec.Cmd
	cancel context.CancelFunc
	ended  chan struct{}
	err    error // what it ended with; set before ended is closed
}

// end asks the process to end, and returns nil if it did so with the status 0.
func (p *process) end() error {
	p.cancel()
	<-p.ended
	if p.cmd.ProcessState.Success() {
		return nil // when its context is canceled, Wait returns that as an error
	}
	return p.err
}

// start runs a command until the test ends.
func start(t *testing.T, dir, name string, args ...string) *process {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, name, args...)
	var out bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &out
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: cmd, cancel: cancel, ended: make(chan struct{})}
	go func() { defer close(p.ended); p.err = cmd.Wait() }()
	t.Cleanup(func() {
		_ = p.end()
		if t.Failed() {
			t.Logf("%s said:\n%s", name, out.String())
		}
	})
	return p
}

// Tokens of the daemon that startSecured starts. The second may send a request a second.
const scraper, hasty = "token-of-the-scraper-0123", "token-of-the-hasty-client-0123"

// startSecured starts a daemon with TLS and tokens.
func startSecured(t *testing.T, binary string) (address string) {
	t.Helper()
	dir := t.TempDir()
	tokens := filepath.Join(dir, "tokens")
	if err := os.WriteFile(tokens, []byte("scraper "+scraper+" scopes=admin\nhasty "+hasty+" scopes=read rate=1/s\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	cert, key := apptest.NewPair(t, 1, time.Now().AddDate(1, 0, 0)).Write(t, dir)
	return startDaemon(t, binary, "https://", "--auth-tokens-file", tokens, "--tls-cert", cert, "--tls-key", key)
}

// buildDaemon builds the daemon with the compiler that it carries: one of a plain go build would compile the packages
// of programs first, during which no call ends.
func buildDaemon(t *testing.T) (binary string) {
	t.Helper()
	binary = t.TempDir() + "/recurgentd"
	run(t, nil, "../scripts/build", binary)
	return binary
}

// startDaemon starts the daemon on the embedded recording.
func startDaemon(t *testing.T, binary, scheme string, args ...string) (address string) {
	t.Helper()
	dir := t.TempDir()
	address = apptest.Address(t)
	p := start(t, dir, binary,
		append([]string{"serve", "--provider", "replay", "--listen", address, "--data-dir", dir + "/state",
			"--metrics-namespaces", "default"}, args...)...)
	waitReady(t, scheme+address, p)
	return address
}

// trusting takes every certificate.
var trusting = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}

func waitReady(t *testing.T, base string, p *process) {
	t.Helper()
	end := time.Now().Add(patience)
	for time.Now().Before(end) {
		if res, err := trusting.Get(base + "/readyz"); err == nil {
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-p.ended:
			t.Fatalf("the daemon ended before it was ready: %v", p.err)
		case <-time.After(50 * time.Millisecond):
		}
	}
	t.Fatal("the daemon did not become ready")
}

// post sends a body and returns the answer's; nil where there is none.
func post(ctx context.Context, address, path string, body any) map[string]any {
	data, _ := json.Marshal(body)
	r, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+path, bytes.NewReader(data))
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil
	}
	defer res.Body.Close()
	v := map[string]any{}
	_ = json.NewDecoder(res.Body).Decode(&v)
	return v
}

// ask lists the tools of the secured daemon.
func ask(ctx context.Context, secured string) {
	r, _ := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+secured+"/v1/tools", nil)
	r.Header.Set("Authorization", "Bearer "+hasty)
	if res, err := trusting.Do(r); err == nil {
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
	}
}

// load makes cold, warm and failing calls until ctx ends, and asks the secured daemon more often than it may.
func load(ctx context.Context, address, secured string) {
	number := map[string]any{"deliverable": map[string]any{"type": "number"}}
	id, _ := post(ctx, address, "/v1/sessions", map[string]any{"role": "calculator", "contract": number})["id"].(string)
	calls := "/v1/sessions/" + id + "/calls"
	for i := 0; ctx.Err() == nil; i++ {
		post(ctx, address, calls, map[string]any{"method": "add", "args": []int{i, 1}})
		post(ctx, address, calls, map[string]any{"method": "recap",
			"contract": map[string]any{"deliverable": map[string]any{}}})
		post(ctx, address, calls, map[string]any{"method": fmt.Sprintf("nobody_recorded_%d", i)})
		post(ctx, address, calls, map[string]any{"nonsense": i})
		ask(ctx, secured)
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}
