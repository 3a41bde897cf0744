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

// An execution executes a path, because this system cannot execute a descriptor.
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

// execute returns only if it fails. The daemon has verified the open file, so the path must still lead to that file.
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
		// A process that the daemon was starting when the file was written may have inherited it open for writing.
		if err != syscall.ETXTBSY || wait > time.Second {
			return os.NewSyscallError("execve", err)
		}
		time.Sleep(wait)
	}
}
