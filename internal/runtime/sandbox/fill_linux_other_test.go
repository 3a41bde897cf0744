//go:build linux && !amd64

package sandbox

import (
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// fill creates threads that could not run: the stack of a new thread is set up for amd64 only.
func fill(c *recurgent.Call) (any, error) {
	_, _, errno := syscall.RawSyscall(unix.SYS_CLONE, unix.CLONE_THREAD, 0, 0)
	c.History()
	return errno.Error(), nil
}
