package rig

import (
	"bufio"
	"cmp"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/api/apitest"
)

// Patience bounds every wait of the tests. It is long because machines may be slow, and nothing is measured with it.
const Patience = 60 * time.Second

// SecretKey must never appear anywhere but in requests to the model.
const SecretKey = "sk-canary-4d1b7e55c0ffee"

// A Daemon is a real daemon process, started from the test binary. Tests reach it only through HTTP. Every exchange is
// compared with the OpenAPI document.
type Daemon struct {
	T    *testing.T
	Dir  string // parent of the data directory and the log
	Args []string
	Env  []string
	// Cmd is the current process. Start replaces it.
	Cmd    *exec.Cmd
	exited chan struct{} // closed when the process has ended
	ready  string        // the ready line
	URL    string
	Output *Output  // stdout and stderr of all its processes
	Log    *os.File // receives stderr instead of Output, if not nil
	Alone  bool     // has no controlling terminal, even if the tests have one
	HTTP   *http.Client

	header   map[string]string // of each request: authorization and namespace
	database string            // URL; "" if the daemon uses a data directory
	own      []string          // environment of this replica, in addition to Env
	others   []*Daemon         // the other replicas
}

// Start starts a daemon on a fresh directory and waits until it is ready. m is the model behind it; nil means no model.
// The daemon is killed at the end of the test.
func Start(t *testing.T, m *Model, args ...string) *Daemon {
	t.Helper()
	return StartIn(t, m, nil, args...)
}

// StartIn is Start with env added to the daemon's environment.
func StartIn(t *testing.T, m *Model, env []string, args ...string) *Daemon {
	t.Helper()
	d := &Daemon{T: t, Dir: t.TempDir(), Args: args, Output: NewOutput(t), HTTP: apitest.Client(t)}
	d.share()
	d.HTTP.Timeout = Patience
	d.Env = append(Environment(d.Dir), env...)
	if m != nil {
		d.Env = append(d.Env, "OPENAI_BASE_URL="+m.URL, "OPENAI_API_KEY="+SecretKey, "RECURGENT_MODEL=scripted")
	}
	d.Start()
	t.Cleanup(func() {
		d.Stop(syscall.SIGKILL)
		d.checkStored()
		if t.Failed() {
			t.Logf("the daemon said:\n%s", d.Output)
		}
	})
	return d
}

// StartAhead is Start with a clock that set moves ahead by a duration, such as "720h".
func StartAhead(t *testing.T, m *Model, args ...string) (d *Daemon, set func(by string)) {
	t.Helper()
	return StartAheadIn(t, m, nil, args...)
}

// StartAheadIn is StartAhead with env added to the daemon's environment.
func StartAheadIn(t *testing.T, m *Model, env []string, args ...string) (d *Daemon, set func(by string)) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "clock")
	set = func(by string) {
		t.Helper()
		if err := os.WriteFile(file+".new", []byte(by), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	set("0s")
	return StartIn(t, m, append(env, ClockFile+"="+file), args...), set
}

// Environment returns an environment that is independent of the tester's: state, home and configuration are below dir.
func Environment(dir string) []string {
	env := []string{actAsBinary + "=1", "PATH=" + os.Getenv("PATH"), "HOME=" + dir,
		"XDG_STATE_HOME=" + filepath.Join(dir, "xdg"), "TMPDIR=" + os.TempDir(), "NO_PROXY=127.0.0.1,localhost"}
	programs, err := buildRunner()
	if err != nil {
		panic(err)
	}
	shared, err := compiles()
	if err != nil {
		panic(err)
	}
	return append(append(env, programs...), shared...)
}

// State returns the data directory.
func (d *Daemon) State() string { return filepath.Join(d.Dir, "xdg", "recurgent") }

// readyLine matches the line that the daemon prints once it serves. The group is its URL.
var readyLine = regexp.MustCompile(`^recurgentd is ready on (https?://\S+)`)

// Start starts the daemon again on its data and waits until it is ready.
func (d *Daemon) Start() {
	d.T.Helper()
	for _, other := range d.others {
		other.Args, other.Env, other.Log, other.Alone = d.Args, d.Env, d.Log, d.Alone
	}
	for _, one := range d.all() {
		one.start()
	}
}

// start starts this one process and waits until it is ready.
func (d *Daemon) start() {
	d.T.Helper()
	binary := os.Args[0]
	for _, v := range d.Env {
		if name, ok := strings.CutPrefix(v, Binary+"="); ok {
			binary = name
		}
	}
	d.Cmd = exec.Command(binary, append([]string{"serve", "--listen", "127.0.0.1:0"}, d.Args...)...)
	d.Cmd.Env, d.Cmd.Dir, d.Cmd.Stderr = slices.Concat(d.Env, d.own), d.Dir, d.Output.file
	if d.Log != nil {
		d.Cmd.Stderr = d.Log
	}
	d.Cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: d.Alone}
	stdout, err := d.Cmd.StdoutPipe()
	if err != nil {
		d.T.Fatal(err)
	}
	if err := d.Cmd.Start(); err != nil {
		d.T.Fatal(err)
	}
	lines, exited := make(chan string, 1), make(chan struct{})
	d.exited = exited
	go func() {
		scanner := bufio.NewScanner(stdout)
		for scanner.Scan() {
			fmt.Fprintln(d.Output, scanner.Text())
			if readyLine.MatchString(scanner.Text()) {
				lines <- scanner.Text()
			}
		}
		if err := scanner.Err(); err != nil {
			fmt.Fprintln(d.Output, "its output is not read on:", err)
		}
		_ = d.Cmd.Wait() // those who wait for exited read the state
		close(exited)
	}()
	select {
	case d.ready = <-lines:
		d.URL = readyLine.FindStringSubmatch(d.ready)[1]
	case <-exited:
		d.T.Fatalf("the daemon ended before it was ready: %v\n%s", d.Cmd.ProcessState, d.Output)
	case <-time.After(Patience):
		d.T.Fatalf("the daemon is not ready after %s\n%s", Patience, d.Output)
	}
}

// Stop sends the signal to all replicas and waits for their end. It returns the exit code, which is -1 after a death by
// signal.
func (d *Daemon) Stop(s syscall.Signal) int {
	d.T.Helper()
	for _, one := range d.all() {
		_ = one.Cmd.Process.Signal(s) // fails if the process has ended
	}
	return d.Wait()
}

// Wait waits for the end and returns the exit code. With several replicas it returns one that is not 0, if there is
// any.
func (d *Daemon) Wait() int {
	d.T.Helper()
	code := 0
	for _, one := range d.all() {
		code = cmp.Or(code, one.wait())
	}
	d.HTTP.CloseIdleConnections()
	return code
}

// wait waits for the end of this one process. It kills the process after Patience.
func (d *Daemon) wait() int {
	d.T.Helper()
	select {
	case <-d.exited:
	case <-time.After(Patience):
		_ = d.Cmd.Process.Kill()
		<-d.exited
		d.T.Errorf("the daemon did not end within %s", Patience)
	}
	return d.Cmd.ProcessState.ExitCode()
}

// Restart stops the daemon cleanly and starts it again on its data.
func (d *Daemon) Restart() {
	d.T.Helper()
	if code := d.Stop(syscall.SIGTERM); code != 0 {
		d.T.Errorf("SIGTERM: exit code %d, want 0\n%s", code, d.Output)
	}
	d.Start()
}
