//go:build linux && !race

package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/hostile"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

const progControl = `package tool

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"sort"
	"strings"
	"unicode"

	"recurgent"
)

func Run(call *recurgent.Call) (any, error) {
	words := strings.Fields("b a c")
	sort.Strings(words)
	raw, err := json.Marshal([]byte("hello"))
	return []any{words, string(raw), err, base64.StdEncoding.EncodeToString([]byte("hello")), errors.Is(io.EOF, io.EOF), unicode.IsDigit('1'), call.Arg(0, "n")}, nil
}
`

// TestHostilePrograms runs the corpus through the real daemon over HTTP (promises P1, P2, P3, P4, P6, P8 of
// docs/security.md): every call ends in time in one of its allowed ends, a control call right after it is right, and
// at the end the daemon is the same process with nothing more open than before.
func TestHostilePrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("rests on deadlines of real programs")
	}
	programs, err := hostile.Programs()
	if err != nil {
		t.Fatal(err)
	}
	answers := rig.Script{"hostile.control": {progControl}}
	for i, p := range programs {
		answers[fmt.Sprintf("hostile.p%d", i)] = []any{p.Source}
	}
	m := rig.NewModel(t, answers)
	d := rig.Start(t, m, "--runner-memory", "64MiB")
	d.Do(http.StatusOK, http.MethodPatch, "/v1/policy", map[string]any{"max_generation_attempts": 1,
		"guardrail_recovery_budget": 0,
		"execution_repair_budget":   0, "outcome_repair_budget": 0, "repair_enabled": false})
	warm := d.Session("hostile")
	d.Call(warm, "control", 0)
	before := footprintOf(d)
	files := strayFiles(t)

	queue := make(chan int)
	var work sync.WaitGroup
	for range 4 {
		session := d.Session("hostile")
		work.Go(func() {
			for i := range queue {
				hostileCall(d, session, fmt.Sprintf("p%d", i), programs[i])
			}
		})
	}
	for i := range programs {
		queue <- i
	}
	close(queue)
	work.Wait()

	wantBaseline(d, before, 64<<20)
	if now := strayFiles(t); !slices.Equal(files, now) {
		t.Errorf("files appeared: before %v, now %v", files, now)
	}
	wantNoSecret(d)
}

// hostileCall makes one hostile call and a control call after it, from any goroutine.
func hostileCall(d *rig.Daemon, session, method string, p hostile.Program) {
	timeout := 30_000
	if slices.Contains(p.Allow, "timeout") {
		timeout = 1000
	}
	end, value := endOf(d, session, method, timeout)
	if !permits(p, end, value) {
		d.T.Errorf("%s ended in %s %.300s, may end in %s", p.Name, end, value, strings.Join(p.Allow, ", "))
	}
	if end, value := endOf(d, session, "control",
		30_000); value != `[["a","b","c"],"\"aGVsbG8=\"",null,"aGVsbG8=",true,true,7]` {
		d.T.Errorf("after %s the control call ended in %s %.300s", p.Name, end, value)
	}
}

// permits adds the error types of a call whose program the gate refused, and the ends of those that the gate corrects.
func permits(p hostile.Program, end, value string) bool {
	if end == "guardrail_retry_exhausted" {
		end = "tool_registry_violation"
	}
	corrected := end
	if end == "value" {
		corrected = value
	}
	return p.Permits(end, value) || slices.Contains(p.Allow, "corrected="+corrected)
}

// endOf makes a call, of so many milliseconds at most, and returns how it ended. A call that takes longer than the
// rig's patience is "no answer".
func endOf(d *rig.Daemon, session, method string, timeout int) (end, value string) {
	r, err := d.Try(context.Background(), http.MethodPost, "/v1/sessions/"+session+"/calls",
		fmt.Appendf(nil, `{"method":%q,"args":[7],"timeout_ms":%d}`, method, timeout), nil)
	if err != nil {
		return "no answer: " + err.Error(), ""
	}
	if r.Status != http.StatusOK {
		return fmt.Sprintf("status %d: %.300s", r.Status, r.Body), ""
	}
	if bytes.Contains(r.Body, []byte(rig.SecretKey)) {
		d.T.Errorf("%s: the reply holds the key", method)
	}
	var got struct {
		Outcome struct {
			OK        bool            `json:"ok"`
			Value     json.RawMessage `json:"value"`
			ErrorType string          `json:"error_type"`
			Message   string          `json:"error_message"`
			Authored  bool            `json:"authored"`
		} `json:"outcome"`
	}
	if err := json.Unmarshal(r.Body, &got); err != nil {
		return "no JSON: " + err.Error(), ""
	}
	switch o := got.Outcome; {
	case o.OK:
		return "value", string(o.Value)
	case o.Authored:
		return "authored", ""
	default:
		return o.ErrorType, o.Message
	}
}

// P10: a daemon that is killed leaves no runner behind, not even one in the middle of a loop.
func TestKilledDaemonLeavesNoRunner(t *testing.T) {
	if testing.Short() {
		t.Skip("rests on the moment of a kill")
	}
	m := rig.NewModel(t, rig.Script{"hostile.loop": {rig.Program("\tfor {\n\t}")}, "hostile.control": {progControl}})
	d := rig.Start(t, m)
	s := d.Session("hostile")
	d.Call(s, "control", 0)
	go d.Try(context.Background(), http.MethodPost, "/v1/sessions/"+s+"/calls", []byte(`{"method":"loop","args":[]}`),
		nil)
	rig.Until(t, "a looping runner", func() bool {
		running := d.List("/v1/calls?status=running")
		return len(running) == 1 && running[0]["stage"] == "call.running" &&
			d.Metric(`recurgent_runners{state="busy"}`) == 1
	})
	runners := runnersOf(d.Cmd.Process.Pid)
	d.Stop(syscall.SIGKILL)
	rig.Until(t, "the end of the runners", func() bool {
		for _, pid := range runners {
			if syscall.Kill(pid, 0) == nil {
				return false
			}
		}
		return true
	})
}
