package sandbox

import (
	"reflect"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// fill creates threads without the Go runtime until the kernel refuses, and holds them while the daemon answers a
// question.
func fill(c *recurgent.Call) (any, error) {
	const flags = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_SYSVSEM | unix.CLONE_THREAD
	var stacks [][]uintptr
	made := 0
	for {
		stack := make([]uintptr, 2048)
		stacks = append(stacks, stack)
		// the return address of the new thread after the system call
		stack[2000] = reflect.ValueOf(forever).Pointer()
		_, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, flags, uintptr(unsafe.Pointer(&stack[2000])), 0, 0, 0, 0)
		if errno != 0 {
			c.History()
			return []any{made, errno.Error(), len(stacks)}, nil
		}
		made++
	}
}

const futexWait = 0

var never uint32

// forever is a thread that the Go runtime knows nothing of.
//
//go:nosplit
//go:norace
func forever() {
	for {
		syscall.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&never)), futexWait, 0, 0, 0, 0)
	}
}
