package worker

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	landsys "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/landlock"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/serve"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// A compiler is a trusted program that reads a hostile text. It runs as a child of this process, which reads nothing hostile itself: whatever
// the compiler could be talked into, it has two directories, no network, and little time.

// maxTools bounds the description of the tools, which comes from the daemon.
const maxTools = 1 << 20

// runTools runs the tools that the daemon asks for, and reports how they ended.
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
	runtime.LockOSThread() // children have what this thread has, and it stays
	done := wire.ToolsDone{}
	if err := confineTools(t); err != nil {
		done.Failed = "confinement: " + err.Error()
	} else {
		done = steps(t)
	}
	var wr wire.Builder
	if err := done.Put(&wr); err != nil {
		return err
	}
	_, err = out.Write(wr.Finish())
	return err
}

func steps(t *wire.Tools) wire.ToolsDone {
	for _, s := range t.Steps {
		var said bytes.Buffer
		cmd := exec.Cmd{Path: s.Tool, Args: append([]string{s.Tool}, s.Args...), Env: []string{fmt.Sprintf("GOMEMLIMIT=%d", t.Memory*3/4), "GOMAXPROCS=1"},
			Stdout: &bounded{&said}, SysProcAttr: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}}
		cmd.Stderr = cmd.Stdout
		if err := cmd.Run(); err != nil {
			return wire.ToolsDone{Said: said.Bytes(), Failed: fmt.Sprintf("%s: %v", s.Tool, err)}
		}
	}
	return wire.ToolsDone{}
}

// A bounded buffer keeps the first 16 KiB.
type bounded struct{ to *bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	b.to.Write(p[:min(len(p), max(0, 16<<10-b.to.Len()))])
	return len(p), nil
}

// confineTools confines this thread, and so the children that it starts, to the directories of the tools. All of it must hold.
func confineTools(t *wire.Tools) error {
	if err := unix.Fchdir(wire.ToolsDirFD); err != nil {
		return err
	}
	if err := unix.Setpriority(unix.PRIO_PROCESS, 0, 19); err != nil {
		return err
	}
	for resource, value := range map[int]int64{unix.RLIMIT_DATA: t.Memory, unix.RLIMIT_CPU: t.CPU, unix.RLIMIT_FSIZE: t.File, unix.RLIMIT_NOFILE: 64, unix.RLIMIT_CORE: 0} {
		if wire.RaceBuild && resource == unix.RLIMIT_DATA {
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

// landlockTools leaves the directories of the tools and /dev/null. Where the kernel has no landlock, the sandbox is at level reduced: then the filter of
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
	allow(wire.ToolsDirFD, read|landsys.AccessFSWriteFile|landsys.AccessFSMakeReg|landsys.AccessFSRemoveFile|landsys.AccessFSTruncate)
	for i := range t.Reads {
		allow(wire.ToolsReadFD+i, read)
	}
	for path, access := range map[string]uint64{t.Exec: read | landsys.AccessFSExecute, os.DevNull: landsys.AccessFSReadFile | landsys.AccessFSWriteFile} {
		fd, openErr := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if openErr != nil {
			return openErr
		}
		if path == os.DevNull {
			access &^= landsys.AccessFSReadDir
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
