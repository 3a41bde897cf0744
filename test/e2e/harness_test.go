package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/api/apitest"
)

// patience bounds every wait of the tests. It is long because machines are slow, and nothing is measured with it.
const patience = 60 * time.Second

// secretKey must never be seen outside the requests to the model.
const secretKey = "sk-canary-4d1b7e55c0ffee"

// A proc is a real daemon, started from the test binary and spoken to over HTTP only. Every exchange is compared with
// the OpenAPI document (P-11, X-14).
type proc struct {
	t      *testing.T
	dir    string // data directory and log are below it
	args   []string
	env    []string
	cmd    *exec.Cmd
	exited chan struct{} // closed when the process has ended
	ready  string        // the ready line
	url    string
	out    *syncBuffer // stdout and stderr of all its lives
	log    *os.File    // takes stderr instead, where it is set
	http   *http.Client
}

// syncBuffer collects what a process says, from the goroutines that read it.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// newDaemon starts a daemon on a fresh directory, with the model behind it where there is one, and waits until it is ready.
func newDaemon(t *testing.T, m *model, args ...string) *proc {
	t.Helper()
	d := &proc{t: t, dir: t.TempDir(), args: args, out: &syncBuffer{}, http: apitest.Client(t)}
	d.http.Timeout = patience
	d.env = cleanEnvironment(d.dir)
	if m != nil {
		d.env = append(d.env, "OPENAI_BASE_URL="+m.url(), "OPENAI_API_KEY="+secretKey, "RECURGENT_MODEL=scripted")
	}
	d.start()
	t.Cleanup(func() {
		d.kill(syscall.SIGKILL)
		checkStoredFiles(t, d.state()) // P-06
		if t.Failed() {
			t.Logf("the daemon said:\n%s", d.out)
		}
	})
	return d
}

// cleanEnvironment is one in which nothing of the tester's counts.
func cleanEnvironment(dir string) []string {
	return []string{actAsBinary + "=1", "PATH=" + os.Getenv("PATH"), "HOME=" + dir, "XDG_STATE_HOME=" + filepath.Join(dir, "xdg"), "TMPDIR=" + os.TempDir(), "NO_PROXY=127.0.0.1,localhost"}
}

func (d *proc) state() string { return filepath.Join(d.dir, "xdg", "recurgent") }

var readyLine = regexp.MustCompile(`^recurgentd is ready on (http://\S+)`)

func (d *proc) start() {
	d.t.Helper()
	d.cmd = exec.Command(os.Args[0], append([]string{"serve", "--listen", "127.0.0.1:0"}, d.args...)...)
	d.cmd.Env, d.cmd.Dir, d.cmd.Stderr = d.env, d.dir, d.out
	if d.log != nil {
		d.cmd.Stderr = d.log
	}
	stdout, err := d.cmd.StdoutPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	lines, exited := make(chan string, 1), make(chan struct{})
	d.exited = exited
	go func() {
		scanner := bufio.NewScanner(stdout)
		for scanner.Scan() {
			fmt.Fprintln(d.out, scanner.Text())
			if readyLine.MatchString(scanner.Text()) {
				lines <- scanner.Text()
			}
		}
		_ = d.cmd.Wait() // the state is read by those who wait for exited
		close(exited)
	}()
	select {
	case d.ready = <-lines:
		d.url = readyLine.FindStringSubmatch(d.ready)[1]
	case <-exited:
		d.t.Fatalf("the daemon ended before it was ready: %v\n%s", d.cmd.ProcessState, d.out)
	case <-time.After(patience):
		d.t.Fatalf("the daemon is not ready after %s\n%s", patience, d.out)
	}
}

// kill sends the signal and waits for the end; it returns the exit code, -1 for a death by signal.
func (d *proc) kill(s syscall.Signal) int {
	d.t.Helper()
	_ = d.cmd.Process.Signal(s) // one that has ended cannot take it
	return d.wait()
}

func (d *proc) wait() int {
	d.t.Helper()
	select {
	case <-d.exited:
	case <-time.After(patience):
		_ = d.cmd.Process.Kill()
		<-d.exited
		d.t.Errorf("the daemon did not end within %s", patience)
	}
	d.http.CloseIdleConnections()
	return d.cmd.ProcessState.ExitCode()
}

func (d *proc) restart() {
	d.t.Helper()
	if code := d.kill(syscall.SIGTERM); code != 0 {
		d.t.Errorf("SIGTERM: exit code %d, want 0\n%s", code, d.out)
	}
	d.start()
}

// A response is what came back from the daemon.
type response struct {
	Status int
	Header http.Header
	Body   []byte
}

// object reads the body as a JSON object.
func (r response) object(t *testing.T) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(r.Body, &v); err != nil {
		t.Fatalf("status %d, not a JSON object: %v: %.300s", r.Status, err, r.Body)
	}
	return v
}

// send makes a request with the body as it is.
func (d *proc) send(method, path string, body []byte, header map[string]string) response {
	d.t.Helper()
	r, err := d.try(context.Background(), method, path, body, header)
	if err != nil {
		d.t.Fatalf("%s %s: %v\n%s", method, path, err, d.out)
	}
	return r
}

// try is send for those that may fail or be canceled.
func (d *proc) try(ctx context.Context, method, path string, body []byte, header map[string]string) (response, error) {
	req, err := http.NewRequestWithContext(ctx, method, d.url+path, bytes.NewReader(body))
	if err != nil {
		return response{}, err
	}
	if body == nil {
		req.Body = nil
	} else {
		req.Header.Set("Content-Type", "application/json")
	}
	for k, v := range header {
		req.Header.Set(k, v)
	}
	resp, err := d.http.Do(req)
	if err != nil {
		return response{}, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return response{}, err
	}
	r := response{resp.StatusCode, resp.Header, data}
	return r, nil
}

// do sends v as JSON and wants the status.
func (d *proc) do(want int, method, path string, v any) response {
	d.t.Helper()
	var body []byte
	if v != nil {
		body = encode(d.t, v)
	}
	r := d.send(method, path, body, nil)
	if r.Status != want {
		d.t.Fatalf("%s %s: status %d, want %d: %.500s", method, path, r.Status, want, r.Body)
	}
	return r
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// get wants 200 and reads the object.
func (d *proc) get(path string) map[string]any {
	d.t.Helper()
	return d.do(http.StatusOK, http.MethodGet, path, nil).object(d.t)
}

// list reads all pages of a list.
func (d *proc) list(path string) []map[string]any {
	d.t.Helper()
	all, sep := []map[string]any{}, "?"
	if strings.Contains(path, "?") {
		sep = "&"
	}
	for after := ""; ; {
		page := path + sep + "limit=500"
		if after != "" {
			page += "&after=" + url.QueryEscape(after)
		}
		o := d.get(page)
		data, ok := o["data"].([]any)
		if !ok {
			d.t.Fatalf("GET %s: data is %T, want an array", page, o["data"])
		}
		for _, item := range data {
			all = append(all, item.(map[string]any))
		}
		if after, _ = o["next_cursor"].(string); after == "" {
			return all
		}
	}
}

func (d *proc) history(session string) []map[string]any {
	d.t.Helper()
	return d.list("/v1/sessions/" + session + "/history?order=asc")
}

// session makes a session and returns its id; more adds members to the request.
func (d *proc) session(role string, more ...map[string]any) string {
	d.t.Helper()
	body := map[string]any{"role": role}
	for _, m := range more {
		for k, v := range m {
			body[k] = v
		}
	}
	id, _ := d.do(http.StatusCreated, http.MethodPost, "/v1/sessions", body).object(d.t)["id"].(string)
	if id == "" {
		d.t.Fatal("a new session has no id")
	}
	return id
}

// A reply is the answer to a call, as a client reads it.
type reply struct {
	CallID    string `json:"call_id"`
	SessionID string `json:"session_id"`
	TraceID   string `json:"trace_id"`
	Role      string `json:"role"`
	Method    string `json:"method"`
	Outcome   struct {
		Status       string         `json:"status"`
		OK           bool           `json:"ok"`
		Value        any            `json:"value"`
		ErrorType    string         `json:"error_type"`
		ErrorMessage string         `json:"error_message"`
		Retriable    bool           `json:"retriable"`
		Authored     bool           `json:"authored"`
		ToolRole     string         `json:"tool_role"`
		MethodName   string         `json:"method_name"`
		Metadata     map[string]any `json:"metadata"`
	} `json:"outcome"`
	Program struct {
		Source      string `json:"source"`
		ArtifactHit bool   `json:"artifact_hit"`
		Generation  string `json:"generation"`
		Checksum    string `json:"checksum"`
		Trigger     string `json:"trigger"`
		Selection   struct {
			Decision string `json:"decision"`
			Reason   string `json:"reason"`
		} `json:"selection"`
	} `json:"program"`
	Attempts   int     `json:"attempts"`
	DurationMs float64 `json:"duration_ms"`
	Usage      struct {
		ModelRequests    int `json:"model_requests"`
		PromptTokens     int `json:"prompt_tokens"`
		CompletionTokens int `json:"completion_tokens"`
	} `json:"usage"`
}

// invoke makes a call with the whole body given.
func (d *proc) invoke(session string, body map[string]any) reply {
	d.t.Helper()
	r := d.do(http.StatusOK, http.MethodPost, "/v1/sessions/"+session+"/calls", body)
	var got reply
	if err := json.Unmarshal(r.Body, &got); err != nil {
		d.t.Fatalf("call reply: %v: %s", err, r.Body)
	}
	return got
}

// call makes a call with positional arguments.
func (d *proc) call(session, method string, args ...any) reply {
	d.t.Helper()
	if args == nil {
		args = []any{}
	}
	return d.invoke(session, map[string]any{"method": method, "args": args})
}

// callWith makes a call with keyword arguments.
func (d *proc) callWith(session, method string, kwargs map[string]any) reply {
	d.t.Helper()
	return d.invoke(session, map[string]any{"method": method, "kwargs": kwargs})
}

// wantValue checks an ok outcome and where its program came from.
func (d *proc) wantValue(got reply, value any, source string) {
	d.t.Helper()
	if !got.Outcome.OK || !equal(value, got.Outcome.Value) {
		d.t.Errorf("%s.%s: got %+v, want value %v", got.Role, got.Method, got.Outcome, value)
	}
	if source != "" && got.Program.Source != source {
		d.t.Errorf("%s.%s: source %q (%+v), want %q", got.Role, got.Method, got.Program.Source, got.Program.Selection, source)
	}
}

func (d *proc) wantError(got reply, errorType string) {
	d.t.Helper()
	if got.Outcome.OK || got.Outcome.Status != "error" || got.Outcome.ErrorType != errorType {
		d.t.Errorf("%s.%s: got %+v, want an error of type %s", got.Role, got.Method, got.Outcome, errorType)
	}
}

// until asks again and again until cond holds; it fails when patience ends.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("in vain waited for: %s", what)
		}
	}
}

// equal compares JSON values; numbers may differ in the last digits.
func equal(want, got any) bool {
	var w any
	data, err := json.Marshal(want)
	if err != nil || json.Unmarshal(data, &w) != nil {
		return false
	}
	return equalJSON(w, got)
}

func equalJSON(want, got any) bool {
	switch w := want.(type) {
	case float64:
		g, ok := got.(float64)
		return ok && (w == g || w-g < 1e-6 && g-w < 1e-6)
	case []any:
		g, ok := got.([]any)
		if !ok || len(w) != len(g) {
			return false
		}
		for i := range w {
			if !equalJSON(w[i], g[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok || len(w) != len(g) {
			return false
		}
		for k := range w {
			if v, ok := g[k]; !ok || !equalJSON(w[k], v) {
				return false
			}
		}
		return true
	}
	return want == got
}

// program is a program in the form of design.md section 6, with the statements as the body of Run.
func program(body string, imports ...string) string {
	lines := ""
	for _, i := range imports {
		lines += fmt.Sprintf("\t%q\n", i)
	}
	return "package tool\n\nimport (\n" + lines + "\t\"recurgent\"\n)\n\nfunc Run(call *recurgent.Call) (any, error) {\n" + body + "\n}\n"
}

// client runs a client command of the real binary against the daemon.
func (d *proc) client(args ...string) (stdout, stderr string, code int) {
	d.t.Helper()
	return runBinary(d.t, append(cleanEnvironment(d.dir), "RECURGENT_URL="+d.url), args...)
}

func runBinary(t *testing.T, env []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	var out, errs bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = env, &out, &errs, 5*time.Second
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatalf("%q: %v", args, err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// absolute makes a path of the test's own files good for a process in another directory.
func absolute(t *testing.T, path string) string {
	t.Helper()
	abs, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return abs
}

// update is for golden files and what is drawn of the binary's output.
var update = flag.Bool("update", false, "write golden files")

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// methodPath is the path of an artifact.
func methodPath(role, method string) string {
	return "/v1/tools/" + url.PathEscape(role) + "/methods/" + url.PathEscape(method)
}
