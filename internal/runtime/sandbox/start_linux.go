package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/confine"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/policy"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// forkForbidden reports whether a runner cannot have children, so killing its process is enough.
const forkForbidden = true

// rssUnit is the unit of Rusage.Maxrss in bytes.
const rssUnit = 1024

func selfExe() (string, error) { return "/proc/self/exe", nil }

// openMemory returns an image of the program in memory: a sealed memfd, which nobody can change.
func openMemory(name string, write func(io.Writer) error) (*image, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_EXEC)
	if err == unix.EINVAL { // the kernel is older than MFD_EXEC
		fd, err = unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	if err = write(f); err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS,
			unix.F_SEAL_WRITE|unix.F_SEAL_GROW|unix.F_SEAL_SHRINK|unix.F_SEAL_SEAL)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return fileImage(name, f)
}

// openUnlinked returns an image of the program on the disk of dir: a file that never has a name and that nobody has
// open for writing.
func openUnlinked(dir, name string, write func(io.Writer) error) (*image, error) {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	w := os.NewFile(uintptr(fd), name)
	defer w.Close()
	if err = write(w); err != nil {
		return nil, err
	}
	if err = w.Chmod(0o555); err != nil { // runners may have another user
		return nil, err
	}
	r, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return nil, err
	}
	return fileImage(name, r)
}

// onMainThread reports whether the calling thread is the main thread, which represents the process in /proc.
func onMainThread() bool { return unix.Gettid() == unix.Getpid() }

// restrictSpawner sets no_new_privs for the calling thread and all processes that it starts. Otherwise runners would
// have to set it on each of their threads. It also gives them a large timer slack: the Go runtime wakes every 20 µs to
// look after its threads while anything runs, which is a tenth of the cost of a cold call.
func restrictSpawner() {
	unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) // runners report whether it holds
	unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(timerSlack), 0, 0, 0)
}

// underLandlock returns an image of the same file whose processes are under landlock from their start. A spawner with a
// restricted thread starts them. Landlock lets them read and execute only this file, and seccomp forbids that as well.
// If runners restricted themselves, they would have to stop all their threads first, and the Go runtime would already
// have read files in /proc. It needs landlock ABI 7 (Linux 6.15): before, a restricted thread cannot signal the
// daemon's other threads.
func underLandlock(of *image, fault func() error) (*image, error) {
	c := policy.OneFile(int(of.file.Fd()))
	if c.Landlock == nil || c.Landlock.ABI < 7 {
		return nil, errors.ErrUnsupported
	}
	by, err := startSpawner(fault, func() error {
		if state := confine.Landlock(c, confine.Thread); !confine.On(state) {
			return errors.New("landlock is " + state)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &image{path: of.path, args: of.args, build: of.build, file: of.file, under: by}, nil
}

// underLandlock reports whether a thread under landlock can start processes by this plan. A user namespace would
// require it to write files.
func (p plan) underLandlock() bool { return !p.userns }

// timerSlack is how late the kernel may fire a runner's timers.
const timerSlack = time.Millisecond

// sealInherited sets close-on-exec on all descriptors above 2, so that children do not get files that the daemon has
// inherited or opened without the flag.
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

// A plan is a way to start runners. It covers the confinement that only the parent process can set up.
type plan struct {
	namespaces uintptr // clone flags
	userns     bool    // namespaces includes a user namespace
	uid        bool    // runners get a user of their own
}

// plans returns the ways to start a runner, the strongest first. The canary takes the first that works.
func plans() []plan {
	const all = unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
	if os.Geteuid() == 0 {
		return []plan{{namespaces: all, uid: true}, {uid: true}, {namespaces: all}, {}}
	}
	return []plan{{namespaces: all | unix.CLONE_NEWUSER, userns: true}, {}}
}

func (p plan) attributes() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Cloneflags: p.namespaces}
	if p.userns {
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: wire.Nobody, HostID: os.Geteuid(), Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: wire.Nobody, HostID: os.Getegid(), Size: 1}}
	}
	if p.uid {
		a.Credential = &syscall.Credential{Uid: wire.Nobody, Gid: wire.Nobody}
	}
	return a
}

// shared lists namespaces in which no runner can change anything, because it has no capabilities. Creating them for
// every runner would take as much processor time as starting its process. No interface of the network namespace is up,
// not even loopback, and runners cannot create sockets.
var shared = []uintptr{unix.CLONE_NEWNET, unix.CLONE_NEWNS, unix.CLONE_NEWUTS, unix.CLONE_NEWCGROUP}

// attributes returns the attributes of the plan. With a plan that allows it, the spawner's thread first unshares each
// of the shared namespaces once, for all runners in common.
func (s *spawner) attributes() *syscall.SysProcAttr {
	a := s.plan.attributes()
	if !s.plan.userns && s.plan.uid {
		for _, kind := range shared {
			if a.Cloneflags&kind&^s.given != 0 && unix.Unshare(int(kind)) == nil {
				s.given |= kind
			}
		}
	}
	a.Cloneflags &^= s.given
	return a
}

// protectDaemon denies runners of the same user access to the daemon's memory and environment, if the plan does not do
// so already.
func protectDaemon(p plan) {
	if !p.userns { // a user namespace cannot be set up for a non-dumpable process
		unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	}
}

// giveAway lets tools traverse the directory and creates the file that they write, owned by their user. The caller
// closes it.
func (p plan) giveAway(dir *os.File, name string, user int) (*os.File, error) {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC,
		0o644)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	out := os.NewFile(uintptr(fd), name)
	if p.uid {
		err = errors.Join(dir.Chmod(0o755), out.Chown(user, user))
	}
	if err != nil {
		out.Close()
		return nil, err
	}
	return out, nil
}

// toolTasks returns how many threads a tool may have; it needs about ten. Without a user of its own there is no bound
// (0), because the kernel would count threads of other processes, too.
func (p plan) toolTasks() int64 {
	if !p.uid && !p.userns {
		return 0
	}
	return 64
}

// toolUser returns the user for the tools of one build, as seen inside their namespace.
func (p plan) toolUser() int {
	if p.uid {
		return toolUsers().any()
	}
	return wire.Nobody
}

// beTool sets the tool's user on a process about to be started, if the plan changes users.
func (p plan) beTool(a *syscall.SysProcAttr, user int) {
	if a.Credential != nil {
		a.Credential = &syscall.Credential{Uid: uint32(user), Gid: uint32(user)}
	}
}

// launchPath returns "": a launcher executes the open file.
func launchPath(*os.File) string { return "" }

// leastAside is greater than every descriptor that a new process is given. Those are put in place before the kernel
// resolves the program's path, and would replace the file behind a lower number.
const leastAside = 64

// aside moves the open file to a descriptor of leastAside or more, and closes f.
func aside(f *os.File) (*os.File, error) {
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, leastAside)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// executablePath returns the path by which a process being started can name a file that the daemon has open.
func executablePath(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }
