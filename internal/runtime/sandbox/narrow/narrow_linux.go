// Package narrow permanently gives up the rights that only the start of a Go program needs. An executable does this
// before any code of its program runs (see package now). Process creates all threads that the Go runtime will ever need
// and then forbids more. It also forbids execution, further filters, and everything else that policy.Program allows and
// policy.Runner does not.
package narrow

import (
	"errors"
	"runtime"
	"syscall"
	"unsafe"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/threads"
)

// name is the process name that ps shows. The kernel keeps 15 bytes.
const name = "recurgent-runner\x00"

// Constants that package syscall lacks.
const (
	setModeFilter = 1                                  // SECCOMP_SET_MODE_FILTER
	allThreads    = 1                                  // SECCOMP_FILTER_FLAG_TSYNC
	setVMA        = 0x53564d41                         // PR_SET_VMA of prctl: names memory
	allow         = 0x7fff0000                         // SECCOMP_RET_ALLOW
	deny          = 0x00050000 | uint32(syscall.EPERM) // SECCOMP_RET_ERRNO
)

// Process narrows the process. The calling goroutine must be on the main thread. On an error the process must end.
func Process() error {
	text := []byte(name)
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_NAME, uintptr(unsafe.Pointer(&text[0])), 0)
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_DUMPABLE, 0, 0); errno != 0 {
		return errno
	}
	threads.Reserve(threads.Runner)
	filter := Filter()
	program := &syscall.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	// If a thread cannot be synchronized, the result is its id.
	thread, _, errno := syscall.RawSyscall(seccompNumber(), setModeFilter, allThreads, uintptr(unsafe.Pointer(program)))
	if errno == syscall.ENOSYS {
		return nil // no seccomp here; the launcher, which compares the layers, had none either
	}
	if errno != 0 {
		return errno
	}
	if thread != 0 {
		return errors.New("a thread cannot have the filter")
	}
	return nil
}

// Filter returns the seccomp filter. Calls that it does not name are left to the launcher's filter, which also checks
// the architecture.
func Filter() []syscall.SockFilter {
	const (
		number   = 0  // offsets in struct seccomp_data
		argument = 16 // low word of the first argument
	)
	load := func(offset uint32) syscall.SockFilter {
		return syscall.SockFilter{Code: 0x20, K: offset} // load a word
	}
	is := func(value uint32, yes, no uint8) syscall.SockFilter {
		return syscall.SockFilter{Code: 0x15, Jt: yes, Jf: no, K: value} // jump if equal
	}
	// return
	answer := func(what uint32) syscall.SockFilter { return syscall.SockFilter{Code: 0x06, K: what} }
	all := []syscall.SockFilter{load(number)}
	for _, call := range append([]uint32{syscall.SYS_CLONE, syscall.SYS_FCNTL, uint32(seccompNumber())}, others()...) {
		all = append(all, is(call, 0, 1), answer(deny))
	}
	return append(all, is(syscall.SYS_PRCTL, 0, 3), load(argument), is(setVMA, 1, 0), answer(deny), answer(allow))
}

// seccompNumber returns the number of the system call seccomp.
func seccompNumber() uintptr {
	if runtime.GOARCH == "amd64" {
		return 317
	}
	return 277 // the generic table
}

// others returns the numbers of execveat and, on amd64, arch_prctl.
func others() []uint32 {
	if runtime.GOARCH == "amd64" {
		return []uint32{322, 158}
	}
	return []uint32{281}
}
