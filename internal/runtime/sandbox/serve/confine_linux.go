package serve

import (
	"os"
	"strings"
	"syscall"
	"unsafe"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// Threads are made beside those that a start has made, which are three or more: a runner may not make threads, it has as many as it will ever need before
// it is confined. The Go runtime needs one for procs, one that waits at the pipe, one in the poller, two for itself, and now and then one for each that
// is about to sleep; it ends none that is idle. With five in all, programs that opened files ran out of them; each takes 1 % of a cold call.
const Threads = 5

// addressSpace is what a runner may map beside its memory: the Go runtime reserves much, and touches little of it.
const addressSpace = 4 << 30

// ThreadStack is the limit of the first thread's stack in bytes, more than the Go runtime needs there.
const ThreadStack = 1 << 20

// untouched is the size of data, in bytes, that every runner maps and never writes to, mostly tables of the Go runtime and libraries. RLIMIT_DATA counts it.
const untouched = 64 << 20

// MemoryLimits returns how many bytes the process may write to, and how many it may map; none in a race build, whose detector maps terabytes.
func MemoryLimits(cfg *wire.Config) (data, mapped uint64) {
	if wire.RaceBuild {
		return 0, 0
	}
	return uint64(cfg.Memory + untouched), uint64(addressSpace + 4*cfg.Memory)
}

// LimitProcess sets the limits of the runner process, and leaves those that are lower already.
func LimitProcess(cfg *wire.Config, layers map[string]string) {
	var faults []string
	limit := func(name string, resource int, value uint64) {
		var now syscall.Rlimit
		if syscall.Getrlimit(resource, &now) == nil {
			value = min(value, now.Max)
		}
		if err := syscall.Setrlimit(resource, &syscall.Rlimit{Cur: value, Max: value}); err != nil {
			faults = append(faults, name+": "+err.Error())
		}
	}
	// Address space alone says little: an idle Go process has over a gigabyte of it. But page tables count nowhere else, and take a
	// 512th part of what is mapped, even where it can only be read. Not RLIMIT_NPROC: it counts the user, not the process.
	if data, mapped := MemoryLimits(cfg); data > 0 {
		limit("data", syscall.RLIMIT_DATA, data)
		limit("as", syscall.RLIMIT_AS, mapped)
	}
	limit("stack", syscall.RLIMIT_STACK, ThreadStack) // the first thread's stack grows by itself, and does not count as data
	limit("cpu", syscall.RLIMIT_CPU, uint64(cfg.CPUSeconds))
	limit("nofile", syscall.RLIMIT_NOFILE, 16)
	limit("fsize", syscall.RLIMIT_FSIZE, 0)
	limit("core", syscall.RLIMIT_CORE, 0)
	nameProcess() // while the process may still write it
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_DUMPABLE, 0, 0); errno != 0 {
		faults = append(faults, "dumpable: "+errno.Error())
	}
	layers["rlimits"] = onOff(faults)
}

// processName is what ps shows without the command line; a file without a name would give the process its number. The kernel keeps 15 bytes.
const processName = "recurgent-runner"

// NameThread gives the name to the calling thread, which at the start of main is the one that stands for the process. Under landlock there is no other way.
func NameThread() {
	name := []byte(processName + "\x00")
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_NAME, uintptr(unsafe.Pointer(&name[0])), 0)
}

// nameProcess gives the process its name from any thread.
func nameProcess() {
	if fd, err := syscall.Open("/proc/self/comm", syscall.O_WRONLY|syscall.O_CLOEXEC, 0); err == nil {
		_, _ = syscall.Write(fd, []byte(processName))
		syscall.Close(fd)
	}
}

func onOff(faults []string) string {
	if len(faults) > 0 {
		return "off (" + strings.Join(faults, "; ") + ")"
	}
	return "on"
}

// Observe reports which namespaces and which user the process has of its own.
func Observe(cfg *wire.Config, layers map[string]string) {
	mine := wire.Namespaces()
	for layer, parents := range cfg.Namespaces {
		switch own := mine[layer]; {
		case own == "":
			layers[layer] = "off (unknown)"
		case own == parents:
			layers[layer] = "off"
		default:
			layers[layer] = "on"
		}
	}
	if os.Getuid() == wire.Nobody && os.Geteuid() == wire.Nobody {
		layers["uid"] = "on"
	} else {
		layers["uid"] = "off"
	}
}
