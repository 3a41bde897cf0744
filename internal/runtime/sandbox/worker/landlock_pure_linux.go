//go:build !cgo

package worker

import (
	"syscall"

	landsys "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/policy"
	"golang.org/x/sys/unix"
)

// landlockFirst has nothing to do here: landlock goes on later, on all threads at once.
func landlockFirst() {}

// landlockLayer forbids all that landlock knows of on every thread of the process. It needs no_new_privs on each: whether they have it from the thread
// that started the process.
func landlockLayer(noNewPrivs bool) string {
	abi, off := policy.LandlockSupported()
	if off != "" {
		return off
	}
	attr := policy.LandlockEverything(abi)
	fd, err := landsys.LandlockCreateRuleset(&attr, 0)
	if err == nil {
		defer syscall.Close(fd)
		if !noNewPrivs {
			err = landsys.AllThreadsPrctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
		}
		if err == nil {
			err = landsys.AllThreadsLandlockRestrictSelf(fd, 0)
		}
	}
	if err != nil {
		return "off (" + err.Error() + ")"
	}
	return landlockOn(abi)
}
