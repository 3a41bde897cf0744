package worker

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"syscall"

	landsys "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/landlock"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/serve"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// A compiler is a trusted program that reads a hostile text. This process reads nothing hostile, confines itself and becomes the compiler: whatever
// that could be talked into, it has two directories to read and one file to write, no network, no other process, and little time.

// maxTools bounds the description of the tool, which comes from the daemon.
const maxTools = 1 << 20

// runTools becomes the tool that the daemon asks for, or reports why it cannot.
func runTools() error {
	in, out := serve.Pipe()
	kind, payload, err := in.Next(maxTools)
	if err != nil {
		return err
	}
	t := &wire.Tools{}
	if kind != wire.KindTools || json.Unmarshal(payload, t) != nil {
		return wire.ErrFrame
	}
	runtime.LockOSThread() // what it executes has what this thread has
	if err = confineTools(t); err != nil {
		err = fmt.Errorf("confinement: %w", err)
	} else {
		err = syscall.Exec(t.Step.Tool, append([]string{t.Step.Tool}, t.Step.Args...), []string{fmt.Sprintf("GOMEMLIMIT=%d", t.Memory*3/4), "GOMAXPROCS=1"})
	}
	done := wire.ToolsDone{Failed: err.Error()}
	var wr wire.Builder
	if err := done.Put(&wr); err != nil {
		return err
	}
	_, err = out.Write(wr.Finish())
	return err
}

// confineTools confines this thread, and so what it executes, to the directories of the tools and one file. All of it must hold.
func confineTools(t *wire.Tools) error {
	if err := unix.Fchdir(wire.ToolsDirFD); err != nil {
		return err
	}
	if err := unix.Setpriority(unix.PRIO_PROCESS, 0, 19); err != nil {
		return err
	}
	for fd := wire.AnswerFD; fd < wire.ToolsReadFD+t.Reads; fd++ {
		syscall.CloseOnExec(fd)
	}
	for resource, value := range map[int]int64{unix.RLIMIT_NPROC: t.Tasks, unix.RLIMIT_DATA: t.Memory, unix.RLIMIT_CPU: t.CPU, unix.RLIMIT_FSIZE: t.File, unix.RLIMIT_NOFILE: 64, unix.RLIMIT_CORE: 0} {
		if wire.RaceBuild && resource == unix.RLIMIT_DATA || resource == unix.RLIMIT_NPROC && value == 0 {
			continue
		}
		if err := syscall.Setrlimit(resource, &syscall.Rlimit{Cur: uint64(value), Max: uint64(value)}); err != nil {
			return fmt.Errorf("limit %d: %w", resource, err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if err := landlockTools(t); err != nil {
		return fmt.Errorf("landlock: %w", err)
	}
	if state := serve.LoadFilter(&wire.Confinement{Filter: t.Filter}, 0); state != "on" {
		return fmt.Errorf("seccomp is %s", state)
	}
	return nil
}

// landlockTools leaves the directories of the tools, the file that the tool writes, and /dev/null. Where the kernel has no landlock, the sandbox is at level reduced: then the filter of
// system calls, the user and the namespaces remain, as for runners.
func landlockTools(t *wire.Tools) error {
	abi, off := landlock.Supported()
	if off != "" {
		return nil
	}
	attr := landlock.Everything(abi)
	rules, err := landsys.LandlockCreateRuleset(&attr, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(rules)
	const read = landsys.AccessFSReadFile | landsys.AccessFSReadDir
	allow := func(fd int, access uint64) {
		if err == nil {
			err = landsys.LandlockAddPathBeneathRule(rules, &landsys.PathBeneathAttr{AllowedAccess: access & attr.HandledAccessFS, ParentFd: fd}, 0)
		}
	}
	allow(wire.ToolsDirFD, read)
	for i := range t.Reads {
		allow(wire.ToolsReadFD+i, read)
	}
	const write = landsys.AccessFSReadFile | landsys.AccessFSWriteFile | landsys.AccessFSTruncate
	for path, access := range map[string]uint64{t.Exec: read | landsys.AccessFSExecute, t.Step.Writes: write, os.DevNull: write &^ landsys.AccessFSTruncate} {
		fd, openErr := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
		if openErr != nil {
			return openErr
		}
		allow(fd, access)
		unix.Close(fd)
	}
	if err != nil {
		return err
	}
	if _, _, errno := syscall.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(rules), 0, 0); errno != 0 {
		return errno
	}
	return nil
}
