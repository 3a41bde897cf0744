package wire

import (
	"io"
	"syscall"
)

// Pipe returns the runner's ends of its pipes to the daemon.
func Pipe() (in *Reader, out io.Writer) {
	return NewReader(descriptor(0)), descriptor(AnswerFD)
}

// ExitCode returns the exit code of a runner that stopped with err: 0 for the end of the pipe. Otherwise it writes err
// to standard error and returns 3.
func ExitCode(err error) int {
	if err == nil || err == io.EOF {
		return 0
	}
	// If this fails, there is nowhere else to report it.
	_, _ = io.WriteString(descriptor(2), "runner: "+err.Error()+"\n")
	return 3
}

// A descriptor reads and writes with plain blocking system calls, without the Go poller and its goroutine switches.
type descriptor int

func (f descriptor) Read(p []byte) (int, error) {
	for {
		n, err := syscall.Read(int(f), p)
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		}
		return n, nil
	}
}

func (f descriptor) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		n, err := syscall.Write(int(f), p[done:])
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return done, err
		}
		done += n
	}
	return done, nil
}
