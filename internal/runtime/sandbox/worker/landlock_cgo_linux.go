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

// A binary linked with the C library cannot make a system call on all of its threads. Go refuses, and the C library
// finds the threads under /proc by a process id that means another process outside a pid namespace. So the runner
// restricts one thread, which then executes the binary again; the new process is restricted from its first thread on.
// That costs a second start. It also means that landlock permits reading and executing the binary and the C library,
// which seccomp still forbids. Release binaries are built without cgo.

// landlockedArg marks the second start. If a runner has this argument without being restricted, the canary's probes
// reveal it.
const landlockedArg = "landlocked"

// landlockFirst restricts the calling thread and executes the binary again, unless that has already happened.
func landlockFirst() {
	if slices.Contains(os.Args, landlockedArg) {
		return
	}
	runtime.LockOSThread()
	if restrictThread() == nil {
		// The C library reserves this much stack for each thread, 8 MiB by default, and all of it counts as data.
		_ = unix.Setrlimit(unix.RLIMIT_STACK, &unix.Rlimit{Cur: confine.ThreadStack, Max: confine.ThreadStack})
		// Exec returns only if it fails. The layer is then reported as missing.
		syscall.Exec("/proc/self/exe", append(slices.Clone(os.Args), landlockedArg), os.Environ())
	}
	runtime.UnlockOSThread()
}

// restrictThread applies landlock to the calling thread, with exceptions for the files that a start of the binary
// needs.
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

// landlockLayer checks that the process was started under landlock.
func landlockLayer(c *wire.Confinement, _ bool) string {
	return confine.Landlock(&wire.Confinement{Given: confine.GivenState(c)}, confine.Process)
}
