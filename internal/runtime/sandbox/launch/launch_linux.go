// Package launch is the process between the daemon and an executable: a launcher confines itself, reports the layers, and becomes the executable, so that no instruction of that
// runs before. It trusts the daemon, reads nothing but the daemon's one frame, and uses little, since each start of a compiled program has this one before it.
package launch

import (
	"errors"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/confine"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// maxLaunch bounds the frame, which comes from the daemon.
const maxLaunch = 1 << 20

// Main is the whole of a launcher. It returns the exit code where it did not become the executable.
func Main() int { return wire.ExitCode(launch()) }

func launch() error {
	runtime.LockOSThread() // what it executes has what this thread has
	in, out := wire.Pipe()
	kind, payload, err := in.Next(maxLaunch)
	if err != nil {
		return err
	}
	l, err := wire.ParseLaunch(payload)
	if err != nil || kind != wire.KindLaunch {
		return wire.ErrFrame
	}
	become, err := prepare(l)
	if err != nil {
		return err
	}
	layers := confineThread(&l.Confine)
	var wr wire.Builder
	(&wire.Ready{Layers: layers, Build: wire.Build}).Put(&wr)
	if _, err := out.Write(wr.Finish()); err != nil {
		return err
	}
	if missing := confine.Missing(layers, l.Require); missing != "" {
		return errors.New("layer " + missing + " is " + layers[missing])
	}
	return become.execute()
}

// confineThread puts all layers on the calling thread, and limits on the process, and returns their states.
func confineThread(c *wire.Confinement) map[string]string {
	layers := map[string]string{}
	confine.Observe(c, layers)
	confine.Limits(c, confine.Thread, layers)
	layers["no_new_privs"] = confine.NoNewPrivs()
	layers["landlock"] = confine.Landlock(c, confine.Thread)
	layers["seccomp"] = confine.Seccomp(c, confine.Thread)
	return layers
}

// An execution is all that an execution of the descriptor takes: the filter allows no other.
type execution struct{ args, env []*byte }

// prepare does what confinement would forbid.
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
	at, _, errno := syscall.RawSyscall6(unix.SYS_MMAP, wire.EmptyPath, wire.EmptyPathSize, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_FIXED_NOREPLACE, ^uintptr(0), 0)
	if errno != 0 {
		return nil, errno
	}
	if at != wire.EmptyPath {
		return nil, errors.New("there is something at the address of the empty path")
	}
	return &execution{args, env}, nil
}

// execute does not return where it succeeds. A process that the daemon was just starting when the file was written may have it open for writing, until it executes its own.
func (e *execution) execute() error {
	for wait := time.Millisecond; ; wait *= 2 {
		_, _, errno := syscall.RawSyscall6(unix.SYS_EXECVEAT, wire.ExecutableFD, wire.EmptyPath, uintptr(unsafe.Pointer(&e.args[0])), uintptr(unsafe.Pointer(&e.env[0])), unix.AT_EMPTY_PATH, 0)
		if errno != unix.ETXTBSY || wait > time.Second {
			return errno
		}
		pause := syscall.NsecToTimespec(wait.Nanoseconds())
		_ = syscall.Nanosleep(&pause, nil)
	}
}
