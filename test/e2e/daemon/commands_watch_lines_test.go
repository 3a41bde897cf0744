package daemon

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/cli/clitest"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// lines runs watch where no terminal is and reads its lines as they come.
type watchLinesOf struct {
	cmd   *exec.Cmd
	lines chan string
	errs  *rig.Buffer
}

func watchPiped(t *testing.T, env []string, args ...string) *watchLinesOf {
	t.Helper()
	w := &watchLinesOf{cmd: exec.Command(os.Args[0], append([]string{"watch"}, args...)...),
		lines: make(chan string, 1000), errs: &rig.Buffer{}}
	w.cmd.Env, w.cmd.Stderr = append(env, "TERM=xterm-256color"), w.errs
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(w.lines)
		scanner := bufio.NewScanner(out)
		scanner.Buffer(nil, 1<<20)
		for scanner.Scan() {
			w.lines <- scanner.Text()
		}
		if err := scanner.Err(); err != nil {
			w.lines <- err.Error()
		}
	}()
	t.Cleanup(func() { _ = w.cmd.Process.Kill() })
	return w
}

func (w *watchLinesOf) next(t *testing.T) string {
	t.Helper()
	line := ""
	rig.Until(t, "a line; stderr: "+w.errs.String(), func() bool {
		select {
		case l, ok := <-w.lines:
			if line = l; !ok {
				t.Fatalf("the lines ended: %s", w.errs)
			}
			return true
		default:
			return false
		}
	})
	return line
}

func (w *watchLinesOf) stop(t *testing.T, s os.Signal) {
	t.Helper()
	if err := w.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
	for range w.lines { // to the end of the pipe
	}
	if err := w.cmd.Wait(); err != nil {
		t.Errorf("after %s: %v\n%s", s, err, w.errs)
	}
}

// Where no terminal is: one call a line, no escape byte, as JSON lines or YAML documents on request; the same filters.
func TestWatchLines(t *testing.T) {
	t.Parallel()
	s := newStageDaemon(t)
	s.end(clitest.SomeCalls()...)
	env := append(rig.Environment(t.TempDir()), "RECURGENT_URL="+s.URL)
	w := watchPiped(t, env)
	var got []string
	for range len(clitest.SomeCalls()) {
		got = append(got, w.next(t))
	}
	s.end(clitest.Entry(9, 0, "late.call", "1", "ok", "persisted", 1))
	got = append(got, w.next(t))
	w.stop(t, os.Interrupt)
	text := strings.Join(got, "\n")
	if strings.ContainsAny(text, "\x1b\r") {
		t.Errorf("escape bytes in a pipe: %q", text)
	}
	rig.Golden(t, "watch.lines", text)

	w = watchPiped(t, env, "--output", "json", "--role", "calculator", "--status", "error")
	var e agent.LogEntry
	if err := json.Unmarshal([]byte(w.next(t)), &e); err != nil || e.OutcomeErrorType != "invalid_input" {
		t.Errorf("as JSON: %+v, %v", e, err)
	}
	w.stop(t, syscall.SIGTERM)
	w = watchPiped(t, env, "--last", "1", "--output", "yaml")
	if line := w.next(t); line != `timestamp: "2026-11-21T06:15:09.250Z"` {
		t.Errorf("as YAML: %s", line)
	}
	w.stop(t, syscall.SIGTERM)
}

// A connection that ends is made again behind the last call that came; what happened meanwhile is shown once.
func TestWatchGoesOnBehindTheLastCall(t *testing.T) {
	t.Parallel()
	s := newStageDaemon(t)
	w := watchPiped(t, append(rig.Environment(t.TempDir()), "RECURGENT_URL="+s.URL))
	rig.Until(t, "a connection", func() bool { return len(s.connections()) == 1 })
	all := clitest.SomeCalls()
	s.end(all[0])
	w.next(t)
	s.hangUp()
	s.end(all[1:]...)
	for i := 1; i < len(all); i++ {
		if line := w.next(t); !strings.Contains(line, all[i].CallID) {
			t.Errorf("line %d is %s, want %s", i, line, all[i].CallID)
		}
	}
	if c := s.connections(); c[0] != "call_"+strings.Repeat("0", 26) || c[len(c)-1] != all[0].CallID {
		t.Errorf("connections were resumed at %q", c)
	}
	rig.Until(t, "word of it", func() bool {
		return strings.Contains(w.errs.String(), "lost the daemon") &&
			strings.Contains(w.errs.String(), "connected again")
	})
	w.stop(t, syscall.SIGTERM)
}

// A door stands before a daemon whose address changes when it restarts.
func door(t *testing.T, to func() string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer in.Close()
				out, err := net.Dial("tcp", to())
				if err != nil {
					return
				}
				defer out.Close()
				go func() { _, _ = io.Copy(out, in); out.Close() }()
				_, _ = io.Copy(in, out) // either side may end it
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

// The real daemon: a screen lives through its restart, loses no call, and SIGTERM ends it cleanly.
func TestWatchLivesThroughARestart(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, nil)
	var mu sync.Mutex
	address := strings.TrimPrefix(d.URL, "http://")
	url := door(t, func() string { mu.Lock(); defer mu.Unlock(); return address })
	env := append(rig.Environment(t.TempDir()), "RECURGENT_URL="+url)
	w := rig.OnTerminal(t, 110, 20, env, "watch")
	w.Shows("live")
	call := func(args ...string) {
		t.Helper()
		if _, errs, code := d.Client(append([]string{"call"}, args...)...); code != 0 {
			t.Fatalf("%v: %s", args, errs)
		}
	}
	call("invoice", "total", `[{"price": 4, "quantity": 2.5}, {"price": 3, "quantity": 1}]`)
	w.Shows("invoice.total", "├ calculator.multiply(4, 2.5)", "└ calculator.add", "generated")
	mu.Lock()
	address = "127.0.0.1:1"
	mu.Unlock()
	d.Restart()
	w.Shows("connecting again")
	call("calculator", "add", "40", "2") // before the screen is back
	mu.Lock()
	address = strings.TrimPrefix(d.URL, "http://")
	mu.Unlock()
	w.Shows("live", "calculator.add(40, 2)", "invoice.total")
	if err := w.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	w.Ends(0)
}

// A call or stream that cannot be watched gives a one-line error, with the exit code of its cause.
func TestWatchRefusals(t *testing.T) {
	t.Parallel()
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer refusing.Close()
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--url", "http://127.0.0.1:1"}, 3, "cannot reach the daemon"},
		{[]string{"--url", refusing.URL}, 3, "401"},
		{[]string{"--status", "fine"}, 2, "status must be one of"},
		{[]string{"--last", "-1"}, 2, "--last"},
		{[]string{"--output", "xml"}, 2, "table, json, yaml"},
		{[]string{"extra"}, 2, "watch --help"},
	} {
		out, errs, code := rig.Run(t, rig.Environment(t.TempDir()), append([]string{"watch"}, c.args...)...)
		if code != c.code || !strings.Contains(errs, c.want) || out != "" {
			t.Errorf("%q: %d, %q, %q, want %d and %q", c.args, code, out, errs, c.code, c.want)
		}
	}
	w := rig.OnTerminal(t, 200, 10, rig.Environment(t.TempDir()), "watch", "--url", refusing.URL)
	w.Ends(3)
	if !strings.Contains(string(w.Bytes()), "401") {
		t.Errorf("the screen ended without a reason: %q", w.Bytes())
	}
}
