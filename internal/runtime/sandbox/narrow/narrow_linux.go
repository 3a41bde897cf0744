// Package narrow is what an executable does before anything of a program (package now has it done then): it gives up for good what only the start of a Go program needs. It makes the
// threads that the Go runtime will ever need, and forbids more; and it forbids to execute, to put on filters, and the rest that package policy's Program allows and its Runner does not.
package narrow

import (
	"errors"
	"runtime"
	"syscall"
	"unsafe"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/threads"
)

// name is what ps shows without the command line. The kernel keeps 15 bytes.
const name = "recurgent-runner\x00"

// What package syscall has no names for.
const (
	setModeFilter = 1 // of seccomp
	allThreads    = 1
	setVMA        = 0x53564d41 // of prctl: a name for memory
	allow         = 0x7fff0000 // what filters answer
	deny          = 0x00050000 | uint32(syscall.EPERM)
)

// Process narrows the process. The calling goroutine must be on the process's first thread.
func Process() error {
	text := []byte(name)
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_NAME, uintptr(unsafe.Pointer(&text[0])), 0)
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_DUMPABLE, 0, 0); errno != 0 {
		return errno
	}
	threads.Reserve(threads.Runner)
	filter := Filter()
	program := &syscall.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	// Where threads cannot be synchronised the result is the number of one of them.
	thread, _, errno := syscall.RawSyscall(seccompNumber(), setModeFilter, allThreads, uintptr(unsafe.Pointer(program)))
	if errno == syscall.ENOSYS {
		return nil // a system without filters: the launcher, which compares the layers, had none to put on
	}
	if errno != 0 {
		return errno
	}
	if thread != 0 {
		return errors.New("a thread cannot have the filter")
	}
	return nil
}

// Filter returns the filter of system calls. What it does not name is left to the one that the launcher has put on, which looks at the architecture, too.
func Filter() []syscall.SockFilter {
	const (
		number   = 0 // offsets of what a filter is shown
		argument = 16
	)
	load := func(offset uint32) syscall.SockFilter {
		return syscall.SockFilter{Code: 0x20, K: offset} // a word
	}
	is := func(value uint32, yes, no uint8) syscall.SockFilter {
		return syscall.SockFilter{Code: 0x15, Jt: yes, Jf: no, K: value}
	}
	answer := func(what uint32) syscall.SockFilter { return syscall.SockFilter{Code: 0x06, K: what} }
	all := []syscall.SockFilter{load(number)}
	for _, call := range append([]uint32{syscall.SYS_CLONE, syscall.SYS_FCNTL, uint32(seccompNumber())}, others()...) {
		all = append(all, is(call, 0, 1), answer(deny))
	}
	return append(all, is(syscall.SYS_PRCTL, 0, 3), load(argument), is(setVMA, 1, 0), answer(deny), answer(allow))
}

// seccompNumber returns the number of the system call.
func seccompNumber() uintptr {
	if runtime.GOARCH == "amd64" {
		return 317
	}
	return 277 // the generic table
}

// others are execveat and arch_prctl.
func others() []uint32 {
	if runtime.GOARCH == "amd64" {
		return []uint32{322, 158}
	}
	return []uint32{281}
}
