package diff

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/gate"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/interp"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// TestMain makes the test binary a process that runs generated programs, where the environment says so: settings of the collector hold
// for a whole process, and a process may die of a mistake of the engine.
func TestMain(m *testing.M) {
	if os.Getenv("DIFF_CHILD") == "" {
		os.Exit(m.Run())
	}
	if err := child(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A pressure says how hard the collector works while a program runs. Checking a program is the work of the type checker, whose own
// garbage would take most of the time under pressure.
type pressure struct {
	debug        string // GODEBUG
	compile, run int    // GOGC while the engine makes types and code, and while the program runs
}

// pressures are the settings under which programs run, a batch under each.
func pressures() []pressure {
	return []pressure{
		{"clobberfree=1", 100, 1},
		{"gccheckmark=1", 100, 2},
		{"clobberfree=1,gcstoptheworld=1", 100, 3},
		{"clobberfree=1", 4, 4},
		{"clobberfree=1,gccheckmark=1", 100, 5},
	}
}

var calm = pressure{"", 100, 100}

func (p pressure) String() string {
	return fmt.Sprintf("GOGC=%d GODEBUG=%s (GOGC=%d while compiling)", p.run, p.debug, p.compile)
}

// child runs the programs that come over the standard input, one JSON string a line, each twice.
func child() error {
	g, err := gate.New(gate.Options{Deadline: time.Minute})
	if err != nil {
		return err
	}
	var p pressure
	if _, err := fmt.Sscanf(os.Getenv("DIFF_CHILD"), "%d/%d", &p.compile, &p.run); err != nil {
		return err
	}
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := json.NewEncoder(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
		var source string
		if err := json.Unmarshal(line, &source); err != nil {
			return err
		}
		if err := out.Encode(runTwice(g, p, source)); err != nil {
			return err
		}
	}
}

// runTwice runs a program twice and returns the first result, or what is wrong as its Panic.
func runTwice(g *gate.Gate, under pressure, source string) result {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	p, refusal := g.Check(source)
	if refusal != nil {
		return result{Panic: "refused: " + strings.Join(append(refusal.Errors, refusal.Message), "\n")}
	}
	debug.SetGCPercent(under.compile)
	c, err := interp.Compile(p)
	if err != nil {
		return result{Panic: "does not compile: " + err.Error()}
	}
	defer c.Close()
	debug.SetGCPercent(under.run)
	first := runOnce(c)
	if second := runOnce(c); string(second.Value) != string(first.Value) || second.Panic != first.Panic {
		return result{Panic: "the second run differs" + firstDifference(second.Value, first.Value)}
	}
	return first
}

// An engine is a compiled program of either engine.
type engine interface {
	Begin(now time.Time, seed uint64)
	Run(*recurgent.Call) (any, error, *interp.Panic)
}

func runOnce(c engine) (r result) {
	call, err := newCall("[]")
	if err != nil {
		return result{Panic: err.Error()}
	}
	c.Begin(time.Unix(1790000000, 0), 1)
	value, err, panicked := c.Run(call)
	switch {
	case panicked != nil:
		r.Panic = panicked.Message
	case err != nil:
		r.Error = recurgent.AsFailure(err).Message
	default:
		if r.Value, err = interp.Encode(value); err != nil {
			r.Encode = err.Error()
		}
	}
	return r
}

// jobLimit is how long a program may take.
const jobLimit = time.Minute

// A runner is a child process.
type runner struct {
	cmd    *exec.Cmd
	in     *json.Encoder
	out    *bufio.Reader
	stderr bytes.Buffer
	close  func() error
}

func startRunner(t testing.TB, p pressure) *runner {
	t.Helper()
	r := &runner{cmd: exec.Command(os.Args[0])}
	r.cmd.Env = append(os.Environ(), fmt.Sprintf("DIFF_CHILD=%d/%d", p.compile, p.run), "GODEBUG="+p.debug)
	r.cmd.Stderr = &r.stderr
	in, err := r.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r.in, r.out = json.NewEncoder(in), bufio.NewReaderSize(out, 1<<20)
	r.close = func() error { _ = in.Close(); return r.cmd.Wait() }
	return r
}

// run runs one program; died says that the process is gone.
func (r *runner) run(source string) (res result, died bool) {
	late := time.AfterFunc(jobLimit, func() { _ = r.cmd.Process.Kill() })
	defer late.Stop()
	err := r.in.Encode(source)
	var line []byte
	if err == nil {
		line, err = r.out.ReadBytes('\n')
	}
	if err == nil {
		err = json.Unmarshal(line, &res)
	}
	if err != nil {
		_ = r.close()
		return result{Panic: fmt.Sprintf("the process died: %.3000s", r.stderr.String())}, true
	}
	return res, false
}

// runHereUnder runs programs in child processes under p and returns their results in order.
func runHereUnder(t testing.TB, p pressure, sources []string) []result {
	t.Helper()
	var out []result
	var r *runner
	for _, source := range sources {
		if r == nil {
			r = startRunner(t, p)
		}
		res, died := r.run(source)
		out = append(out, res)
		if died {
			r = nil
		}
	}
	if r != nil {
		if err := r.close(); err != nil {
			t.Fatalf("the child process ends with %v: %s", err, r.stderr.String())
		}
	}
	return out
}
