package hostile

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// taskGroup is the variable that names the control group which the daemon joins before it starts.
const taskGroup = "HOSTILE_TASK_GROUP"

func joinTaskGroup() {
	if dir := os.Getenv(taskGroup); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte("0"), 0o644); err != nil { //nolint:gosec // a file of the kernel
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// newTaskGroup makes a control group of at most so many tasks. ok is false where that cannot be done.
func newTaskGroup(t *testing.T, most int) (dir string, ok bool) {
	for _, root := range []string{"/sys/fs/cgroup/pids", "/sys/fs/cgroup"} {
		dir = fmt.Sprintf("%s/recurgentd-hostile-%d", root, os.Getpid())
		if os.Mkdir(dir, 0o755) != nil { //nolint:gosec // a directory of the kernel
			continue
		}
		t.Cleanup(func() { _ = syscall.Rmdir(dir) }) // the daemon has left it
		if setTasks(dir, most) == nil {
			return dir, true
		}
	}
	return "", false
}

func setTasks(dir string, most int) error {
	return os.WriteFile(filepath.Join(dir, "pids.max"), []byte(strconv.Itoa(most)), 0o644) //nolint:gosec // a file of the kernel
}

// A daemon with a limit of its threads and processes, as compose's pids_limit and systemd's TasksMax set one, answers more calls at once than
// it has room for runners, and says what its room is. When others take that room it says so of the calls that would need it, and lives.
func TestDaemonLivesUnderATaskLimit(t *testing.T) {
	t.Parallel()
	const most, methods = 200, 24
	dir, ok := newTaskGroup(t, most)
	if !ok {
		t.Log("no control group of processes can be made here; TestTaskLimit of the sandbox has the limit of a user")
		return
	}
	script := rig.Script{"f.last": {rig.Program("\treturn \"last\", nil")}, "f.late": {rig.Program("\treturn \"late\", nil")}}
	for i := range methods {
		script[fmt.Sprintf("f.m%d", i)] = []any{rig.Program(fmt.Sprintf("\tn := 0\n\tfor i := range 200_000 {\n\t\tn += i %% 7\n\t}\n\tif n > 0 {\n\t\treturn %d, nil\n\t}\n\treturn nil, nil", i))}
	}
	d := rig.StartIn(t, rig.NewModel(t, script), []string{taskGroup + "=" + dir}, "--runners", "32")
	tasks, _ := d.Get("/v1/version")["sandbox"].(map[string]any)["layers"].(map[string]any)["tasks"].(string)
	if !strings.HasPrefix(tasks, "on (at most ") {
		t.Errorf("the daemon says of its tasks: %s", tasks)
	}
	for range 2 { // forged, then warm
		var all sync.WaitGroup
		for i := range methods {
			all.Go(func() { d.WantValue(d.Call(d.Session("f"), fmt.Sprintf("m%d", i)), float64(i), "") })
		}
		all.Wait()
	}

	now, err := os.ReadFile(filepath.Join(dir, "pids.current"))
	if err != nil {
		t.Fatal(err)
	}
	current, err := strconv.Atoi(strings.TrimSpace(string(now)))
	if err != nil || current > most || setTasks(dir, current) != nil {
		t.Fatalf("%s tasks, %v", now, err)
	}
	o := d.Call(d.Session("f"), "last").Outcome
	if !o.OK && o.ErrorType != "resource_exhausted" {
		t.Errorf("without room: %+v", o)
	}
	d.Do(http.StatusOK, http.MethodGet, "/readyz", nil)
	if err := setTasks(dir, most); err != nil {
		t.Fatal(err)
	}
	d.WantValue(d.Call(d.Session("f"), "late"), "late", "")
}
