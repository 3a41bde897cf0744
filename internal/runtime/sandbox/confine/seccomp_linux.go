package confine

import (
	"encoding/binary"
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// Seccomp installs the system call filter on the threads of the scope, with c.PID replaced by the own process id, and
// returns the state of the layer. The calling thread must have no_new_privs.
func Seccomp(c *wire.Confinement, scope Scope) (state string) {
	if len(c.Filter) < 8 {
		return "off (the daemon gave none)"
	}
	filter := make([]unix.SockFilter, len(c.Filter)/8)
	for i := range filter {
		b := c.Filter[8*i:]
		filter[i] = unix.SockFilter{Code: binary.NativeEndian.Uint16(b), Jt: b[2], Jf: b[3],
			K: binary.NativeEndian.Uint32(b[4:])}
		if c.PID != 0 && filter[i].K == c.PID {
			filter[i].K = uint32(syscall.Getpid())
		}
	}
	program := &unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	var flags uintptr
	if scope == Process {
		flags = unix.SECCOMP_FILTER_FLAG_TSYNC
	}
	// If a thread cannot be synchronized, the result is its id.
	if thread, _, errno := syscall.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags,
		uintptr(unsafe.Pointer(program))); errno != 0 {
		return off(errno)
	} else if thread != 0 {
		return fmt.Sprintf("off (thread %d cannot have it)", thread)
	}
	return "on"
}
