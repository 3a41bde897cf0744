package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/provider/openaitest"
)

// A daemon is a process of the binary and the scripted model behind it.
type daemon struct {
	binary, dir string
	args        []string
	url         string
	cmd         *exec.Cmd
	model       *openaitest.Server
	http        *http.Client
	token       func(owner string) string // token of an owner; nil means that owners are namespaces
}

// readyLine matches the line that the daemon prints once it serves. The group is its URL.
var readyLine = regexp.MustCompile(`^recurgentd is ready on (http://\S+)`)

// start starts the binary on a fresh data directory, with a token for each owner. If owners is nil it serves without
// tokens. The caller must call stop.
func (b *bench) start(binary string, owners []string, args ...string) (*daemon, error) {
	dir, err := os.MkdirTemp(b.dir, "daemon")
	if err != nil {
		return nil, err
	}
	d := &daemon{binary: binary, dir: dir, model: openaitest.New(),
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 128}}}
	d.model.Default(func(r openaitest.Request) openaitest.Reply {
		reply := openaitest.Code(programOf(r.Role, r.Method))
		if strings.HasPrefix(r.Method, "new") { // for the flood forging
			slow := make(chan struct{})
			time.AfterFunc(time.Second, func() { close(slow) })
			reply.Wait = slow
		}
		return reply
	})
	d.args = append([]string{"serve", "--listen", "127.0.0.1:0", "--data-dir", filepath.Join(dir, "data"),
		"--log-level", "warn"}, args...)
	d.token = func(owner string) string { return owner + "-0123456789abcdef" }
	if owners != nil {
		var tokens strings.Builder
		for _, owner := range owners {
			fmt.Fprintln(&tokens, owner, d.token(owner))
		}
		file := filepath.Join(dir, "tokens")
		if err := os.WriteFile(file, []byte(tokens.String()), 0o600); err != nil {
			return nil, err
		}
		d.args = append(d.args, "--auth-tokens-file", file)
	}
	return d, d.run()
}

// run starts the process on the daemon's directory and waits until it is ready.
func (d *daemon) run() error {
	d.cmd = exec.Command(d.binary, d.args...)
	d.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + d.dir, "OPENAI_BASE_URL=" + d.model.URL,
		"OPENAI_API_KEY=sk-none", "RECURGENT_MODEL=scripted"}
	d.cmd.Stderr = os.Stderr
	out, err := d.cmd.StdoutPipe()
	if err == nil {
		err = d.cmd.Start()
	}
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if m := readyLine.FindStringSubmatch(lines.Text()); m != nil {
			d.url = m[1]
			go func() { _, _ = io.Copy(io.Discard, out) }() // until the daemon ends
			return nil
		}
	}
	d.stop()
	if err := lines.Err(); err != nil {
		return err
	}
	return fmt.Errorf("%s is not ready", d.binary)
}

// stop stops the process and the model. The daemon cannot run again.
func (d *daemon) stop() {
	d.model.Close()
	d.end()
}

// end stops the process and keeps its directory. run starts it again.
func (d *daemon) end() {
	_ = d.cmd.Process.Signal(os.Interrupt) // it may have ended
	_ = d.cmd.Wait()                       // how it ended does not matter
}

// processorTime returns the processor time that the daemon and its exited runners have used, or 0 if the system does
// not report it.
func (d *daemon) processorTime() time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", d.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	var sum time.Duration
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	for _, ticks := range fields[11:15] {
		n, err := strconv.Atoi(ticks)
		if err != nil {
			return 0
		}
		sum += time.Duration(n) * time.Second / 100
	}
	return sum
}

// post sends v as JSON and decodes the reply into the value that into points to.
func (d *daemon) post(owner, path string, v, into any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return d.send(owner, path, body, into)
}

// send is post for a body that is encoded already. A status other than 2xx is an error.
func (d *daemon) send(owner, path string, body []byte, into any) error {
	req, err := http.NewRequest(http.MethodPost, d.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	switch {
	case owner != "" && d.token != nil:
		req.Header.Set("Authorization", "Bearer "+d.token(owner))
	case owner != "":
		req.Header.Set("Recurgent-Namespace", owner)
	}
	resp, err := d.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	reply, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("POST %s: %s: %.300s", path, resp.Status, reply)
	}
	return json.Unmarshal(reply, into)
}

// A target is a method in a session of its own, which one client calls.
type target struct {
	owner, path string
	body        []byte
}

// target creates a session of the role and calls the method once, so that it is forged.
func (d *daemon) target(owner, role, method string) (target, error) {
	var session struct {
		ID string `json:"id"`
	}
	if err := d.post(owner, "/v1/sessions", map[string]any{"role": role}, &session); err != nil {
		return target{}, err
	}
	body, err := json.Marshal(map[string]any{"method": method, "args": []any{41.0}})
	if err != nil {
		return target{}, err
	}
	t := target{owner, "/v1/sessions/" + session.ID + "/calls", body}
	return t, d.call(t)
}

// call calls the target once. It returns an error unless the reply has a value.
func (d *daemon) call(t target) error {
	var reply struct {
		Outcome struct {
			Status  string `json:"status"`
			Message string `json:"error_message"`
		} `json:"outcome"`
	}
	if err := d.send(t.owner, t.path, t.body, &reply); err != nil {
		return err
	}
	if reply.Outcome.Status != "ok" {
		return fmt.Errorf("a call ended in %q: %s", reply.Outcome.Status, reply.Outcome.Message)
	}
	return nil
}
