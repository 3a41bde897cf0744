package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/cli/clitest"
)

// A stageDaemon is a daemon that tells what a test wants: the log, what runs, and a stream whose events come when the test says.
type stageDaemon struct {
	*httptest.Server
	mu      sync.Mutex
	log     []agent.LogEntry // newest first; guarded by mu
	running []agent.LogEntry // guarded by mu
	more    chan struct{}    // closed when the log grows; guarded by mu
	resumed []string         // Last-Event-ID of each connection; guarded by mu
	cut     chan struct{}    // closed to end all streams; guarded by mu
}

func newStageDaemon(t *testing.T) *stageDaemon {
	s := &stageDaemon{more: make(chan struct{}), cut: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/calls", s.list)
	mux.HandleFunc("GET /v1/events", s.events)
	s.Server = httptest.NewServer(mux)
	t.Cleanup(func() { s.hangUp(); s.Close() })
	return s
}

func (s *stageDaemon) list(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.log
	if r.URL.Query().Get("status") == "running" {
		list = s.running
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"data": append([]agent.LogEntry{}, list...), "next_cursor": nil})
}

func (s *stageDaemon) events(w http.ResponseWriter, r *http.Request) {
	last := r.Header.Get("Last-Event-ID")
	s.mu.Lock()
	s.resumed = append(s.resumed, last)
	cut := s.cut
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, "retry: 50\n\n: ping\n\n")
	for {
		s.mu.Lock()
		fresh, more := []agent.LogEntry{}, s.more
		for _, e := range s.log {
			if e.CallID == last {
				break
			}
			fresh = append(fresh, e)
		}
		s.mu.Unlock()
		for i := len(fresh) - 1; i >= 0; i-- {
			data, _ := json.Marshal(fresh[i])
			last = fresh[i].CallID
			fmt.Fprintf(w, "id: %s\nevent: call.finished\ndata: %s\n\n", last, data)
		}
		_ = http.NewResponseController(w).Flush()
		select {
		case <-more:
		case <-cut:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// end commits calls, in order.
func (s *stageDaemon) end(calls ...agent.LogEntry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range calls {
		s.log = append([]agent.LogEntry{e}, s.log...)
	}
	close(s.more)
	s.more = make(chan struct{})
}

func (s *stageDaemon) runs(calls ...agent.LogEntry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = calls
}

// hangUp ends every stream.
func (s *stageDaemon) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.cut)
	s.cut = make(chan struct{})
}

func (s *stageDaemon) connections() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.resumed...)
}

var portOfTest = regexp.MustCompile(`127\.0\.0\.1:\d+`)

func withoutPort(screen string) string { return portOfTest.ReplaceAllString(screen, "DAEMON") }

func watchOn(t *testing.T, s *stageDaemon, columns, rows int, args ...string) *terminal {
	t.Helper()
	return onTerminal(t, columns, rows, append(cleanEnvironment(t.TempDir()), "RECURGENT_URL="+s.URL), append([]string{"watch"}, args...)...)
}

// The screen: what came before, what comes, trees of delegation, what runs; filters by keys, a list, an end by q that leaves
// the terminal as it was.
func TestWatchScreen(t *testing.T) {
	s := newStageDaemon(t)
	all := clitest.SomeCalls()
	s.end(all[:3]...)
	s.runs(clitest.Entry(4, 0, "invoice.total", `[{"price": 4, "quantity": 2.5}, {"price": 3, "quantity": 1}]`, "running", "", 0))
	w := watchOn(t, s, 100, 16)
	w.shows("live", "invoice.total", "running", "3 calls, 1 error")
	s.end(all[3:6]...)
	golden(t, "watch-running.screen", withoutPort(w.shows("6 calls, 1 error")))
	s.runs()
	s.end(all[6])
	w.lacks("running")
	golden(t, "watch-tree.screen", withoutPort(w.shows("7 calls, 1 error")))

	w.press("t")
	golden(t, "watch-list.screen", withoutPort(w.shows("t trees")))
	w.press("t")
	w.press("/role=units\r")
	w.shows("role=units", "Esc all", "└ units.convert", "invoice.total") // with what leads to it
	w.lacks("divide")
	w.press("/\x15role=calculator status=error\r")
	golden(t, "watch-filter.screen", withoutPort(w.shows("role=calculator status=error  Esc", "calculator.divide(1, 0) → invalid_input: nothing can be divide")))
	w.press("/\x15trace=00000000000000000000000000000009\r")
	w.lacks("calculator.add")
	w.shows("movie finder.find", "weak: empty movies")
	w.press("/\x15role=\"movie finder\"\r")
	w.lacks("trace=")
	w.shows(`role="movie finder"`, "movie finder.find")
	w.press("/\x15colour=red\r")
	w.shows(`"colour=red" is none of role=`)
	w.press("\x1b") // no more typing
	w.lacks("colour=red")
	w.press("\x1b") // no filter
	w.shows("calculator.add(2, 3)", "invoice.total")
	w.press("q")
	w.ends(0)
}

// The filters as flags, and scrolling.
func TestWatchFiltersAndScrolls(t *testing.T) {
	s := newStageDaemon(t)
	s.end(clitest.SomeCalls()...)
	for n := 10; n < 40; n++ {
		s.end(clitest.Entry(n, 0, "echo.echo", fmt.Sprint(n), "ok", "persisted", 1))
	}
	w := watchOn(t, s, 90, 10, "--role", "echo", "--method", "echo", "--status", "ok", "--trace", "0000", "--last", "200")
	w.shows("echo.echo(39)", "echo.echo(33)")
	w.lacks("echo.echo(32)")
	w.press("\x1b[A")
	w.shows("echo.echo(32)", "line 23 of 30")
	s.end(clitest.Entry(41, 0, "echo.echo", "41", "ok", "persisted", 1)) // what comes does not move what is read
	w.shows("line 23 of 31", "echo.echo(32)")
	w.press("\x1b[H")
	w.shows("echo.echo(10)", "line 1 of 31")
	w.press("\x1b[6~")
	w.shows("line 7 of 31")
	w.press("\x1b[F")
	w.shows("echo.echo(41)")
	w.press("\x03")
	w.ends(0)
}

// A screen of any size is drawn, down to one cell, and the next larger one is whole again.
func TestWatchResizes(t *testing.T) {
	s := newStageDaemon(t)
	s.end(clitest.SomeCalls()...)
	w := watchOn(t, s, 100, 12)
	w.shows("invoice.total", "TOOK")
	w.resize(44, 6)
	w.shows("recurgentd watch", "TIME")
	w.resize(1, 1)
	w.waitFor("one cell", func(screen string) bool { return len([]rune(screen)) == 1 })
	w.resize(120, 20)
	w.shows("calculator.divide(1, 0) → invalid_input: nothing can be divided by zero", "invoice.total", "q end")
	w.press("q")
	w.ends(0)
}

func hostileCall(n int, text string) agent.LogEntry {
	quoted, _ := json.Marshal(text)
	e := clitest.Failing(clitest.Entry(n, 0, "r.m", string(quoted), "error", "persisted\x1b[31m", 1), text, text)
	e.Role, e.Method, e.Timestamp, e.WeakSuccessReasons = "role"+text, "method"+text, "2026-11-21T06:15:\x1b[3m.250Z", []string{text}
	return e
}

// No byte of a stranger's text is obeyed by the terminal: neither on the screen, nor as lines, nor as JSON or YAML.
func TestWatchShowsHostileTextPlain(t *testing.T) {
	s := newStageDaemon(t)
	for i, text := range clitest.HostileTexts {
		s.end(hostileCall(i+1, text))
	}
	s.end(clitest.Entry(50, 0, "good.end", "1", "ok", "persisted", 1))
	w := watchOn(t, s, 100, 30)
	w.shows("good.end(1)", "漢字かな交じり文", "owned")
	w.press("/")
	w.shows("filter:")
	w.press("\x1b[200~" + "pasted\u009b31m\u202e" + "\x1b[201~") // pasted text, too
	w.shows("filter: pasted")
	w.press("\r")
	w.shows("role=pasted", "Esc all")
	w.press("\x1b")
	w.shows("good.end(1)")
	w.press("q")
	w.ends(0)
	checkObeyed(t, "screen", w.bytes())
	for _, form := range [][]string{{"--plain"}, {"--output", "json"}, {"--output", "yaml"}} {
		w := watchOn(t, s, 200, 250, form...)
		w.shows("good")
		if err := w.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		w.ends(0)
		checkObeyed(t, strings.Join(form, " "), w.bytes())
	}
}

// checkObeyed wants no sequence in the bytes but those that a screen of ours consists of.
func checkObeyed(t *testing.T, what string, raw []byte) {
	t.Helper()
	ours := regexp.MustCompile("^\x1b(\\[[<=>?]?[0-9;]*[a-zA-HJKLMPWXdhlmru@]|\\[\\?[0-9]+\\$p|[=>78])")
	for i, b := range raw {
		if b == 0x1b && !ours.Match(raw[i:]) {
			t.Errorf("%s: a sequence of somebody else: %q", what, raw[i:min(len(raw), i+20)])
		}
		if b < ' ' && !strings.ContainsRune("\x1b\r\n\t\b", rune(b)) || b == 0x7f {
			t.Errorf("%s: a control character: %q", what, raw[max(0, i-10):min(len(raw), i+10)])
		}
	}
	for _, r := range "\u009b\u009d\u202e\u200d\ufeff\u2028" {
		if bytes.ContainsRune(raw, r) {
			t.Errorf("%s: %U came through", what, r)
		}
	}
	if text := string(raw); strings.ToValidUTF8(text, "") != text {
		t.Errorf("%s: broken UTF-8", what)
	}
	for _, part := range []string{"\x1b]", "\x1bP", "\x1b[31m\x1b", "\x1b[3m"} {
		if bytes.Contains(raw, []byte(part)) {
			t.Errorf("%s: %q came through", what, part)
		}
	}
}

// lines runs watch where no terminal is and reads its lines as they come.
type watchLinesOf struct {
	cmd   *exec.Cmd
	lines chan string
	errs  *syncBuffer
}

func watchPiped(t *testing.T, env []string, args ...string) *watchLinesOf {
	t.Helper()
	w := &watchLinesOf{cmd: exec.Command(os.Args[0], append([]string{"watch"}, args...)...), lines: make(chan string, 1000), errs: &syncBuffer{}}
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
	}()
	t.Cleanup(func() { _ = w.cmd.Process.Kill() })
	return w
}

func (w *watchLinesOf) next(t *testing.T) string {
	t.Helper()
	line := ""
	until(t, "a line; stderr: "+w.errs.String(), func() bool {
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
	s := newStageDaemon(t)
	s.end(clitest.SomeCalls()...)
	env := append(cleanEnvironment(t.TempDir()), "RECURGENT_URL="+s.URL)
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
	golden(t, "watch.lines", text)

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
	s := newStageDaemon(t)
	w := watchPiped(t, append(cleanEnvironment(t.TempDir()), "RECURGENT_URL="+s.URL))
	until(t, "a connection", func() bool { return len(s.connections()) == 1 })
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
	until(t, "word of it", func() bool {
		return strings.Contains(w.errs.String(), "lost the daemon") && strings.Contains(w.errs.String(), "connected again")
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
	d := newDaemon(t, nil)
	var mu sync.Mutex
	address := strings.TrimPrefix(d.url, "http://")
	url := door(t, func() string { mu.Lock(); defer mu.Unlock(); return address })
	env := append(cleanEnvironment(t.TempDir()), "RECURGENT_URL="+url)
	w := onTerminal(t, 110, 20, env, "watch")
	w.shows("live")
	call := func(args ...string) {
		t.Helper()
		if _, errs, code := d.client(append([]string{"call"}, args...)...); code != 0 {
			t.Fatalf("%v: %s", args, errs)
		}
	}
	call("invoice", "total", `[{"price": 4, "quantity": 2.5}, {"price": 3, "quantity": 1}]`)
	w.shows("invoice.total", "├ calculator.multiply(4, 2.5)", "└ calculator.add", "generated")
	mu.Lock()
	address = "127.0.0.1:1"
	mu.Unlock()
	d.restart()
	w.shows("connecting again")
	call("calculator", "add", "40", "2") // before the screen is back
	mu.Lock()
	address = strings.TrimPrefix(d.url, "http://")
	mu.Unlock()
	w.shows("live", "calculator.add(40, 2)", "invoice.total")
	if err := w.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	w.ends(0)
}

// What cannot be watched is said in one line, with the exit code that tells why.
func TestWatchRefusals(t *testing.T) {
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
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
		out, errs, code := runBinary(t, cleanEnvironment(t.TempDir()), append([]string{"watch"}, c.args...)...)
		if code != c.code || !strings.Contains(errs, c.want) || out != "" {
			t.Errorf("%q: %d, %q, %q, want %d and %q", c.args, code, out, errs, c.code, c.want)
		}
	}
	w := onTerminal(t, 200, 10, cleanEnvironment(t.TempDir()), "watch", "--url", refusing.URL)
	w.ends(3)
	if !strings.Contains(string(w.bytes()), "401") {
		t.Errorf("the screen ended without a reason: %q", w.bytes())
	}
}
