package sandbox

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// outPrograms returns programs that try to leave the runner by everything that Go has. Their arguments are a path, a
// port of the daemon, and its process id.
func outPrograms() map[string]func(*recurgent.Call) (any, error) {
	path := func(c *recurgent.Call) string { return c.Args[0].(string) }
	address := func(c *recurgent.Call) string { return fmt.Sprintf("127.0.0.1:%d", int(c.Args[1].(float64))) }
	pid := func(c *recurgent.Call) int { return int(c.Args[2].(float64)) }
	programs := map[string]func(*recurgent.Call) (any, error){
		"outfile": func(c *recurgent.Call) (any, error) {
			b, err := os.ReadFile("/etc/passwd")
			return string(b),
				err
		},
		"outcreate": func(c *recurgent.Call) (any, error) { return 1, os.WriteFile(path(c), []byte("x"), 0o666) },
		"outlist":   func(c *recurgent.Call) (any, error) { e, err := os.ReadDir("/"); return len(e), err },
		"outenv": func(c *recurgent.Call) (any, error) {
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid(c)))
			return string(b), err
		},
		"outlisten": func(c *recurgent.Call) (any, error) {
			_, err := net.Listen("tcp4", "127.0.0.1:0")
			return 1,
				err
		},
		"outdial": func(c *recurgent.Call) (any, error) { _, err := net.Dial("tcp4", address(c)); return 1, err },
		"outudp":  func(c *recurgent.Call) (any, error) { _, err := net.Dial("udp4", address(c)); return 1, err },
		"outunix": func(c *recurgent.Call) (any, error) { _, err := net.Listen("unix", path(c)); return 1, err },
		"outexec": func(c *recurgent.Call) (any, error) { return 1, exec.Command("/proc/self/exe").Run() },
		"outfork": func(c *recurgent.Call) (any, error) {
			_, err := syscall.ForkExec("/bin/true", nil,
				nil)
			return 1, err
		},
		"outkill":    func(c *recurgent.Call) (any, error) { return 1, syscall.Kill(pid(c), 0) },
		"outsymlink": func(c *recurgent.Call) (any, error) { return 1, os.Symlink("/etc/passwd", path(c)) },
		"outchdir":   func(c *recurgent.Call) (any, error) { return 1, os.Chdir("/tmp") },
		"outsetuid": func(c *recurgent.Call) (any, error) {
			_, _, errno := syscall.RawSyscall(syscall.SYS_SETUID, 0, 0, 0)
			return 1, fault(errno)
		},
		"outptrace": func(c *recurgent.Call) (any, error) { return 1, unix.PtraceSeize(pid(c)) },
		"outmemfd":  func(c *recurgent.Call) (any, error) { _, err := unix.MemfdCreate("x", 0); return 1, err },
		"outthread": func(c *recurgent.Call) (any, error) {
			// Senseless flags.
			_, _, errno := syscall.RawSyscall(unix.SYS_CLONE,
				unix.CLONE_VM|unix.CLONE_SIGHAND|unix.CLONE_THREAD|unix.CLONE_FS|unix.CLONE_NEWNS, 0, 0)
			return 1, fault(errno)
		},
		"outshared": func(c *recurgent.Call) (any, error) {
			_, err := unix.Mmap(-1, 0, 1<<30, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
			return 1, err
		},
		"outgrow": func(c *recurgent.Call) (any, error) {
			_, err := unix.Mmap(-1, 0, 1<<30, unix.PROT_READ|unix.PROT_WRITE,
				unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_GROWSDOWN)
			return 1, err
		},
		"outlock":  func(c *recurgent.Call) (any, error) { return 1, unix.Mlockall(unix.MCL_CURRENT) },
		"outmount": func(c *recurgent.Call) (any, error) { return 1, unix.Mount("none", "/tmp", "tmpfs", 0, "") },
	}
	maps.Copy(programs, limitPrograms())
	return programs
}

func fault(errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return errors.New(errno.Error())
}

// awaitSignal waits until a signal has stopped or ended the child, and leaves its end to be reaped by the pool.
func awaitSignal(t testing.TB, pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WSTOPPED|unix.WNOWAIT, nil)
		if err == nil || err == unix.ECHILD {
			return
		}
		if err != unix.EINTR {
			t.Error("waitid:", err)
			return
		}
	}
}
