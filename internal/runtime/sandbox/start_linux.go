package sandbox

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/confine"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/policy"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// forkForbidden says that a runner cannot have children, so that its process is all there is to kill.
const forkForbidden = true

// rssUnit is the unit of Rusage.Maxrss in bytes.
const rssUnit = 1024

func selfExe() (string, error) { return "/proc/self/exe", nil }

// openMemory makes an image of the program in memory: a file without a directory, which nobody can change any more.
func openMemory(name, program string) (*image, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_EXEC)
	if err == unix.EINVAL { // the kernel is older than MFD_EXEC
		fd, err = unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	_, err = f.WriteString(program)
	if err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS,
			unix.F_SEAL_WRITE|unix.F_SEAL_GROW|unix.F_SEAL_SHRINK|unix.F_SEAL_SEAL)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return fileImage(name, f)
}

// openUnlinked makes an image of the program on the disk of the directory: a file that never has a name, and that nobody has open for writing.
func openUnlinked(dir, name, program string) (*image, error) {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	w := os.NewFile(uintptr(fd), name)
	defer w.Close()
	if _, err = w.WriteString(program); err != nil {
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

// onMainThread reports whether the calling thread is the one that stands for the process in /proc.
func onMainThread() bool { return unix.Gettid() == unix.Getpid() }

// restrictSpawner gives up, for the calling thread and all that it starts, what an execution could gain. Runners would do so themselves, and must
// do so on each of their threads. It also lets their timers be late: the Go runtime looks after its threads every 20 µs while anything runs, which is
// a tenth of what a cold call costs.
func restrictSpawner() {
	unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) // where it fails, runners say so
	unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(timerSlack), 0, 0, 0)
}

// underLandlock returns an image of the same file whose processes are under landlock from their start, from a thread that can do nothing else: they may
// read and execute this file as far as landlock is concerned, which seccomp forbids them. To put it on themselves they would stop each of their threads; and
// the Go runtime would read what it finds in /proc first. Kernels before 6.15 would not let the thread signal the others of the daemon.
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

// underLandlock reports whether a thread under landlock can start processes in this way: for a user namespace it would have to write to files.
func (p plan) underLandlock() bool { return !p.userns }

// timerSlack is how late the kernel may be with a timer of a runner.
const timerSlack = time.Millisecond

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
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: wire.Nobody, HostID: os.Geteuid(), Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: wire.Nobody, HostID: os.Getegid(), Size: 1}}
	}
	if p.uid {
		a.Credential = &syscall.Credential{Uid: wire.Nobody, Gid: wire.Nobody}
	}
	return a
}

// shared are namespaces in which no runner can change anything, whatever it may call, since it has no capability. To make one of each for every
// runner takes as much processor time as the start of a process. In the network namespace nothing is up, the
// loopback interface neither, and no runner may make a socket.
var shared = []uintptr{unix.CLONE_NEWNET, unix.CLONE_NEWNS, unix.CLONE_NEWUTS, unix.CLONE_NEWCGROUP}

// attributes are the plan's. Where the thread may have namespaces of the shared kinds, it takes one of each that all runners have in common.
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

// protectDaemon closes the daemon's memory and environment to runners of the same user, where nothing else does.
func protectDaemon(p plan) {
	if !p.userns { // a user namespace cannot be set up for a process that is not dumpable
		unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	}
}

// giveAway makes the directory one that tools can go through, and in it the file that they write, as their user.
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

// toolTasks is how many threads a tool may have: some ten are what it needs. Where it has no user of its own, the kernel would count those of others, and
// sets no bound.
func (p plan) toolTasks() int64 {
	if !p.uid && !p.userns {
		return 0
	}
	return 64
}

// toolUser returns a user for the tools of one build, as they see it.
func (p plan) toolUser() int {
	if p.uid {
		return toolUsers().any()
	}
	return wire.Nobody
}

// beTool has the process that is about to be started be a tool's.
func (p plan) beTool(a *syscall.SysProcAttr, user int) {
	if a.Credential != nil {
		a.Credential = &syscall.Credential{Uid: uint32(user), Gid: uint32(user)}
	}
}

// launchPath is "": a launcher executes the open file.
func launchPath(*os.File) string { return "" }

// leastAside is above every descriptor that a process is given as it starts. They are put in their places before the system looks up the path of its program: one that had a lower number
// would lead to something else then.
const leastAside = 64

// aside returns the open file under a number of leastAside or more, in the place of the one that it had.
func aside(f *os.File) (*os.File, error) {
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, leastAside)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// executablePath is how a process that is being started names a file that the daemon has open.
func executablePath(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }
