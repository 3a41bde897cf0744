package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/recurgentd/recurgentd/internal/api/apitest"
	"github.com/recurgentd/recurgentd/internal/cli"
)

// files reads all files below a directory by their slashed path.
func files(t *testing.T, root string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		all[filepath.ToSlash(path)] = data
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// P-05, P-08, P-16, P-17, P-20..P-31, P-34, P-35, P-103: what was answered once is there after a restart, and the model is not asked.
func TestRestart(t *testing.T) {
	m := newModel(t, script{"calculator.add": {progAdd}, "calculator.explode": {progPanic}, "delegator.compute": {progDelegates}, "calculator.increment": {progIncrement}, "x.y": {progEcho}})
	d := newDaemon(t, m)
	s := d.session("calculator")
	d.do(http.StatusCreated, http.MethodPut, "/v1/tools/calculator", map[string]any{"purpose": "arithmetic"})
	d.call(s, "add", 1, 2)
	d.call(s, "explode")
	d.call(s, "increment")
	nested := d.session("delegator")
	d.wantValue(d.call(nested, "compute"), 5, "generated")
	before, tools, asked := d.history(s), d.get("/v1/tools"), len(m.requests())
	d.restart()
	if after := d.history(s); !equal(before, anySlice(after)) {
		t.Errorf("history after a restart:\n%v\nbefore:\n%v", after, before)
	}
	if after := d.get("/v1/tools"); !equal(tools, after) {
		t.Errorf("registry after a restart:\n%v\nbefore:\n%v", after, tools)
	}
	d.wantValue(d.call(s, "add", 20, 22), 42, "persisted")
	d.wantValue(d.call(s, "increment"), 2, "persisted")
	d.wantValue(d.call(nested, "compute"), 5, "persisted")
	if n := len(m.requests()); n != asked {
		t.Errorf("the model was asked %d more times after the restart", n-asked)
	}
	d.call(d.session("x"), "y")
	if last := m.last(); !strings.Contains(last.User+last.System, "calculator") {
		t.Error("after a restart the prompt does not tell of the known tool")
	}
	if code := d.kill(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d", code)
	}
	checkArtifactFile(t, filepath.Join(d.state(), "tools", "calculator", "add.json"))
	for path, data := range files(t, d.dir) {
		if strings.Contains(string(data), secretKey) {
			t.Errorf("%s holds the key", path)
		}
	}
	if strings.Contains(d.out.String(), secretKey) {
		t.Error("the log holds the key")
	}
	for path := range files(t, d.dir) { // P-05, P-13
		if !strings.HasPrefix(path, filepath.ToSlash(d.state())) {
			t.Errorf("a file outside the data directory: %s", path)
		}
	}
}

func anySlice(list []map[string]any) any {
	out := make([]any, len(list))
	for i, v := range list {
		out[i] = v
	}
	return out
}

// checkArtifactFile looks at an artifact as seed 001's data model has it.
func checkArtifactFile(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var a map[string]any
	if err := json.Unmarshal(data, &a); err != nil {
		t.Fatal(err)
	}
	for _, k := range strings.Fields("schema_version role method_name contract_fingerprint prompt_version runtime_version model code_checksum code dependencies success_count failure_count intrinsic_failure_count adaptive_failure_count extrinsic_failure_count recent_failure_rate repair_count_since_regen created_at last_used_at history") {
		if _, ok := a[k]; !ok {
			t.Errorf("%s has no %s", path, k)
		}
	}
	code, _ := a["code"].(string)
	sum := sha256.Sum256([]byte(code))
	if a["code_checksum"] != "sha256:"+hex.EncodeToString(sum[:]) || code == "" {
		t.Errorf("checksum %v is not that of the code", a["code_checksum"])
	}
	if a["success_count"] != 4.0 { // two calls of the client, two nested ones
		t.Errorf("success_count %v, want 4", a["success_count"])
	}
	if h, _ := a["history"].([]any); len(h) != 1 || h[0].(map[string]any)["trigger"] != "initial_forge" || h[0].(map[string]any)["parent_id"] != nil {
		t.Errorf("lineage: %v", a["history"])
	}
}

// X-10, H-18: SIGTERM lets calls under way end, refuses new ones, and the daemon stops cleanly; what was interrupted is
// recorded as canceled and counts for nothing.
func TestSigtermDrains(t *testing.T) {
	m := newModel(t, script{"slow.answer": {held(progAdd)}, "slow.never": {held(progAdd)}})
	d := newDaemon(t, m)
	s := d.session("slow")
	type result struct {
		r   response
		err error
	}
	done := make(chan result, 1)
	go func() {
		r, err := d.try(context.Background(), http.MethodPost, "/v1/sessions/"+s+"/calls", mustJSON(map[string]any{"method": "answer", "args": []any{1, 2}}), nil)
		done <- result{r, err}
	}()
	until(t, "the model to be asked", func() bool { return m.count("slow", "answer") == 1 })
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	until(t, "readyz to go down", func() bool {
		r, err := d.try(context.Background(), http.MethodGet, "/readyz", nil, nil)
		return err == nil && r.Status == http.StatusServiceUnavailable
	})
	m.release()
	got := <-done
	if got.err != nil || got.r.Status != http.StatusOK {
		t.Errorf("the call under way: %v, %d %s", got.err, got.r.Status, got.r.Body)
	} else {
		var r reply
		if err := json.Unmarshal(got.r.Body, &r); err != nil {
			t.Fatal(err)
		}
		d.wantValue(r, 3, "generated")
	}
	if code := d.wait(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	d.start()
	if n := len(d.history(s)); n != 1 {
		t.Errorf("%d records, want 1", n)
	}
	d.wantValue(d.call(s, "answer", 2, 2), 4, "persisted")
}

// A call that does not end by itself is ended with the daemon, as canceled, and recorded.
func TestSigtermEndsWhatDoesNotEnd(t *testing.T) {
	m := newModel(t, script{"slow.never": {held(progAdd)}})
	d := newDaemon(t, m)
	s := d.session("slow")
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = d.try(context.Background(), http.MethodPost, "/v1/sessions/"+s+"/calls", []byte(`{"method":"never","args":[1,2]}`), nil) // ends as it may
	}()
	until(t, "the model to be asked", func() bool { return m.count("slow", "never") == 1 })
	if code := d.kill(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	<-done
	m.release()
	d.start()
	records := d.history(s)
	if len(records) != 1 || records[0]["error_type"] != "canceled" {
		t.Errorf("records: %v", records)
	}
}

// A second SIGTERM ends the daemon at once.
func TestSecondSigtermIsImmediate(t *testing.T) {
	m := newModel(t, script{"slow.never": {held(progAdd)}})
	d := newDaemon(t, m)
	s := d.session("slow")
	go func() {
		_, _ = d.try(context.Background(), http.MethodPost, "/v1/sessions/"+s+"/calls", []byte(`{"method":"never"}`), nil) // is cut off
	}()
	until(t, "the model to be asked", func() bool { return m.count("slow", "never") == 1 })
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	until(t, "readyz to go down", func() bool {
		r, err := d.try(context.Background(), http.MethodGet, "/readyz", nil, nil)
		return err != nil || r.Status == http.StatusServiceUnavailable
	})
	if code := d.kill(syscall.SIGTERM); code != cli.ExitFailed {
		t.Errorf("exit code %d, want %d", code, cli.ExitFailed)
	}
	m.release()
}

// X-04, and the issue: a dead provider ends in a provider outcome within its budget, and warm calls go on meanwhile.
func TestDeadProvider(t *testing.T) {
	m := newModel(t, script{"calculator.add": {progAdd}, "calculator.hangs": {held(progAdd)}, "calculator.broken": {status(http.StatusInternalServerError)}, "calculator.denied": {status(http.StatusUnauthorized)}})
	d := newDaemon(t, m, "--provider-timeout", "300ms")
	s, other := d.session("calculator"), d.session("calculator")
	d.wantValue(d.call(s, "add", 1, 2), 3, "generated")
	for _, method := range []string{"hangs", "broken", "denied"} {
		done := make(chan reply, 1)
		go func() { done <- d.invoke(s, map[string]any{"method": method, "args": []any{1, 2}}) }()
		until(t, "the model to be asked for "+method, func() bool { return m.count("calculator", method) > 0 })
		d.wantValue(d.call(other, "add", 40, 2), 42, "persisted")
		got := <-done
		d.wantError(got, "provider")
		if !got.Outcome.Retriable {
			t.Errorf("%s: a provider outcome that is not retriable", method)
		}
	}
	m.release()
	m.close()
	d.wantError(d.call(s, "unreachable", 1), "provider")
	d.wantValue(d.call(s, "add", 2, 2), 4, "persisted")
	if n := len(d.history(s)); n != 6 {
		t.Errorf("%d records for 6 calls", n)
	}
	if a := d.get("/v1/tools/calculator/methods/add"); a["failure_count"] != 0.0 {
		t.Errorf("the outage was held against the artifact: %v", a["failure_count"])
	}
}

// a client that hangs up is canceled, recorded once, and held against nobody.
func TestClientHangsUp(t *testing.T) {
	m := newModel(t, script{"slow.answer": {held(progAdd)}})
	d := newDaemon(t, m)
	s := d.session("slow")
	ctx, hangUp := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = d.try(ctx, http.MethodPost, "/v1/sessions/"+s+"/calls", []byte(`{"method":"answer","args":[1,2]}`), nil) // is cut off
	}()
	until(t, "the model to be asked", func() bool { return m.count("slow", "answer") == 1 })
	hangUp()
	<-done
	until(t, "the record", func() bool { return len(d.history(s)) == 1 })
	if r := d.history(s)[0]; r["error_type"] != "canceled" {
		t.Errorf("record: %v", r)
	}
	m.release()
	d.wantValue(d.call(s, "answer", 1, 2), 3, "")
}

// The daemon does not start when it cannot work, says why in one clear line, and ends with a code that is not 0.
func TestCannotStart(t *testing.T) {
	d := newDaemon(t, nil, "--provider", "replay")
	address := strings.TrimPrefix(d.url, "http://")
	fresh := func(t *testing.T) []string { return cleanEnvironment(t.TempDir()) }
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		args []string
		code int
		want []string
	}{
		{"port taken", []string{"--listen", address}, cli.ExitFailed, []string{address, "in use"}},
		{"data directory in use", []string{"--listen", "127.0.0.1:0", "--data-dir", d.state()}, cli.ExitFailed, []string{d.state(), "in use"}},
		{"data directory is a file", []string{"--listen", "127.0.0.1:0", "--data-dir", file}, cli.ExitFailed, []string{file}},
		{"bad setting", []string{"--runners", "none"}, cli.ExitUsage, []string{"runners", "--runners"}},
		{"open to the network", []string{"--listen", "0.0.0.0:0"}, cli.ExitUsage, []string{"listen", "--auth-tokens-file"}},
		{"no such flag", []string{"--lisen", "x"}, cli.ExitUsage, []string{"--lisen", "--help"}},
		{"bad recording", []string{"--listen", "127.0.0.1:0", "--recording", writeFile(t, "bad.jsonl", "{\n")}, cli.ExitFailed, []string{"bad.jsonl"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, errs, code := runBinary(t, fresh(t), append([]string{"serve"}, c.args...)...)
			if code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			lines := strings.Split(strings.TrimSpace(errs), "\n")
			last := lines[len(lines)-1]
			if !strings.HasPrefix(last, "recurgentd: ") || out != "" || len(lines) != 1 {
				t.Errorf("want one line on stderr and nothing on stdout, got:\n%s\n%s", errs, out)
			}
			for _, part := range c.want {
				if !strings.Contains(last, part) {
					t.Errorf("%q does not tell %q", last, part)
				}
			}
		})
	}
}

// With nothing configured the daemon answers from the embedded recording and says so first.
func TestFirstScreen(t *testing.T) {
	d := newDaemon(t, nil)
	until(t, "the first screen", func() bool { return strings.Contains(d.out.String(), "OPENAI_API_KEY") })
	screen := d.out.String()
	for _, part := range []string{d.url, "demo recording", " call --url " + d.url + " calculator add 2 3", "OPENAI_API_KEY", "OPENAI_BASE_URL"} {
		if !strings.Contains(screen, part) {
			t.Errorf("the first screen does not say %q:\n%s", part, screen)
		}
	}
	s := d.session("calculator")
	d.wantValue(d.call(s, "add", 2, 3), 5, "generated")
	d.wantValue(d.call(s, "solve", "2x + 5 = 17"), map[string]any{"x": 6}, "generated")
	d.wantError(d.call(s, "unheard_of"), "provider")
}

// A terminal that closes stops the daemon as cleanly as SIGTERM does.
func TestSighupStopsCleanly(t *testing.T) {
	if signal.Ignored(syscall.SIGHUP) {
		return // under nohup the daemon is to live on
	}
	d := newDaemon(t, nil)
	if code := d.kill(syscall.SIGHUP); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// whoever reads the log may end before the daemon does; calls go on, and it stops cleanly.
func TestLogReaderGone(t *testing.T) {
	dir := t.TempDir()
	d := &proc{t: t, dir: dir, out: &syncBuffer{}, http: apitest.Client(t), env: cleanEnvironment(dir)}
	d.http.Timeout = patience
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	d.args, d.log = []string{"--log-level", "debug"}, writer
	d.start()
	t.Cleanup(func() { d.kill(syscall.SIGKILL) })
	if err := errors.Join(reader.Close(), writer.Close()); err != nil {
		t.Fatal(err)
	}
	s := d.session("calculator")
	for range 3 {
		d.wantValue(d.call(s, "add", 1, 2), 3, "")
	}
	if code := d.kill(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
