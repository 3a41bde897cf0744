//go:build cgo

package worker

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/confine"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// A binary that is linked with the C library cannot make a system call on all of its threads: Go refuses, and the C
// way of doing it looks for the threads under /proc by a process number that means another process outside a pid
// namespace. So the runner restricts one thread and executes itself again from there: what comes up is restricted
// from its first thread on. The price is a second start, and that the binary and the C library can be read and
// executed as far as landlock is concerned; seccomp forbids it all the same. Release binaries are built without cgo.

// landlockedArg marks the second start. A runner that nobody restricted and that bears it is found out by the canary's
// probes.
const landlockedArg = "landlocked"

func landlockFirst() {
	if slices.Contains(os.Args, landlockedArg) {
		return
	}
	runtime.LockOSThread()
	if restrictThread() == nil {
		// The C library gives each thread as much stack as this, 8 MiB as a rule, all of which counts as data.
		_ = unix.Setrlimit(unix.RLIMIT_STACK, &unix.Rlimit{Cur: confine.ThreadStack, Max: confine.ThreadStack})
		// Only a failure returns, and then the layer is reported as missing.
		syscall.Exec("/proc/self/exe", append(slices.Clone(os.Args), landlockedArg), os.Environ())
	}
	runtime.UnlockOSThread()
}

// restrictThread puts landlock on the calling thread, and leaves it what a start of the binary takes.
func restrictThread() error {
	c := &wire.Confinement{}
	c.Landlock, c.Given = confine.Everything()
	if c.Landlock == nil {
		return fmt.Errorf("landlock is %s", c.Given)
	}
	allowed := []string{"/proc/self/exe", "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib",
		"/etc/ld.so.cache"}
	if wire.RaceBuild {
		allowed = append(allowed, "/proc") // the detector reads its own memory map
	}
	for _, path := range allowed {
		at, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		defer unix.Close(at)
		c.Landlock.Rules = append(c.Landlock.Rules, wire.Rule{FD: at, Access: confine.Execute})
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if state := confine.Landlock(c, confine.Thread); !confine.On(state) {
		return fmt.Errorf("landlock is %s", state)
	}
	return nil
}

// landlockLayer looks whether landlock came with the start.
func landlockLayer(c *wire.Confinement, _ bool) string {
	return confine.Landlock(&wire.Confinement{Given: confine.GivenState(c)}, confine.Process)
}
