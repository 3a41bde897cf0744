package sandbox

import (
	"errors"
	"os"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// A child is a process that has just been started, with the daemon's ends of its pipes.
type child struct {
	proc            *os.Process
	in, out, stderr *os.File
}

// A spawner starts runners from one operating-system thread that it keeps until close: the parent-death signal is
// sent when the thread that started a process ends, not when the daemon does.
type spawner struct {
	fault  func() error // a test's fault, before each start
	before func() error // done on the thread before the first start; nil for nothing
	plan   plan         // set once by the canary, before the second start
	given  uintptr      // namespaces that the thread has for all runners

	asks chan ask
	done chan struct{}

	mu     sync.Mutex
	closed bool // guarded by mu
}

// An ask has the spawner start a process of the image.
type ask struct {
	image *image
	reply chan spawned
}

type spawned struct {
	child *child
	err   error
}

// startSpawner starts a spawner, whose thread does before first. Where that fails, there is none.
func startSpawner(fault, before func() error) (*spawner, error) {
	s := &spawner{fault: fault, before: before, asks: make(chan ask), done: make(chan struct{})}
	locked := make(chan error)
	go s.serve(locked)
	return s, <-locked
}

// serve starts processes until close. Once it has a thread it says so to locked, or why it ends instead.
func (s *spawner) serve(locked chan error) {
	runtime.LockOSThread() // and never unlock: the thread ends with this goroutine
	if onMainThread() {
		// What is changed for runners alone would be seen at the whole process: another thread takes its place, while this one is held.
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

// start starts a process of the image. It may be called from many goroutines.
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

func (s *spawner) close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.asks)
	}
	s.mu.Unlock()
	<-s.done
}

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

// runnerEnv is the environment of runners: nothing of the daemon's, whose keys stand there. The Go runtime is set to use one processor from the start
// (worker sets it in any case), and the race detector not to wait a second at exit.
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

// awaitReadable waits, without a buffer, until f can be read. The poller reports changes only: a pipe that was closed
// before the wait began would never be reported, so each look asks the kernel.
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
