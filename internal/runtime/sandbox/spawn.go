package sandbox

import (
	"errors"
	"os"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// A child is a freshly started process with the daemon's ends of its pipes.
type child struct {
	proc            *os.Process
	in, out, stderr *os.File
}

// A spawner starts runners from one OS thread, which it keeps until close. The kernel sends the parent-death signal
// when the thread that started a process ends, not when the daemon does.
type spawner struct {
	fault  func() error // injects a test's fault before each start
	before func() error // runs on the thread before the first start; nil means nothing
	plan   plan         // set once by the canary, before the second start
	given  uintptr      // namespace flags that the thread already has on behalf of all runners

	asks chan ask
	done chan struct{}

	mu     sync.Mutex
	closed bool // guarded by mu
}

// An ask requests a process of the image.
type ask struct {
	image *image
	reply chan spawned
}

type spawned struct {
	child *child
	err   error
}

// startSpawner starts a spawner, whose thread calls before first. If before fails, the thread ends and the error is
// returned.
func startSpawner(fault, before func() error) (*spawner, error) {
	s := &spawner{fault: fault, before: before, asks: make(chan ask), done: make(chan struct{})}
	locked := make(chan error)
	go s.serve(locked)
	return s, <-locked
}

// serve starts processes until close. It sends nil to locked once it has its thread, or the reason why it ends.
func (s *spawner) serve(locked chan error) {
	runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
	if onMainThread() {
		// Changes to the main thread would be visible as changes of the whole process. Another thread takes its place,
		// and this goroutine holds the main thread until that one is locked.
		ready := make(chan error)
		go s.serve(ready)
		locked <- <-ready
		runtime.UnlockOSThread()
		return
	}
	defer close(s.done)
	restrictSpawner()
	if s.before != nil {
		if err := s.before(); err != nil {
			locked <- err
			return
		}
	}
	locked <- nil
	for a := range s.asks {
		c, err := s.startNow(a.image)
		a.reply <- spawned{c, err}
	}
}

// start starts a process of the image. It may be called concurrently.
func (s *spawner) start(from *image) (*child, error) {
	reply := make(chan spawned, 1)
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, errShutdown
	}
	s.asks <- ask{from, reply}
	s.mu.Unlock()
	r := <-reply
	return r.child, r.err
}

// close ends the thread. On Linux its end kills all processes that it has started.
func (s *spawner) close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.asks)
	}
	s.mu.Unlock()
	<-s.done
}

// startNow starts a process from the spawner's thread. Its standard output and error share one pipe. All files are
// closed after an error.
func (s *spawner) startNow(from *image) (c *child, err error) {
	if s.fault != nil {
		if err := s.fault(); err != nil {
			return nil, err
		}
	}
	var open []*os.File
	defer func() {
		if err != nil {
			closeAll(open)
		}
	}()
	pipe := func() (r, w *os.File) {
		if err == nil {
			r, w, err = os.Pipe()
			open = append(open, r, w)
		}
		return r, w
	}
	inR, inW := pipe()
	outR, outW := pipe()
	errR, errW := pipe()
	if err != nil {
		return nil, err
	}
	how := s.attributes()
	if from.user != 0 {
		s.plan.beTool(how, from.user)
	}
	proc, err := os.StartProcess(from.path, from.args, &os.ProcAttr{
		Dir:   "/",
		Env:   runnerEnv(),
		Files: append([]*os.File{inR, errW, errW, outW}, from.extra...),
		Sys:   how,
	})
	if err != nil {
		return nil, err
	}
	closeAll([]*os.File{inR, outW, errW})
	return &child{proc: proc, in: inW, out: outR, stderr: errR}, nil
}

const runnerProcs = "GOMAXPROCS=1"

// runnerEnv returns the environment of runners. It contains nothing of the daemon's environment, which holds keys. The
// Go runtime uses one processor from the start (worker sets that in any case), and the race detector does not wait a
// second at exit.
func runnerEnv() []string {
	env := []string{runnerProcs}
	if wire.RaceBuild {
		env = append(env, "GORACE=atexit_sleep_ms=0")
	}
	return env
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// awaitReadable waits until f can be read, and consumes nothing. It returns false if f was closed. The poller reports
// changes only and would miss a pipe closed before the wait began, so each look asks the kernel.
func awaitReadable(f *os.File) bool {
	rc, err := f.SyscallConn()
	if err != nil {
		return false
	}
	err = rc.Read(func(fd uintptr) bool {
		fds := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds[:], 0)
		return n > 0 || err != nil && err != unix.EINTR
	})
	return err == nil
}

var errNoPlan = errors.New("no way to start a runner")
