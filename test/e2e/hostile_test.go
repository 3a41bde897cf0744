//go:build linux && !race

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/hostile"
)

// A race build has no limit of its data: the corpus would take the machine's memory.

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
	programs, err := hostile.Programs()
	if err != nil {
		t.Fatal(err)
	}
	answers := script{"hostile.control": {progControl}}
	for i, p := range programs {
		answers[fmt.Sprintf("hostile.p%d", i)] = []any{p.Source}
	}
	m := newModel(t, answers)
	d := newDaemon(t, m, "--call-timeout", "1s")
	d.do(http.StatusOK, http.MethodPatch, "/v1/policy", map[string]any{"max_generation_attempts": 1, "guardrail_recovery_budget": 0,
		"execution_repair_budget": 0, "outcome_repair_budget": 0, "repair_enabled": false})
	warm := d.session("hostile")
	d.call(warm, "control", 0)
	before := d.footprint()
	files := strayFiles(t)

	queue := make(chan int)
	var work sync.WaitGroup
	for range 4 {
		session := d.session("hostile")
		work.Go(func() {
			for i := range queue {
				d.hostileCall(session, fmt.Sprintf("p%d", i), programs[i])
			}
		})
	}
	for i := range programs {
		queue <- i
	}
	close(queue)
	work.Wait()

	d.wantBaseline(before)
	if now := strayFiles(t); !slices.Equal(files, now) {
		t.Errorf("files appeared: before %v, now %v", files, now)
	}
	d.wantNoSecret()
}

// hostileCall makes one hostile call and a control call after it, from any goroutine.
func (d *proc) hostileCall(session, method string, p hostile.Program) {
	end, value, took := d.endOf(session, method)
	if !permits(p, end, value) {
		d.t.Errorf("%s ended in %s %.300s, may end in %s", p.Name, end, value, strings.Join(p.Allow, ", "))
	}
	if bound := 60 * time.Second; took > bound {
		d.t.Errorf("%s took %s", p.Name, took)
	}
	if end, value, _ := d.endOf(session, "control"); value != `[["a","b","c"],"\"aGVsbG8=\"",null,"aGVsbG8=",true,true,7]` {
		d.t.Errorf("after %s the control call ended in %s %.300s", p.Name, end, value)
	}
}

// permits adds the words that the way of a call has for a program that the gate refused.
func permits(p hostile.Program, end, value string) bool {
	if end == "guardrail_retry_exhausted" {
		end = "tool_registry_violation"
	}
	return p.Permits(end, value)
}

func (d *proc) endOf(session, method string) (end, value string, took time.Duration) {
	began := time.Now()
	r, err := d.try(context.Background(), http.MethodPost, "/v1/sessions/"+session+"/calls", []byte(`{"method":"`+method+`","args":[7]}`), nil)
	took = time.Since(began)
	if err != nil {
		return "no answer: " + err.Error(), "", took
	}
	if r.Status != http.StatusOK {
		return fmt.Sprintf("status %d: %.300s", r.Status, r.Body), "", took
	}
	if bytes.Contains(r.Body, []byte(secretKey)) {
		d.t.Errorf("%s: the reply holds the key", method)
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
		return "no JSON: " + err.Error(), "", took
	}
	switch o := got.Outcome; {
	case o.OK:
		return "value", string(o.Value), took
	case o.Authored:
		return "authored", "", took
	default:
		return o.ErrorType, o.Message, took
	}
}

// A footprint is what a daemon holds of the machine.
type footprint struct {
	pid, files, goroutines, runners int
}

func (d *proc) footprint() footprint {
	d.t.Helper()
	f := footprint{pid: d.cmd.Process.Pid}
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", f.pid))
	if err != nil {
		d.t.Fatal(err)
	}
	f.files = len(fds)
	metrics := string(d.send(http.MethodGet, "/metrics", nil, nil).Body)
	if found := regexp.MustCompile(`(?m)^go_goroutines (\d+)`).FindStringSubmatch(metrics); found != nil {
		f.goroutines, _ = strconv.Atoi(found[1])
	}
	f.runners = len(runnersOf(f.pid))
	return f
}

// runnersOf lists the children of a process.
func runnersOf(pid int) []int {
	var out []int
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, t := range tasks {
		text, _ := os.ReadFile(t)
		for _, field := range strings.Fields(string(text)) {
			n, _ := strconv.Atoi(field)
			out = append(out, n)
		}
	}
	return out
}

// wantBaseline waits until the daemon holds no more than it may: runners beyond the pool's bounds are on their way out.
func (d *proc) wantBaseline(before footprint) {
	d.t.Helper()
	const idle = 2 + 8 // blank and warm
	var now footprint
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		now = d.footprint()
		more := max(0, now.runners-before.runners)
		if now.pid == before.pid && now.runners <= idle && now.files <= before.files+4*more+8 && now.goroutines <= before.goroutines+2*more+16 {
			return
		}
	}
	d.t.Errorf("before %+v, now %+v", before, now)
}

// wantNoSecret looks for the key in all that the daemon has written and said.
func (d *proc) wantNoSecret() {
	d.t.Helper()
	if strings.Contains(d.out.String(), secretKey) {
		d.t.Error("the log holds the key")
	}
	err := filepath.WalkDir(d.dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil
		}
		data, err := os.ReadFile(path)
		if err == nil && bytes.Contains(data, []byte(secretKey)) {
			d.t.Errorf("%s holds the key", path)
		}
		return nil
	})
	if err != nil {
		d.t.Error(err)
	}
}

func strayFiles(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob("/tmp/recurgentd-*")
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// P10: a daemon that is killed leaves no runner behind, not even one in the middle of a loop.
func TestKilledDaemonLeavesNoRunner(t *testing.T) {
	m := newModel(t, script{"hostile.loop": {program("\tfor {\n\t}")}, "hostile.control": {progControl}})
	d := newDaemon(t, m)
	s := d.session("hostile")
	d.call(s, "control", 0)
	go d.try(context.Background(), http.MethodPost, "/v1/sessions/"+s+"/calls", []byte(`{"method":"loop","args":[]}`), nil)
	until(t, "a looping runner", func() bool { return len(m.requests()) == 2 && len(runnersOf(d.cmd.Process.Pid)) >= 3 })
	runners := runnersOf(d.cmd.Process.Pid)
	d.kill(syscall.SIGKILL)
	until(t, "the end of the runners", func() bool {
		for _, pid := range runners {
			if syscall.Kill(pid, 0) == nil {
				return false
			}
		}
		return true
	})
}
