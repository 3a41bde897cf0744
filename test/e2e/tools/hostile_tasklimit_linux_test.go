package tools

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// Environment variables for child processes of the test. The daemon's child reads the control group to join before it
// starts, or how many more tasks than now its user, who is not root, may have. The third is for a helper of that user:
// the process to limit.
const (
	taskGroup   = "HOSTILE_TASK_GROUP"
	userTasks   = "HOSTILE_USER_TASKS"
	limitOf     = "HOSTILE_LIMIT_OF"
	taskUser    = 64078
	noMoreTasks = 1
)

func joinTaskGroup() {
	var err error
	if dir := os.Getenv(taskGroup); dir != "" {
		err = os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte("0"),
			0o644)
	}
	if more := os.Getenv(userTasks); more != "" {
		err = limitUser(more)
	}
	if pid := os.Getenv(limitOf); pid != "" {
		if err = changeLimit(pid); err == nil {
			os.Exit(0)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// changeLimit takes all remaining tasks from the process, or restores its first limit.
func changeLimit(process string) error {
	pid, err := strconv.Atoi(process)
	if err != nil {
		return err
	}
	var limit unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NPROC, nil, &limit); err != nil {
		return err
	}
	if limit.Cur == noMoreTasks {
		limit.Cur = limit.Max
	} else {
		limit.Cur = noMoreTasks
	}
	return unix.Prlimit(pid, unix.RLIMIT_NPROC, &limit, nil)
}

// limitUser limits the tasks of the daemon's user. Root has no such limit, so the process gives its directory to
// another user, becomes that user, and executes itself again, since a process that has changed its user differs from
// one that a user starts.
func limitUser(more string) error {
	n, err := strconv.Atoi(more)
	if err != nil {
		return err
	}
	uid, home := os.Geteuid(), os.Getenv("HOME")
	if uid == 0 {
		uid = taskUser
		if err := os.Chmod(filepath.Dir(home),
			0o711); err != nil { // the user must be able to enter directories below it
			return err
		}
		if err := os.Chown(home, uid, uid); err != nil {
			return err
		}
	}
	most := uint64(tasksOfUser(uid) + n)
	if err := unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: most, Max: most}); err != nil {
		return err
	}
	if os.Geteuid() == 0 {
		if err := syscall.Setgid(uid); err != nil {
			return err
		}
		if err := syscall.Setuid(uid); err != nil {
			return err
		}
	}
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, userTasks+"=") })
	return syscall.Exec("/proc/self/exe", os.Args, env)
}

// tasksOfUser counts the threads of a user's processes.
func tasksOfUser(uid int) (n int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*/task/*")
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err == nil && int(info.Sys().(*syscall.Stat_t).Uid) == uid {
			n++
		}
	}
	return n
}

// newTaskGroup makes a control group of at most so many tasks. ok is false where that cannot be done.
func newTaskGroup(t *testing.T, most int) (dir string, ok bool) {
	for _, root := range []string{"/sys/fs/cgroup/pids", "/sys/fs/cgroup"} {
		dir = fmt.Sprintf("%s/recurgentd-hostile-%d", root, os.Getpid())
		if os.Mkdir(dir, 0o755) != nil {
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
	return os.WriteFile(filepath.Join(dir, "pids.max"), []byte(strconv.Itoa(most)),
		0o644)
}

// A daemon with a limit of its threads and processes, as compose's pids_limit and systemd's TasksMax set one, answers
// more calls at once than it has room for runners, and says what its room is. When others take that room it says so of
// the calls that would need it, and lives.
func TestDaemonLivesUnderATaskLimit(t *testing.T) {
	if testing.Short() {
		t.Skip("rests on the load of the machine: its tasks, memory and processor")
	}
	t.Parallel()
	const most = 200
	t.Run("of a control group", func(t *testing.T) {
		t.Parallel()
		dir, ok := newTaskGroup(t, most)
		if !ok {
			t.Log("no control group of processes can be made here; the limit of a user stands for both")
			return
		}
		livesUnderATaskLimit(t, []string{taskGroup + "=" + dir}, func(_ *rig.Daemon, full bool) error {
			if !full {
				return setTasks(dir, most)
			}
			now, err := os.ReadFile(filepath.Join(dir, "pids.current"))
			if err != nil {
				return err
			}
			current, err := strconv.Atoi(strings.TrimSpace(string(now)))
			if err != nil || current > most {
				return fmt.Errorf("%s tasks, %w", now, err)
			}
			return setTasks(dir, current)
		})
	})
	t.Run("of a user", func(t *testing.T) {
		t.Parallel()
		// Another user than the tests' cannot use what they share.
		env := []string{userTasks + "=" + strconv.Itoa(most), rig.OwnCompiler, rig.OwnGoCache}
		livesUnderATaskLimit(t, env, func(d *rig.Daemon, _ bool) error {
			// Not every system lets root change the limits of another user's process; that user can.
			helper := exec.Command("/proc/self/exe")
			helper.Dir, helper.Env = "/", []string{limitOf + "=" + strconv.Itoa(d.Cmd.Process.Pid)}
			if os.Geteuid() == 0 {
				helper.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: taskUser, Gid: taskUser}}
			}
			out, err := helper.CombinedOutput()
			if err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		})
	})
}

// livesUnderATaskLimit tests a daemon with the limit that env sets. take uses up the rest of the limit, or restores it.
func livesUnderATaskLimit(t *testing.T, env []string, take func(d *rig.Daemon, full bool) error) {
	const methods = 24
	script := rig.Script{}
	for _, name := range []string{"first", "last", "late"} {
		script["f."+name] = []any{rig.Program("\treturn \"" + name + "\", nil")}
	}
	for i := range methods {
		script[fmt.Sprintf("f.m%d",
			i)] = []any{rig.Program(fmt.Sprintf(
			"\tn := 0\n\tfor i := range 200_000 {\n\t\tn += i %% 7\n\t}\n\tif n > 0 {\n\t\treturn %d, nil\n\t}\n\treturn nil, nil", i))}
	}
	d := rig.StartIn(t, rig.NewModel(t, script), env, "--runners", "32")
	tasks, _ := d.Get("/v1/version")["sandbox"].(map[string]any)["layers"].(map[string]any)["tasks"].(string)
	if !strings.HasPrefix(tasks, "on (at most ") {
		t.Errorf("the daemon says of its tasks: %s", tasks)
	}
	d.HTTP.Timeout = 10 * rig.Patience // the packages that programs import may have to be compiled
	d.WantValue(d.Call(d.Session("f"), "first"), "first", "generated")
	d.HTTP.Timeout = rig.Patience
	for range 2 { // forged, then warm
		var all sync.WaitGroup
		for i := range methods {
			all.Go(func() { d.WantValue(d.Call(d.Session("f"), fmt.Sprintf("m%d", i)), float64(i), "") })
		}
		all.Wait()
	}

	if err := take(d, true); err != nil {
		t.Fatal(err)
	}
	o := d.Call(d.Session("f"), "last").Outcome
	if !o.OK && o.ErrorType != "resource_exhausted" {
		t.Errorf("without room: %+v", o)
	}
	d.Do(http.StatusOK, http.MethodGet, "/readyz", nil)
	if err := take(d, false); err != nil {
		t.Fatal(err)
	}
	d.WantValue(d.Call(d.Session("f"), "late"), "late", "")
}
