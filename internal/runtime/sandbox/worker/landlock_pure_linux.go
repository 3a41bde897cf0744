//go:build !cgo

package worker

import (
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/confine"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// landlockFirst does nothing: landlockLayer restricts all threads at once.
func landlockFirst() {}

// landlockLayer applies landlock to every thread of the process. Each thread needs no_new_privs first; noNewPrivs
// reports whether they inherited it from the thread that started the process.
func landlockLayer(c *wire.Confinement, noNewPrivs bool) string {
	if !noNewPrivs {
		if _, _, errno := syscall.AllThreadsSyscall6(syscall.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0,
			0); errno != 0 {
			return "off (" + errno.Error() + ")"
		}
	}
	return confine.Landlock(c, confine.Process)
}
