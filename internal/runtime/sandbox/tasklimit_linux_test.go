package sandbox

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/threads"
)

// taskLimit is the environment variable that turns the test's process into a daemon that may have that many more tasks.
const taskLimit = "SANDBOX_TASK_LIMIT"

// TestTaskLimit runs a daemon with a real task limit and programs that create threads by raw system calls until the
// kernel refuses, and hold them. The daemon survives and answers others meanwhile. It runs in a separate process with
// its own user, so the limit affects nobody else.
func TestTaskLimit(t *testing.T) {
	if testing.Short() {
		t.Skip("rests on the load of the machine: its tasks, memory and processor")
	}
	const more = 300
	for _, kind := range []string{"user", "group"} {
		cmd := exec.Command("/proc/self/exe", "-test.run", "^TestDaemonAtTaskLimit$", "-test.v", "-test.timeout", "2m")
		cmd.Dir, cmd.Env = "/", []string{"TMPDIR=/tmp", "PATH=/usr/bin:/bin", taskLimit + "=" + kind}
		if os.Geteuid() == 0 && kind == "user" {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 64077, Gid: 64077}}
		}
		if kind == "group" {
			group, ok := limitedGroup(t, more)
			if !ok {
				t.Log("no control group of processes can be made here: the limit of the user stands for both")
				continue
			}
			cmd.Env = append(cmd.Env, "SANDBOX_GROUP="+group)
		}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("the daemon ended with %v under a limit of its %s\n%s", err, kind, out)
		} else {
			t.Logf("%s", out)
		}
	}
}

// limitedGroup creates a control group of at most that many tasks. ok is false if that is not possible.
func limitedGroup(t *testing.T, most int) (dir string, ok bool) {
	for _, root := range []string{"/sys/fs/cgroup/pids", "/sys/fs/cgroup"} {
		dir = fmt.Sprintf("%s/recurgentd-test-%d", root, os.Getpid())
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		t.Cleanup(func() { syscall.Rmdir(dir) })
		if os.WriteFile(dir+"/pids.max", []byte(strconv.Itoa(most)), 0o644) == nil {
			return dir, true
		}
	}
	return "", false
}

// TestDaemonAtTaskLimit is the daemon of TestTaskLimit.
func TestDaemonAtTaskLimit(t *testing.T) {
	switch os.Getenv(taskLimit) {
	case "":
		return
	case "user":
		most := uint64(tasksOf(uint32(os.Geteuid())) + 300)
		if err := unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			t.Fatal(err)
		}
	case "group":
		if err := os.WriteFile(os.Getenv("SANDBOX_GROUP")+"/cgroup.procs", []byte("0"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	room, limit := taskRoom()
	t.Log(room, limit)
	if limit == "" || room > 300 {
		t.Fatalf("room for %d tasks: %q", room, limit)
	}
	p := nativePool(t, func(o *Options) { o.Blank, o.Runners, o.Waiting = 0, 8, 64 })
	if p.most > 20 {
		t.Errorf("%d runners", p.most)
	}
	full, release := make(chan struct{}, 2), make(chan struct{})
	var hostile sync.WaitGroup
	for i := range 2 {
		hostile.Go(func() {
			req := request("fill")
			req.Owner = agent.Owner{Name: fmt.Sprint("hostile", i)}
			got := p.Run(t.Context(), req, &fakeHost{onHistory: func(context.Context) {
				full <- struct{}{}
				<-release
			}})
			t.Log(said(got))
		})
	}
	<-full
	<-full
	threads.Reserve(daemonThreads() / 2) // as many things block a thread in the daemon at once
	var others sync.WaitGroup
	for i := range 12 {
		others.Go(func() {
			req := request("echo", i)
			req.Owner, req.Program.Checksum = agent.Owner{Name: fmt.Sprint("owner", i%3)}, fmt.Sprint("sha256:", i)
			if got := said(p.Run(t.Context(), req, &fakeHost{})); got != fmt.Sprintf("value [%d]", i) {
				t.Errorf("call %d beside them: %s", i, got)
			}
		})
	}
	others.Wait()
	close(release)
	hostile.Wait()
	if got := said(p.Run(t.Context(), request("echo", 7), &fakeHost{})); got != "value [7]" {
		t.Errorf("afterwards: %s", got)
	}
}
