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

// stages returns the lines that --stream prints, without the parts that differ from run to run, such as what a stage
// that lasts waits for.
func stages(stderr string) string {
	var list []string
	for _, line := range strings.Split(strings.TrimSpace(stderr), "\n") {
		if _, text, ok := strings.Cut(line, ": "); ok && !strings.HasPrefix(line, "recurgentd:") &&
			!strings.HasPrefix(text, "waiting: ") {
			text, _, _ = strings.Cut(text, " (")
			list = append(list, regexp.MustCompile(`call_\w+`).ReplaceAllString(text, "CALL"))
		}
	}
	return strings.Join(list, "; ")
}

// --stream prints each stage on stderr, a line each if stderr is not a terminal, and nothing else changes: stdout, its
// formats and the exit codes are those of a call without it.
func TestCallStream(t *testing.T) {
	t.Parallel()
	// A call whose model answers at once may have ended before it can be followed: each answer waits for its stage to
	// show.
	add, forge, repair, fail := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
	once := func(gate chan struct{}, code string) any { return openaitest.Reply{Wait: gate, Code: code} }
	m := rig.NewModel(t, rig.Script{"calculator.add": {once(add, rig.ProgAdd)},
		"r.m":             {once(forge, rig.ProgMayPanic), once(repair, rig.ProgFixes)},
		"calculator.fail": {once(fail, rig.ProgFails)}})
	d := rig.Start(t, m)
	for _, c := range []struct {
		args   []string
		gate   chan struct{} // nil: the call needs no model
		out    string
		code   int
		stages string
	}{
		{[]string{"calculator", "add", "2", "-3"}, add, "-1\n", 0,
			"started as CALL; selected: forge; forging; the program is at the gate; running a new program"},
		{[]string{"calculator", "add", "2", "3"}, nil, "5\n", 0, ""},
		{[]string{"r", "m", "1"}, forge, "1\n", 0,
			"started as CALL; selected: forge; forging; the program is at the gate; running a new program"},
		{[]string{"r", "m", "bad"}, repair, "\"fixed\"\n", 0, "started as CALL; failed in execution: execution: "},
		{[]string{"calculator", "fail"}, fail, "", 1,
			"started as CALL; selected: forge; forging; the program is at the gate; running a new program"},
	} {
		out, errs, code := followed(t, d, c.gate, c.args)
		if got := stages(errs); out != c.out || code != c.code || !strings.HasPrefix(got, c.stages) {
			t.Errorf("%q: %q, %d, stages %q, want %q, %d, %q\n%s", c.args, out, code, got, c.out, c.code, c.stages,
				errs)
		}
		if strings.Contains(errs, "\x1b") {
			t.Errorf("escape bytes in a pipe: %q", errs)
		}
		if c.args[1] == "m" && c.args[2] == "bad" && !strings.Contains(stages(errs),
			"repairing; the program is at the gate; running a new program") {
			t.Errorf("a repair is not shown: %s", errs)
		}
	}
	out, _, code := d.Client("call", "calculator", "add", "2", "3", "--stream", "--output", "json")
	var r rig.Reply
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 || r.Outcome.Value != 5.0 ||
		r.Program.Source != "persisted" {
		t.Errorf("as JSON: %v, %d, %s", err, code, out)
	}
	before := len(d.List("/v1/calls"))
	if _, errs, code := d.Client("call", "calculator", "add", "1", "1", "--stream", "--session",
		"none"); code != 3 || !strings.Contains(errs, "404") {
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
		rig.Until(t, "a question to the model",
			func() bool { return regexp.MustCompile(`: (forging|repairing)`).MatchString(errs.String()) })
		close(gate)
	}
	_ = c.Wait() // the exit code says it
	return out.String(), errs.String(), c.ProcessState.ExitCode()
}

// Calls of a session wait for each other, and say so. An interrupt ends the client.
func TestCallStreamQueues(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"calculator.slow": {rig.Held(rig.ProgAdd)}, "calculator.add": {rig.ProgAdd}})
	_, second := interrupted(t, rig.Start(t, m))
	m.Release() // the client may not have had the time to cancel the call
	second.ends(t)
	if !strings.Contains(second.errs.String(), "running a new program") {
		t.Errorf("the second call: %s", second.errs)
	}
}

// An interrupt cancels the call, and the next one of its session has its turn.
func TestCallStreamIsInterrupted(t *testing.T) {
	if testing.Short() {
		t.Skip("rests on the two seconds that an interrupted client has to cancel its call")
	}
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"calculator.slow": {rig.Held(rig.ProgAdd)}, "calculator.add": {rig.ProgAdd}})
	d := rig.Start(t, m)
	first, second := interrupted(t, d)
	second.ends(t)
	id := regexp.MustCompile(`started as (\S+)`).FindStringSubmatch(first.errs.String())
	if id == nil {
		t.Fatalf("the interrupted call has no id: %s", first.errs)
	}
	// its turn is over for a moment before it counts as ended
	rig.Until(t, "the end of the interrupted call as canceled", func() bool {
		return d.Get("/v1/calls/" + id[1])["outcome_error_type"] == "canceled"
	})
}

// A streamedCall is a client that follows its call.
type streamedCall struct {
	cmd   *exec.Cmd
	errs  *rig.Buffer
	ended chan error
}

// interrupted begins a call that waits for the model, and one behind it, and interrupts the first one's client.
func interrupted(t *testing.T, d *rig.Daemon) (first, second streamedCall) {
	t.Helper()
	s := d.Session("calculator")
	start := func(method, says string) streamedCall {
		t.Helper()
		c := streamedCall{exec.Command(os.Args[0], "call", "calculator", method, "2", "3", "--session", s, "--stream"),
			&rig.Buffer{}, make(chan error, 1)}
		c.cmd.Env, c.cmd.Stderr = append(rig.Environment(d.Dir), "RECURGENT_URL="+d.URL), c.errs
		if err := c.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		go func() { c.ended <- c.cmd.Wait() }()
		t.Cleanup(func() { _ = c.cmd.Process.Kill() })
		rig.Until(t, says, func() bool { return strings.Contains(c.errs.String(), says) })
		return c
	}
	first, second = start("slow", "forging"), start("add", "queued behind 1 call")
	if err := first.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	first.ends(t)
	if code := first.cmd.ProcessState.ExitCode(); code != 3 ||
		!strings.Contains(first.errs.String(), "the call was canceled") {
		t.Errorf("an interrupted call: %d, %s", code, first.errs)
	}
	return first, second
}

func (c *streamedCall) ends(t *testing.T) {
	t.Helper()
	select {
	case <-c.ended:
	case <-time.After(rig.Patience):
		t.Fatal("a client does not end")
	}
}
