package tools

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/provider/openaitest"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// stages returns the lines that --stream prints, without the parts that differ from run to run.
func stages(stderr string) string {
	var list []string
	for _, line := range strings.Split(strings.TrimSpace(stderr), "\n") {
		if _, text, ok := strings.Cut(line, ": "); ok && !strings.HasPrefix(line, "recurgentd:") {
			text, _, _ = strings.Cut(text, " (")
			list = append(list, regexp.MustCompile(`call_\w+`).ReplaceAllString(text, "CALL"))
		}
	}
	return strings.Join(list, "; ")
}

// --stream prints each stage on stderr, a line each if stderr is no terminal, and nothing else changes: stdout, its formats and the
// exit codes are those of a call without it.
func TestCallStream(t *testing.T) {
	t.Parallel()
	// A call whose model answers at once may have ended before it can be followed: each answer waits for its stage to show.
	add, forge, repair, fail := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
	once := func(gate chan struct{}, code string) any { return openaitest.Reply{Wait: gate, Code: code} }
	m := rig.NewModel(t, rig.Script{"calculator.add": {once(add, rig.ProgAdd)}, "r.m": {once(forge, rig.ProgMayPanic), once(repair, rig.ProgFixes)}, "calculator.fail": {once(fail, rig.ProgFails)}})
	d := rig.Start(t, m)
	for _, c := range []struct {
		args   []string
		gate   chan struct{} // nil: the call needs no model
		out    string
		code   int
		stages string
	}{
		{[]string{"calculator", "add", "2", "-3"}, add, "-1\n", 0, "started as CALL; selected: forge; forging; the program is at the gate; running a new program"},
		{[]string{"calculator", "add", "2", "3"}, nil, "5\n", 0, ""},
		{[]string{"r", "m", "1"}, forge, "1\n", 0, "started as CALL; selected: forge; forging; the program is at the gate; running a new program"},
		{[]string{"r", "m", "bad"}, repair, "\"fixed\"\n", 0, "started as CALL; failed in execution: execution: "},
		{[]string{"calculator", "fail"}, fail, "", 1, "started as CALL; selected: forge; forging; the program is at the gate; running a new program"},
	} {
		out, errs, code := followed(t, d, c.gate, c.args)
		if got := stages(errs); out != c.out || code != c.code || !strings.HasPrefix(got, c.stages) {
			t.Errorf("%q: %q, %d, stages %q, want %q, %d, %q\n%s", c.args, out, code, got, c.out, c.code, c.stages, errs)
		}
		if strings.Contains(errs, "\x1b") {
			t.Errorf("escape bytes in a pipe: %q", errs)
		}
		if c.args[1] == "m" && c.args[2] == "bad" && !strings.Contains(stages(errs), "repairing; the program is at the gate; running a new program") {
			t.Errorf("a repair is not shown: %s", errs)
		}
	}
	out, _, code := d.Client("call", "calculator", "add", "2", "3", "--stream", "--output", "json")
	var r rig.Reply
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 || r.Outcome.Value != 5.0 || r.Program.Source != "persisted" {
		t.Errorf("as JSON: %v, %d, %s", err, code, out)
	}
	before := len(d.List("/v1/calls"))
	if _, errs, code := d.Client("call", "calculator", "add", "1", "1", "--stream", "--session", "none"); code != 3 || !strings.Contains(errs, "404") {
		t.Errorf("an unknown session: %d, %s", code, errs)
	}
	if n := len(d.List("/v1/calls")); n != before {
		t.Errorf("%d calls more than were made", n-before)
	}
}

// followed runs call --stream to its end; once it shows that the model was asked, the gate opens.
func followed(t *testing.T, d *rig.Daemon, gate chan struct{}, args []string) (stdout, stderr string, code int) {
	t.Helper()
	c := exec.Command(os.Args[0], append([]string{"call", "--stream"}, args...)...)
	out, errs := &rig.Buffer{}, &rig.Buffer{}
	c.Env, c.Stdout, c.Stderr = append(rig.Environment(d.Dir), "RECURGENT_URL="+d.URL), out, errs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill() })
	if gate != nil {
		rig.Until(t, "a question to the model", func() bool { return regexp.MustCompile(`: (forging|repairing)`).MatchString(errs.String()) })
		close(gate)
	}
	_ = c.Wait() // the exit code says it
	return out.String(), errs.String(), c.ProcessState.ExitCode()
}

// Calls of a session wait for each other, and say so. An interrupt cancels the call.
func TestCallStreamQueuesAndIsInterrupted(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"calculator.slow": {rig.Held(rig.ProgAdd)}, "calculator.add": {rig.ProgAdd}})
	d := rig.Start(t, m)
	s := d.Session("calculator")
	start := func(method string) (*exec.Cmd, *rig.Buffer, chan error) {
		t.Helper()
		c := exec.Command(os.Args[0], "call", "calculator", method, "2", "3", "--session", s, "--stream")
		errs := &rig.Buffer{}
		c.Env, c.Stderr = append(rig.Environment(d.Dir), "RECURGENT_URL="+d.URL), errs
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- c.Wait() }()
		t.Cleanup(func() { _ = c.Process.Kill() })
		return c, errs, ended
	}
	says := func(errs *rig.Buffer, part string) {
		t.Helper()
		rig.Until(t, part, func() bool { return strings.Contains(errs.String(), part) })
	}
	first, firstErrs, firstEnded := start("slow")
	says(firstErrs, "forging")
	_, secondErrs, secondEnded := start("add")
	says(secondErrs, "queued behind 1 call")
	if err := first.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	wait := func(ended chan error) {
		t.Helper()
		select {
		case <-ended:
		case <-time.After(rig.Patience):
			t.Fatal("a client does not end")
		}
	}
	wait(firstEnded)
	if code := first.ProcessState.ExitCode(); code != 3 || !strings.Contains(firstErrs.String(), "the call was canceled") {
		t.Errorf("an interrupted call: %d, %s", code, firstErrs)
	}
	wait(secondEnded) // its turn came
	if !strings.Contains(secondErrs.String(), "running a new program") {
		t.Errorf("the second call: %s", secondErrs)
	}
	id := regexp.MustCompile(`started as (\S+)`).FindStringSubmatch(firstErrs.String())
	if id == nil {
		t.Fatalf("the interrupted call has no id: %s", firstErrs)
	}
	rig.Until(t, "the end of the interrupted call as canceled", func() bool { // its turn is over for a moment before it counts as ended
		return d.Get("/v1/calls/" + id[1])["outcome_error_type"] == "canceled"
	})
}
