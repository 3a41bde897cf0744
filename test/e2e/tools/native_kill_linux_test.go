package tools

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// A compiled program whose process is killed in the middle of a call costs the call nothing.
func TestKilledInTheMiddle(t *testing.T) {
	if testing.Short() {
		t.Skip("rests on the moment of a kill")
	}
	t.Parallel()
	d := start(t, program("hangs at 99"))
	s := d.Session("worker")
	callUntil(d, s, "native")
	before := computed(d.Cmd.Process.Pid)
	replies := make(chan rig.Response, 1)
	go func() {
		replies <- d.Send(http.MethodPost, "/v1/sessions/"+s+"/calls", []byte(`{"method": "double", "args": [99]}`), map[string]string{"Content-Type": "application/json"})
	}()
	rig.Until(t, "compiled program computes and is killed", func() bool { return killSpinning(d.Cmd.Process.Pid, before) })
	var r rig.Reply
	(<-replies).Into(t, &r)
	wantTier(d, r, 198, "engine")
	if got, _ := state(d); got != "off" {
		t.Errorf("the program is %s", got)
	}
}

// computed is the processor time of each of the daemon's compiled programs, in hundredths of a second.
func computed(daemon int) map[int]int {
	all := map[int]int{}
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return all
	}
	for _, p := range processes {
		pid, err := strconv.Atoi(p.Name())
		if err != nil {
			continue
		}
		args, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // of a process that ended there is none
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		_, after, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(after)
		if !strings.HasPrefix(string(args), "recurgent-native\x00") || len(fields) < 12 || fields[1] != strconv.Itoa(daemon) {
			continue
		}
		if ticks, err := strconv.Atoi(fields[11]); err == nil {
			all[pid] = ticks
		}
	}
	return all
}

// killSpinning kills a compiled program that has computed for longer since before than a start and a call take, where there is one.
func killSpinning(daemon int, before map[int]int) bool {
	for pid, ticks := range computed(daemon) {
		if ticks-before[pid] >= 30 {
			return syscall.Kill(pid, syscall.SIGKILL) == nil
		}
	}
	return false
}
