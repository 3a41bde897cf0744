//go:build linux && !race

package tools

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// A footprint is what a daemon holds of the machine. runners are its child processes, bytes the memory that these do
// not share, and idle the idle runners that it counts.
type footprint struct {
	pid, files, goroutines, runners, bytes, idle int
}

func footprintOf(d *rig.Daemon) footprint {
	d.T.Helper()
	f := footprint{pid: d.Cmd.Process.Pid}
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", f.pid))
	if err != nil {
		d.T.Fatal(err)
	}
	f.files = len(fds)
	metrics := string(d.Send(http.MethodGet, "/metrics", nil, nil).Body)
	if found := regexp.MustCompile(`(?m)^go_goroutines (\d+)`).FindStringSubmatch(metrics); found != nil {
		f.goroutines, _ = strconv.Atoi(found[1])
	}
	children := runnersOf(f.pid)
	for _, pid := range children {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
		var size, resident, shared int
		_, _ = fmt.Sscan(string(text), &size, &resident, &shared) // none of a process that has ended
		f.bytes += (resident - shared) * os.Getpagesize()
	}
	f.runners = len(children)
	f.idle = int(d.Metric(`recurgent_runners{state="idle"}`) + d.Metric(`recurgent_runners{state="warm"}`))
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

// wantBaseline waits until the daemon holds no more than it may: all its children are idle runners, these fit
// --runner-memory, and each takes a few files and goroutines.
func wantBaseline(d *rig.Daemon, before footprint, most int) {
	d.T.Helper()
	// Files: idle connections, also to the model, and a journal segment. A leak would be one file a program.
	const spare = 16
	var now footprint
	defer func() {
		d.T.Logf("before %+v, at last %+v", before, now)
	}()
	rig.Until(d.T, "the daemon to hold no more than before", func() bool {
		now = footprintOf(d)
		more := max(0, now.runners-before.runners)
		return now.pid == before.pid && now.runners == now.idle && now.bytes <= most &&
			now.files <= before.files+5*more+spare &&
			now.goroutines <= before.goroutines+2*more+16
	})
}

// wantNoSecret looks for the key in all that the daemon has written and said.
func wantNoSecret(d *rig.Daemon) {
	d.T.Helper()
	if strings.Contains(d.Output.String(), rig.SecretKey) {
		d.T.Error("the log holds the key")
	}
	err := filepath.WalkDir(d.Dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil
		}
		data, err := os.ReadFile(path)
		if err == nil && bytes.Contains(data, []byte(rig.SecretKey)) {
			d.T.Errorf("%s holds the key", path)
		}
		return nil
	})
	if err != nil {
		d.T.Error(err)
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
