//go:build !linux

package launch

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/confine"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// confineThread sets the limits of the process: this system has no other layer.
func confineThread(c *wire.Confinement) map[string]string {
	layers := map[string]string{"seccomp": "off (not on this system)"}
	confine.Limits(c, confine.Thread, layers)
	return layers
}

// An execution is of a path: the system executes no descriptor.
type execution struct {
	path      string
	args, env []string
}

func prepare(l *wire.Launch) (*execution, error) {
	if l.Dir != 0 {
		if err := syscall.Fchdir(l.Dir); err != nil {
			return nil, err
		}
	}
	for fd := l.Keep; fd < wire.ExecutableFD+l.Files; fd++ {
		syscall.CloseOnExec(fd)
	}
	return &execution{l.Path, l.Args, l.Env}, nil
}

// execute does not return where it succeeds. The daemon has looked at the bytes of the open file: the path must still lead to that one.
func (e *execution) execute() error {
	var open, named syscall.Stat_t
	if err := errors.Join(syscall.Fstat(wire.ExecutableFD, &open), syscall.Stat(e.path, &named)); err != nil {
		return err
	}
	if open.Dev != named.Dev || open.Ino != named.Ino {
		return fmt.Errorf("%s is not the file that was opened", e.path)
	}
	for wait := time.Millisecond; ; wait *= 2 {
		err := syscall.Exec(e.path, e.args, e.env)
		// a process that the daemon was just starting when the file was written may have it open for writing
		if err != syscall.ETXTBSY || wait > time.Second {
			return os.NewSyscallError("execve", err)
		}
		time.Sleep(wait)
	}
}
