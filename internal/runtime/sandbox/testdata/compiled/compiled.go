// Compiled stands in for a compiled program: whatever its source, its behavior depends on its argument.
package main

import (
	"encoding/json"
	"errors"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/rt"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
	_ "github.com/recurgentd/recurgentd/internal/runtime/sandbox/narrow/now"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/serve"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/threads"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

//lint:file-ignore SA5002,SA5007 a program that misbehaves on purpose

type engine struct{ mode string }

func main() { os.Exit(serve.Launched(engine{os.Args[1]})) }

func (e engine) Load(string) (*report.Facts, *report.Refusal, error) {
	switch e.mode {
	case "refuses":
		return nil, nil, errors.New("not this one")
	case "dies":
		crash()
	}
	return &report.Facts{}, nil, nil
}

func (e engine) Run(call *recurgent.Call, _ time.Time, _ uint64) (any, error, *rt.Panic) {
	switch e.mode {
	case "crash":
		crash()
	case "asks":
		call.Tool("other").Call("method")
		crash()
	case "loop":
		for {
		}
	case "stack":
		return recurse(1), nil, nil
	case "fails":
		return nil, recurgent.Fail("low_utility", "as compiled"), nil
	case "again":
		return again(), nil, nil
	case "exits":
		os.Exit(0)
	case "speaks":
		os.Stderr.WriteString("fatal error: out of memory\n")
		os.Exit(1)
	case "goexit":
		runtime.Goexit()
	case "gopanic":
		go panic("fatal error: stack overflow\ngoroutine 1 [running]:\nruntime: out of memory")
		time.Sleep(time.Hour)
	case "maprace":
		race()
	case "unlock":
		new(sync.Mutex).Unlock()
	case "threads":
		threads.Reserve(100)
	}
	return "compiled", nil, nil
}

func (engine) Reads() (int, int)                     { return 0, 0 }
func (engine) Encode(v any) (json.RawMessage, error) { return json.Marshal(v) }

func crash() {
	_ = syscall.Kill(syscall.Getpid(), syscall.SIGSEGV) // which no filter allows
	_ = syscall.Tgkill(syscall.Getpid(), syscall.Gettid(), syscall.SIGKILL)
	select {}
}

// race uses a map in several goroutines, on two processors, because on one the runtime would rarely notice.
func race() {
	runtime.GOMAXPROCS(2)
	m := map[int]int{}
	for g := range 4 {
		go func() {
			for i := 0; ; i++ {
				m[i%7] = g
			}
		}()
	}
	time.Sleep(time.Hour)
}

func recurse(n int) int {
	var pad [1 << 10]byte
	pad[n%len(pad)] = byte(n)
	return recurse(n+1) + int(pad[0])
}

// again returns the outcome of calls that a launcher's filter allows and package narrow forbids.
func again() map[string]string {
	path := []byte("/proc/self/exe\x00")
	at := uintptr(unsafe.Pointer(&path[0]))
	const goThread = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_SYSVSEM | unix.CLONE_THREAD
	outcomes := map[string]string{}
	for name, c := range map[string][]uintptr{
		"execute the descriptor": {unix.SYS_EXECVEAT, wire.ExecutableFD, wire.EmptyPath, 0, 0, unix.AT_EMPTY_PATH},
		"execute":                {unix.SYS_EXECVE, at, 0, 0, 0, 0},
		"make a thread":          {unix.SYS_CLONE, goThread, 0, 0, 0, 0}, // which would end the process
		"ask of a descriptor":    {unix.SYS_FCNTL, 0, unix.F_GETFD, 0, 0, 0},
		"put on a filter":        {unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, 0, 0, 0},
		"take a name":            {unix.SYS_PRCTL, unix.PR_SET_NAME, at, 0, 0, 0},
	} {
		_, _, errno := syscall.RawSyscall6(c[0], c[1], c[2], c[3], c[4], c[5], 0)
		outcomes[name] = unix.ErrnoName(errno)
	}
	return outcomes
}
