package support

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"syscall"
	"unsafe"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/serve"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/threads"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// System calls on amd64, and their arguments.
const (
	sysSeccomp         = 317
	setModeFilter      = 1
	flagTSync          = 1
	sysCreateRuleset   = 444
	sysRestrictSelf    = 446
	prSetNoNewPrivs    = 38
	rulesetSize        = 24
	noConfinementGiven = "off (the daemon gave none)"
)

// confine reads the configuration, confines the process in the order in which runners do (package worker), and reports to the daemon.
func confine(in *wire.Reader, out io.Writer) (*wire.Config, error) {
	cfg, err := serve.Configure(in)
	if err != nil {
		return nil, err
	}
	if cfg.Probe {
		return nil, errors.New("an executable has no probes")
	}
	layers := map[string]string{"no_new_privs": "on", "landlock": noConfinementGiven, "seccomp": noConfinementGiven}
	serve.LimitProcess(cfg, layers)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	serve.Observe(cfg, layers)
	if _, _, errno := syscall.AllThreadsSyscall6(syscall.SYS_PRCTL, prSetNoNewPrivs, 1, 0, 0, 0, 0); errno != 0 {
		layers["no_new_privs"] = "off (" + errno.Error() + ")"
	}
	if cfg.Confine != nil {
		layers["landlock"] = landlock(cfg.Confine)
		threads.Reserve(serve.Threads) // under landlock already, and before seccomp, which allows no more
		layers["seccomp"] = seccomp(cfg.Confine)
	}
	return cfg, ready(out, layers)
}

// landlock forbids all that the ruleset names, on every thread.
func landlock(c *wire.Confinement) string {
	if c.Landlock == nil {
		return c.Off
	}
	attr := [rulesetSize / 8]uint64{c.Landlock.FS, c.Landlock.Net, c.Landlock.Scoped}
	fd, _, errno := syscall.RawSyscall(sysCreateRuleset, uintptr(unsafe.Pointer(&attr)), rulesetSize, 0)
	if errno == 0 {
		_, _, errno = syscall.AllThreadsSyscall(sysRestrictSelf, fd, 0, 0)
		syscall.Close(int(fd))
	}
	if errno != 0 {
		return "off (" + errno.Error() + ")"
	}
	return fmt.Sprintf("on (abi %d)", c.Landlock.ABI)
}

// seccomp loads the filter on every thread.
func seccomp(c *wire.Confinement) string {
	if len(c.Filter) == 0 {
		return noConfinementGiven
	}
	filter := make([]syscall.SockFilter, len(c.Filter))
	for i, in := range c.Filter {
		filter[i] = syscall.SockFilter{Code: in.Code, Jt: in.Jt, Jf: in.Jf, K: in.K}
		if in.K == c.PID {
			filter[i].K = uint32(syscall.Getpid())
		}
	}
	program := &syscall.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if _, _, errno := syscall.RawSyscall(sysSeccomp, setModeFilter, flagTSync, uintptr(unsafe.Pointer(program))); errno != 0 {
		return "off (" + errno.Error() + ")"
	}
	return "on"
}
