package diff

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
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

// pressures are the settings of the collector under which programs run, one after the other.
func pressures() [][]string {
	return [][]string{
		{"GOGC=1", "GODEBUG=clobberfree=1"},
		{"GOGC=2", "GODEBUG=gccheckmark=1"},
		{"GOGC=5", "GODEBUG=clobberfree=1,gccheckmark=1"},
		{"GOGC=3", "GODEBUG=clobberfree=1,gcstoptheworld=1"},
	}
}

// child runs the programs that come over the standard input, one JSON string a line, each twice.
func child() error {
	g, err := gate.New(gate.Options{Deadline: time.Minute})
	if err != nil {
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
		if err := out.Encode(runTwice(g, source)); err != nil {
			return err
		}
	}
}

// runTwice runs a program twice and returns the first result, or what is wrong as its Panic.
func runTwice(g *gate.Gate, source string) result {
	p, refusal := g.Check(source)
	if refusal != nil {
		return result{Panic: "refused: " + strings.Join(append(refusal.Errors, refusal.Message), "\n")}
	}
	c, err := interp.Compile(p)
	if err != nil {
		return result{Panic: "does not compile: " + err.Error()}
	}
	defer c.Close()
	first := runOnce(c)
	if second := runOnce(c); string(second.Value) != string(first.Value) || second.Panic != first.Panic {
		return result{Panic: "the second run differs" + firstDifference(second.Value, first.Value)}
	}
	return first
}

func runOnce(c *interp.Compiled) (r result) {
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

// A runner is a child process.
type runner struct {
	cmd    *exec.Cmd
	in     *json.Encoder
	out    *bufio.Reader
	stderr bytes.Buffer
	close  func() error
}

func startRunner(t testing.TB, env []string) *runner {
	t.Helper()
	r := &runner{cmd: exec.Command(os.Args[0])}
	r.cmd.Env = append(append(os.Environ(), "DIFF_CHILD=1"), env...)
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

// runHereUnder runs programs in child processes with the settings of env and returns their results in order.
func runHereUnder(t testing.TB, env, sources []string) []result {
	t.Helper()
	var out []result
	var r *runner
	for _, source := range sources {
		if r == nil {
			r = startRunner(t, env)
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
