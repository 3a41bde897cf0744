package confine

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// hide makes the memory of the process unreadable for others of its user. An execution would undo it.
func hide(scope Scope) error {
	if scope == Thread {
		return nil
	}
	return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}

// name is what ps shows without the command line; a file without a name would give the process its number. The kernel keeps 15 bytes.
const name = "recurgent-runner"

// NameThread gives the name to the calling thread, which at the start of main is the one that stands for the process. Under landlock there is no other way.
func NameThread() {
	text := []byte(name + "\x00")
	_ = unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&text[0])), 0, 0, 0)
}

// NameProcess gives the process its name from any thread.
func NameProcess() {
	if fd, err := unix.Open("/proc/self/comm", unix.O_WRONLY|unix.O_CLOEXEC, 0); err == nil {
		_, _ = unix.Write(fd, []byte(name))
		unix.Close(fd)
	}
}

// Observe puts among the layers which namespaces and which user the process has of its own.
func Observe(c *wire.Confinement, layers map[string]string) {
	mine := wire.Namespaces()
	for layer, parents := range c.Namespaces {
		switch own := mine[layer]; {
		case own == "":
			layers[layer] = "off (unknown)"
		case own == parents:
			layers[layer] = "off"
		default:
			layers[layer] = "on"
		}
	}
	if os.Getuid() == c.User && os.Geteuid() == c.User {
		layers["uid"] = "on"
	} else {
		layers["uid"] = "off"
	}
}

// HasNoNewPrivs reports whether the calling thread may not gain rights by an execution.
func HasNoNewPrivs() bool {
	has, _ := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	return has == 1
}

// NoNewPrivs forbids the calling thread, and what it makes, to gain rights by an execution.
func NoNewPrivs() (state string) {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return off(err)
	}
	return "on"
}
