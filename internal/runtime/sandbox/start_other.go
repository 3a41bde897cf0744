//go:build !linux

package sandbox

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// forkForbidden reports whether a runner cannot have children. Nothing forbids that here.
const forkForbidden = false

// rssUnit is the unit of Rusage.Maxrss in bytes.
const rssUnit = 1

func selfExe() (string, error) { return os.Executable() }

// openMemory fails: this system executes only files that have a name.
func openMemory(string, func(io.Writer) error) (*image, error) { return nil, errors.ErrUnsupported }

// openUnlinked fails for the same reason.
func openUnlinked(string, string, func(io.Writer) error) (*image, error) {
	return nil, errors.ErrUnsupported
}

// underLandlock fails: this system has no landlock.
func underLandlock(*image, func() error) (*image, error) { return nil, errors.ErrUnsupported }

func (plan) underLandlock() bool { return false }

func restrictSpawner() {}

func onMainThread() bool { return false }

func sealInherited() {}

// A plan is a way to start runners. This system has only one.
type plan struct{}

func plans() []plan { return []plan{{}} }

func (plan) attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func (s *spawner) attributes() *syscall.SysProcAttr { return s.plan.attributes() }

func protectDaemon(plan) {}

// cpuTime returns 0: it is not known here. Processor time that a program uses while it waits is not charged.
func (r *runner) cpuTime() time.Duration { return 0 }

// openUsage returns nil: a runner's memory is not known here.
func openUsage(int) *os.File { return nil }

// resident returns a small constant, because the memory of a runner is not known here.
func (r *runner) resident() (all, own int64, ok bool) { return 2 * leastHeld, 2 * leastHeld, true }

func offerToOOM(int) string { return "off (not on this system)" }

// fileLimit reports no limit.
func fileLimit() (n int, ok bool) { return 0, false }

// taskRoom reports no limit.
func taskRoom() (room int, limit string) { return 0, "" }

// giveAway creates the file that tools write. Tools run as the daemon's user here.
func (p plan) giveAway(dir *os.File, name string, _ int) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir.Name(), name), os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o644)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (p plan) toolTasks() int64 { return 0 }

func (p plan) toolUser() int { return wire.Nobody }

func (p plan) beTool(*syscall.SysProcAttr, int) {}

// launchPath returns the file's path: this system cannot execute an open file.
func launchPath(f *os.File) string { return f.Name() }

// aside returns f: processes are started by path here.
func aside(f *os.File) (*os.File, error) { return f, nil }

// executablePath returns the path by which a process being started can name f.
func executablePath(f *os.File) string { return f.Name() }
