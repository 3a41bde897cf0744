package sandbox

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"golang.org/x/sys/unix"
)

// forkForbidden says that a runner cannot have children, so that its process is all there is to kill.
const forkForbidden = true

// rssUnit is the unit of Rusage.Maxrss in bytes.
const rssUnit = 1024

// nobody is the user that runners become when the daemon is root.
const nobody = 65534

func selfExe() (string, error) { return "/proc/self/exe", nil }

// sealInherited keeps what the daemon has inherited, or opens without care, from its children.
func sealInherited() {
	if unix.CloseRange(3, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		var fd int
		if _, err := fmt.Sscan(e.Name(), &fd); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}

// A plan is how runners are started: what only the parent can do for their confinement.
type plan struct {
	namespaces uintptr
	userns     bool
	uid        bool
}

// plans lists the ways to start a runner, the best first. The canary takes the first that works.
func plans() []plan {
	const all = unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
	if os.Geteuid() == 0 {
		return []plan{{namespaces: all, uid: true}, {uid: true}, {namespaces: all}, {}}
	}
	return []plan{{namespaces: all | unix.CLONE_NEWUSER, userns: true}, {}}
}

func (p plan) attributes() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Cloneflags: p.namespaces}
	if p.userns {
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: nobody, HostID: os.Geteuid(), Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: nobody, HostID: os.Getegid(), Size: 1}}
	}
	if p.uid {
		a.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	return a
}

// protectDaemon closes the daemon's memory and environment to runners of the same user, where nothing else does.
func protectDaemon(p plan) {
	if !p.userns { // a user namespace cannot be set up for a process that is not dumpable
		unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	}
}

// namespaceNames are the files of /proc/self/ns by layer.
func namespaceNames() map[string]string {
	return map[string]string{"pidns": "pid", "netns": "net", "mntns": "mnt", "ipcns": "ipc", "utsns": "uts", "userns": "user"}
}

// ownNamespaces reads which namespaces this process is in.
func ownNamespaces() map[string]string {
	out := map[string]string{}
	for layer, name := range namespaceNames() {
		if target, err := os.Readlink("/proc/self/ns/" + name); err == nil {
			out[layer] = target
		}
	}
	return out
}

// addressSpace is what a runner may map beside its memory: the Go runtime reserves much, and touches little of it.
const addressSpace = 4 << 30

// limitProcess sets the limits of the runner process.
func limitProcess(cfg *childConfig, layers map[string]string) {
	var faults []string
	limit := func(name string, resource int, value uint64) {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: value, Max: value}); err != nil {
			faults = append(faults, name+": "+err.Error())
		}
	}
	// Address space alone says little: an idle Go process has over a gigabyte of it. But page tables count nowhere else, and take a
	// 512th part of what is mapped, even where it can only be read. Not RLIMIT_NPROC: it counts the user, not the process.
	if !raceBuild { // the race detector maps terabytes of shadow
		limit("data", unix.RLIMIT_DATA, uint64(cfg.Memory))
		limit("as", unix.RLIMIT_AS, uint64(addressSpace+4*cfg.Memory))
	}
	limit("cpu", unix.RLIMIT_CPU, uint64(cfg.CPUSeconds))
	limit("nofile", unix.RLIMIT_NOFILE, 16)
	limit("fsize", unix.RLIMIT_FSIZE, 0)
	limit("core", unix.RLIMIT_CORE, 0)
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		faults = append(faults, "dumpable: "+err.Error())
	}
	layers["rlimits"] = onOff(faults)
}

func onOff(faults []string) string {
	if len(faults) > 0 {
		return "off (" + strings.Join(faults, "; ") + ")"
	}
	return "on"
}

// confineProcess puts the layers on, inner ones first, and tells what it did. In a canary it probes between them.
func confineProcess(cfg *childConfig, ready *childReady) {
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
	reserveThreads(runnerThreads) // under landlock already, and before seccomp, which allows no more
	ready.Layers["seccomp"] = seccompLayer(cfg.Kill)
	if cfg.Probe {
		probeAll(cfg, ready)
	}
}

func observeNamespaces(cfg *childConfig, layers map[string]string) {
	mine := ownNamespaces()
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
	if os.Getuid() == nobody && os.Geteuid() == nobody {
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
