package confine

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// hide makes the memory of the process unreadable for other processes of its user. It does nothing for the scope
// Thread, because execution would undo it.
func hide(scope Scope) error {
	if scope == Thread {
		return nil
	}
	return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}

// name is the process name that ps shows. Without it, a process of an unnamed file would be named by its descriptor
// number. The kernel keeps 15 bytes.
const name = "recurgent-runner"

// NameThread names the calling thread. At the start of main that is the main thread, whose name is the name of the
// process. Under landlock this is the only way.
func NameThread() {
	text := []byte(name + "\x00")
	_ = unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&text[0])), 0, 0, 0)
}

// NameProcess names the process from any thread.
func NameProcess() {
	if fd, err := unix.Open("/proc/self/comm", unix.O_WRONLY|unix.O_CLOEXEC, 0); err == nil {
		_, _ = unix.Write(fd, []byte(name))
		unix.Close(fd)
	}
}

// Observe records in layers which namespaces the process does not share with the daemon, and whether it has the user of
// c.
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

// HasNoNewPrivs reports whether the calling thread has no_new_privs.
func HasNoNewPrivs() bool {
	has, _ := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	return has == 1
}

// NoNewPrivs sets no_new_privs on the calling thread, which threads and processes that it creates inherit, and returns
// the state of the layer.
func NoNewPrivs() (state string) {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return off(err)
	}
	return "on"
}
