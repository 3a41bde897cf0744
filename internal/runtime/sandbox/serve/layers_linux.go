package serve

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// System calls that package syscall has no names for, and their arguments.
const (
	setModeFilter    = 1
	sysCreateRuleset = 444
	sysRestrictSelf  = 446
	rulesetSize      = 24
)

// AllThreads has LoadFilter load the filter on every thread of the process.
const AllThreads = 1

// noConfinement is the state of a layer that the daemon has sent nothing for.
const noConfinement = "off (the daemon gave none)"

// sysSeccomp returns the number of the system call.
func sysSeccomp() uintptr {
	if runtime.GOARCH == "amd64" {
		return 317
	}
	return 277 // the generic table
}

// LoadFilter loads a filter of system calls, and returns the layer's state. The calling thread must have no_new_privs.
func LoadFilter(c *wire.Confinement, flags uintptr) string {
	if c == nil || len(c.Filter) < 8 {
		return noConfinement
	}
	filter := make([]syscall.SockFilter, len(c.Filter)/8)
	for i := range filter {
		b := c.Filter[8*i:]
		filter[i] = syscall.SockFilter{Code: binary.NativeEndian.Uint16(b), Jt: b[2], Jf: b[3], K: binary.NativeEndian.Uint32(b[4:])}
		if c.PID != 0 && filter[i].K == c.PID {
			filter[i].K = uint32(syscall.Getpid())
		}
	}
	program := &syscall.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	// Where threads cannot be synchronised the result is the number of one of them.
	if thread, _, errno := syscall.RawSyscall(sysSeccomp(), setModeFilter, flags, uintptr(unsafe.Pointer(program))); errno != 0 {
		return "off (" + errno.Error() + ")"
	} else if thread != 0 {
		return fmt.Sprintf("off (thread %d cannot have it)", thread)
	}
	return "on"
}

// checkGiven returns the state, and another where a process that is said to be under landlock can list a directory.
func checkGiven(state string) string {
	if !strings.HasPrefix(state, "on") {
		return state
	}
	fd, err := syscall.Open("/", syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err == nil {
		syscall.Close(fd)
		return "off (it did not come with the start)"
	}
	if err != syscall.EACCES {
		return "off (" + err.Error() + ")"
	}
	return state
}

// Landlock forbids all that the ruleset names, on every thread, which must have no_new_privs, and returns the layer's state. It fails in a process that is
// linked with the C library. Of a process that was started under landlock it checks that it was.
func Landlock(c *wire.Confinement) string {
	switch {
	case c == nil:
		return noConfinement
	case c.Landlock == nil:
		return checkGiven(c.Given)
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
