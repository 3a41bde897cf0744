package wire

import (
	"io"
	"syscall"
)

// Pipe returns a runner's ends of the pipe.
func Pipe() (in *Reader, out io.Writer) {
	return NewReader(descriptor(0)), descriptor(AnswerFD)
}

// ExitCode returns the exit code of a runner that err has ended, and writes why where that is not the end of the pipe.
func ExitCode(err error) int {
	if err == nil || err == io.EOF {
		return 0
	}
	_, _ = io.WriteString(descriptor(2), "runner: "+err.Error()+"\n") // there is nothing else to report it to
	return 3
}

// A Descriptor is read and written with plain blocking system calls: no poller, no goroutine to wake.
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
