//go:build !linux

package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// forkForbidden says that a runner cannot have children. Here nothing forbids it.
const forkForbidden = false

// rssUnit is the unit of Rusage.Maxrss in bytes.
const rssUnit = 1

func selfExe() (string, error) { return os.Executable() }

// openMemory fails: here a file must have a name to be executed.
func openMemory(string, string) (*image, error) { return nil, errors.ErrUnsupported }

// openUnlinked fails in the same way.
func openUnlinked(string, string, string) (*image, error) { return nil, errors.ErrUnsupported }

// underLandlock fails: there is none here.
func underLandlock(*image, func() error) (*image, error) { return nil, errors.ErrUnsupported }

func (plan) underLandlock() bool { return false }

func restrictSpawner() {}

func onMainThread() bool { return false }

func sealInherited() {}

// A plan is how runners are started. There is one here.
type plan struct{}

func plans() []plan { return []plan{{}} }

func (plan) attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func (s *spawner) attributes() *syscall.SysProcAttr { return s.plan.attributes() }

func protectDaemon(plan) {}

// cpuTime is not known here: time that a program burns while it waits is not charged.
func (r *runner) cpuTime() time.Duration { return 0 }

// openUsage has nothing to open: what a runner holds is not known here.
func openUsage(int) *os.File { return nil }

// resident takes a runner for small.
func (r *runner) resident() (all, own int64, ok bool) { return 2 * leastHeld, 2 * leastHeld, true }

func offerToOOM(int) string { return "off (not on this system)" }

// fileLimit returns no limit.
func fileLimit() (n int, ok bool) { return 0, false }

// taskRoom knows of no limit.
func taskRoom() (room int, limit string) { return 0, "" }

// giveAway makes the file in the directory that tools write. They have the daemon's user.
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

// launchPath is the file's path: no open file can be executed here.
func launchPath(f *os.File) string { return f.Name() }

// aside returns the file: processes are started by paths.
func aside(f *os.File) (*os.File, error) { return f, nil }

// executablePath is how a process that is being started names a file that the daemon has open.
func executablePath(f *os.File) string { return f.Name() }
