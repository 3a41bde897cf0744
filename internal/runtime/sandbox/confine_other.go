//go:build !linux

package sandbox

import (
	"os"
	"strings"
	"syscall"
	"time"
)

// forkForbidden says that a runner cannot have children. Here nothing forbids it.
const forkForbidden = false

// rssUnit is the unit of Rusage.Maxrss in bytes.
const rssUnit = 1

func selfExe() (string, error) { return os.Executable() }

func sealInherited() {}

// A plan is how runners are started. There is one here.
type plan struct{}

func plans() []plan { return []plan{{}} }

func (plan) attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func protectDaemon(plan) {}

func ownNamespaces() map[string]string { return nil }

// cpuTime is not known here: time that a program burns while it waits is not charged.
func (r *runner) cpuTime() time.Duration { return 0 }

// openUsage has nothing to open: what a runner holds is not known here.
func openUsage(int) *os.File { return nil }

// resident takes a runner for small.
func (r *runner) resident() (int64, bool) { return 0, true }

func offerToOOM(int) string { return "off (not on this system)" }

// taskRoom knows of no limit.
func taskRoom() (room int, limit string) { return 0, "" }

// limitProcess sets the limits that this system has.
func limitProcess(cfg *childConfig, layers map[string]string) {
	var faults []string
	limit := func(name string, resource int, value uint64) {
		if err := syscall.Setrlimit(resource, &syscall.Rlimit{Cur: value, Max: value}); err != nil {
			faults = append(faults, name+": "+err.Error())
		}
	}
	limit("cpu", syscall.RLIMIT_CPU, uint64(cfg.CPUSeconds))
	limit("nofile", syscall.RLIMIT_NOFILE, 16)
	limit("fsize", syscall.RLIMIT_FSIZE, 0)
	limit("core", syscall.RLIMIT_CORE, 0)
	layers["rlimits"] = "on"
	if len(faults) > 0 {
		layers["rlimits"] = "off (" + strings.Join(faults, "; ") + ")"
	}
}

// confineProcess has nothing to put on: a process of its own with limits is all there is.
func confineProcess(_ *childConfig, ready *childReady) {
	ready.Layers["seccomp"] = "off (not on this system)"
}

// landlockFirst has nothing to do here.
func landlockFirst() {}
