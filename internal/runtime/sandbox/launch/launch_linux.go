package launch

import (
	"errors"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/confine"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// confineThread applies all layers to the calling thread, and limits to the process, and returns their states. Seccomp
// is last, because it forbids what the other layers need.
func confineThread(c *wire.Confinement) map[string]string {
	layers := map[string]string{}
	confine.Observe(c, layers)
	confine.Limits(c, confine.Thread, layers)
	layers["no_new_privs"] = confine.NoNewPrivs()
	layers["landlock"] = confine.Landlock(c, confine.Thread)
	layers["seccomp"] = confine.Seccomp(c, confine.Thread)
	return layers
}

// An execution holds the arguments of execveat, the only execution that the filter allows.
type execution struct{ args, env []*byte }

// prepare makes the calls that confinement would forbid.
func prepare(l *wire.Launch) (*execution, error) {
	args, err := syscall.SlicePtrFromStrings(l.Args)
	if err != nil {
		return nil, err
	}
	env, err := syscall.SlicePtrFromStrings(l.Env)
	if err != nil {
		return nil, err
	}
	if l.Dir != 0 {
		if err := unix.Fchdir(l.Dir); err != nil {
			return nil, err
		}
	}
	for fd := l.Keep; fd < wire.ExecutableFD+l.Files; fd++ {
		syscall.CloseOnExec(fd)
	}
	at, _, errno := syscall.RawSyscall6(unix.SYS_MMAP, wire.EmptyPath, wire.EmptyPathSize, unix.PROT_READ,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_FIXED_NOREPLACE, ^uintptr(0), 0)
	if errno != 0 {
		return nil, errno
	}
	if at != wire.EmptyPath {
		return nil, errors.New("there is something at the address of the empty path")
	}
	return &execution{args, env}, nil
}

// execute returns only if it fails. It retries for about two seconds on ETXTBSY: a process that the daemon was starting
// when the file was written may have inherited it open for writing, until it executes its own program.
func (e *execution) execute() error {
	for wait := time.Millisecond; ; wait *= 2 {
		_, _, errno := syscall.RawSyscall6(unix.SYS_EXECVEAT, wire.ExecutableFD, wire.EmptyPath,
			uintptr(unsafe.Pointer(&e.args[0])), uintptr(unsafe.Pointer(&e.env[0])), unix.AT_EMPTY_PATH, 0)
		if errno != unix.ETXTBSY || wait > time.Second {
			return errno
		}
		pause := syscall.NsecToTimespec(wait.Nanoseconds())
		_ = syscall.Nanosleep(&pause, nil)
	}
}
