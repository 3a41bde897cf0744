package worker

import (
	"os"
	"runtime"
	"strings"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/threads"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// runnerThreads: a runner may not make threads, it has as many as it will ever need before it is confined. The Go runtime needs one for
// procs, one that waits at the pipe, one in the poller, two for itself, and now and then one for each that is about to
// sleep; it ends none that is idle. These come to the five or six that a start has made.
const runnerThreads = 8

// addressSpace is what a runner may map beside its memory: the Go runtime reserves much, and touches little of it.
const addressSpace = 4 << 30

// threadStack is the limit of the first thread's stack in bytes, more than the Go runtime needs there.
const threadStack = 1 << 20

// untouched is the size of data, in bytes, that every runner maps and never writes to, mostly tables of the Go runtime and libraries. RLIMIT_DATA counts it.
const untouched = 64 << 20

// limitProcess sets the limits of the runner process, and leaves those that are lower already.
func limitProcess(cfg *wire.Config, layers map[string]string) {
	var faults []string
	limit := func(name string, resource int, value uint64) {
		var now unix.Rlimit
		if unix.Getrlimit(resource, &now) == nil {
			value = min(value, now.Max)
		}
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: value, Max: value}); err != nil {
			faults = append(faults, name+": "+err.Error())
		}
	}
	// Address space alone says little: an idle Go process has over a gigabyte of it. But page tables count nowhere else, and take a
	// 512th part of what is mapped, even where it can only be read. Not RLIMIT_NPROC: it counts the user, not the process.
	if !wire.RaceBuild { // the race detector maps terabytes of shadow
		limit("data", unix.RLIMIT_DATA, uint64(cfg.Memory+untouched))
		limit("as", unix.RLIMIT_AS, uint64(addressSpace+4*cfg.Memory))
	}
	limit("stack", unix.RLIMIT_STACK, threadStack) // the first thread's stack grows by itself, and does not count as data
	limit("cpu", unix.RLIMIT_CPU, uint64(cfg.CPUSeconds))
	limit("nofile", unix.RLIMIT_NOFILE, 16)
	limit("fsize", unix.RLIMIT_FSIZE, 0)
	limit("core", unix.RLIMIT_CORE, 0)
	nameProcess() // while the process may still write it
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		faults = append(faults, "dumpable: "+err.Error())
	}
	layers["rlimits"] = onOff(faults)
}

// nameProcess sets the name that ps shows without the command line; a file without a name would give it its number.
func nameProcess() {
	if fd, err := unix.Open("/proc/self/comm", unix.O_WRONLY|unix.O_CLOEXEC, 0); err == nil {
		unix.Write(fd, []byte("recurgent-runner")) // of which the kernel keeps 15 bytes
		unix.Close(fd)
	}
}

func onOff(faults []string) string {
	if len(faults) > 0 {
		return "off (" + strings.Join(faults, "; ") + ")"
	}
	return "on"
}

// confineProcess applies the layers, inner ones first, and reports what it did. In a canary it probes between them.
func confineProcess(cfg *wire.Config, ready *wire.Ready) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	observeNamespaces(cfg, ready.Layers)
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		ready.Layers["no_new_privs"] = "off (" + err.Error() + ")"
	} else {
		ready.Layers["no_new_privs"] = "on"
	}
	if cfg.Probe {
		probeNetwork(cfg, ready)
	}
	ready.Layers["landlock"] = landlockLayer()
	if cfg.Probe {
		probeLandlock(ready)
	}
	threads.Reserve(runnerThreads) // under landlock already, and before seccomp, which allows no more
	ready.Layers["seccomp"] = seccompLayer(cfg.Kill)
	if cfg.Probe {
		probeAll(cfg, ready)
	}
}

func observeNamespaces(cfg *wire.Config, layers map[string]string) {
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

// seccompLayer allows the system calls that the Go runtime needs to compute, and no other, on every thread.
func seccompLayer(kill bool) string {
	action := seccomp.ActionErrno
	if kill {
		action = seccomp.ActionKillProcess
	}
	filter := seccomp.Filter{NoNewPrivs: true, Flag: seccomp.FilterFlagTSync, Policy: syscallPolicy(action)}
	if err := seccomp.LoadFilter(filter); err != nil {
		return "off (" + err.Error() + ")"
	}
	return "on"
}
