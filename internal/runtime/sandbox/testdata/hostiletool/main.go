// Hostiletool stands in for a compiler that its input has taken over. It tries what its arguments name, and prints the
// names of those attempts that succeeded.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// attempts maps names to attempts, which return nil if they succeed.
var attempts = map[string]func() error{
	"create":    func() error { return os.WriteFile("another", nil, 0o666) },
	"tmpfile":   func() error { return open(".", syscall.O_RDWR|0o20200000) }, // O_TMPFILE
	"mkdir":     func() error { return os.Mkdir("directory", 0o777) },
	"rename":    func() error { return os.Rename("out", "another") },
	"remove":    func() error { return os.Remove("out") },
	"link":      func() error { return os.Link("out", "another") },
	"symlink":   func() error { return os.Symlink("/etc/passwd", "another") },
	"chmod":     func() error { return os.Chmod("out", 0o4777) },
	"source":    func() error { return open("source", syscall.O_WRONLY) },
	"tmp":       func() error { return os.WriteFile("/tmp/recurgent-hostile-tool", nil, 0o666) },
	"passwd":    func() error { return open("/etc/passwd", syscall.O_RDONLY) },
	"root":      func() error { return open("/", syscall.O_RDONLY) },
	"execute":   func() error { return syscall.Exec("/bin/true", []string{"true"}, nil) },
	"processes": func() error { return fork(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD)) },
	"fork":      func() error { return fork(syscall.SYS_FORK, 0) },
	"vfork":     func() error { return fork(syscall.SYS_VFORK, 0) },
	"clone3":    func() error { return fork(435, 0) },
	"socket":    func() error { _, err := net.Listen("tcp4", "127.0.0.1:0"); return err },
	"signal":    func() error { return syscall.Kill(os.Getppid(), 0) },
	"grow":      grow,
	"inherit":   inherit,
}

// inherit succeeds if a directory is open.
func inherit() error {
	for fd := range 64 {
		var is syscall.Stat_t
		if syscall.Fstat(fd, &is) == nil && is.Mode&syscall.S_IFMT == syscall.S_IFDIR {
			return nil
		}
	}
	return syscall.EBADF
}

func open(path string, flags int) error {
	fd, err := syscall.Open(path, flags, 0o666)
	if err == nil {
		syscall.Close(fd)
	}
	return err
}

// fork creates a process by a system call. The child ends at once.
func fork(call, flags uintptr) error {
	pid, _, errno := syscall.RawSyscall(call, flags, 0, 0)
	if errno != 0 {
		return errno
	}
	if pid == 0 {
		syscall.RawSyscall(syscall.SYS_EXIT, 0, 0, 0)
	}
	return nil
}

// grow writes more than a file may hold.
func grow() error {
	f, err := os.OpenFile("out", os.O_WRONLY, 0)
	if err != nil {
		return nil // this must be possible
	}
	defer f.Close()
	for range 1 << 10 {
		if _, err := f.Write(make([]byte, 1<<10)); err != nil {
			return err
		}
	}
	return nil
}

func main() {
	failed := false
	for _, name := range os.Args[1:] {
		switch name {
		case "wait":
			time.Sleep(time.Hour)
		case "threads":
			threads(1000)
		case "forty":
			threads(40)
			continue
		case "spin":
			for {
			}
		case "hoard":
			var all [][]byte
			for {
				all = append(all, bytes.Repeat([]byte{1}, 1<<20))
			}
		case "exhaust": // as the runtime ends if the system has no memory
			fmt.Fprintln(os.Stderr, "fatal error: runtime: out of memory")
			os.Exit(2)
		case "write":
			if err := os.WriteFile("out", make([]byte, 1<<20), 0o666); err != nil {
				fmt.Println(err)
				os.Exit(2)
			}
		case "copy": // the purpose of a tool
			data, err := os.ReadFile("source")
			out, openErr := os.OpenFile("out", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o777)
			_, writeErr := out.Write(data)
			if err := errors.Join(err, openErr, writeErr); err != nil {
				fmt.Println("copy:", err)
				failed = true
			}
			continue
		default:
			if attempts[name]() != nil {
				continue
			}
		}
		fmt.Println("ALLOWED:", name)
		failed = true
	}
	if failed {
		os.Exit(1)
	}
}

// threads holds n threads at once. If one cannot be created, the Go runtime ends the process.
func threads(n int) {
	var held sync.WaitGroup
	for range n {
		held.Add(1)
		go func() {
			runtime.LockOSThread()
			held.Done()
			_, _ = io.ReadFull(blocked{}, make([]byte, 1))
		}()
	}
	held.Wait()
}

// A blocked reader never returns.
type blocked struct{}

func (blocked) Read([]byte) (int, error) { select {} }
