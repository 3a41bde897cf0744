// Package probe tests a confined process from inside: it attempts everything that confinement must prevent, and reports
// which attempts the kernel denied. The attempts are harmless even without confinement. The package does not apply
// confinement.
package probe

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// Each probe is one raw system call, because a library function could take another way. A probe is denied if the kernel
// refuses it for lack of rights. Any other outcome, including an error about its arguments, means that the call got
// through, and counts as ALLOWED. A probe must do no harm even without confinement, so it names things that do not
// exist or asks for something senseless.

func outcome(errno syscall.Errno) string {
	switch errno {
	case unix.EPERM, unix.EACCES, unix.ENOSYS, unix.ENETUNREACH:
		return "denied (" + unix.ErrnoName(errno) + ")"
	case 0:
		return "ALLOWED"
	}
	return "ALLOWED (" + unix.ErrnoName(errno) + ")"
}

func call(nr uintptr, args ...uintptr) syscall.Errno {
	var a [6]uintptr
	copy(a[:], args)
	_, _, errno := syscall.RawSyscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5])
	return errno
}

// texts keeps string arguments of probes reachable while raw calls use their addresses.
type texts struct{ kept [][]byte }

func (t *texts) str(s string) uintptr {
	b := append([]byte(s), 0)
	t.kept = append(t.kept, b)
	return uintptr(unsafe.Pointer(&b[0]))
}

// Network tries to connect to the daemon's listener at the loopback port, and adds the outcome to probes. It must run
// before seccomp is on. In a network namespace of its own the process cannot reach even the loopback address.
func Network(port int, probes map[string]string) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	err = unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
	errno, _ := err.(syscall.Errno)
	probes["netns: connect to the daemon"] = outcome(errno)
}

// Landlock tries to open a file and a directory, and adds the outcomes to probes. It must run before seccomp is on.
func Landlock(probes map[string]string) {
	file := "/etc/passwd"
	if unix.Access(file, unix.F_OK) != nil {
		file = "/proc/self/stat" // an image with nothing but the binary: a missing file would not be a denial
	}
	for name, path := range map[string]string{"landlock: read a file": file, "landlock: list a directory": "/"} {
		fd, err := unix.Open(path, unix.O_RDONLY, 0)
		if err == nil {
			unix.Close(fd)
		}
		errno, _ := err.(syscall.Errno)
		probes[name] = outcome(errno)
	}
}

// A probe is one raw system call.
type probe struct {
	name string
	nr   uintptr
	args []uintptr
}

// aims holds the arguments of probes: things that do not exist, or that a runner must not reach.
type aims struct {
	texts
	at, parent, self, page uintptr // AT_FDCWD, the daemon's process id, the own one, and the page size
	passwd, tmp, nowhere   uintptr // paths
	buf, lim               uintptr // scratch memory, and an Rlimit
}

const (
	readWrite = unix.PROT_READ | unix.PROT_WRITE
	anonymous = unix.MAP_ANONYMOUS
	none      = ^uintptr(0)
)

// Bounds describes limits that a process must not be able to pass.
type Bounds struct {
	Parent       int     // process id of the daemon
	Data, Mapped uintptr // bytes of writable memory, and of all mappings; 0 means no limit
}

// All makes all probes and returns the outcome of each: "denied" or "ALLOWED", with the kernel's error. It must run
// after every layer is on.
func All(b Bounds) map[string]string {
	probes := map[string]string{}
	scratch := new([512]byte) // on the heap, because a stack moves when it grows
	limit := &unix.Rlimit{Cur: 1 << 40, Max: 1 << 40}
	a := &aims{at: uintptr(unix.AT_FDCWD&(1<<32-1)) | ^uintptr(1<<32-1), parent: uintptr(b.Parent),
		self: uintptr(os.Getpid()), page: uintptr(os.Getpagesize()),
		buf: uintptr(unsafe.Pointer(scratch)), lim: uintptr(unsafe.Pointer(limit))}
	a.passwd, a.tmp, a.nowhere = a.str("/etc/passwd"), a.str("/nonexistent-recurgentd/x"),
		a.str("/nonexistent-recurgentd")
	for _, p := range slices.Concat(a.files(), a.network(), a.processes(), a.memory(), a.kernel()) {
		probes[p.name] = outcome(call(p.nr, p.args...))
	}
	probes["proc: fork"] = fork()
	b.memory(probes)
	runtime.KeepAlive(a)
	runtime.KeepAlive(scratch)
	runtime.KeepAlive(limit)
	return probes
}

// Again names the probe in which an executable executes its descriptor again. Before package narrow has run, the kernel
// finds no path (EFAULT); afterwards the filter denies the call.
const Again = "proc: execute the descriptor again"

// Launched makes all probes in a launched executable, and tries in addition whether the launcher's one permitted
// execution left a way to another.
func Launched(b Bounds) map[string]string {
	probes := All(b)
	page := uintptr(os.Getpagesize())
	probes["mem: mapping of the empty path"] = outcome(call(unix.SYS_MMAP, wire.EmptyPath, page, readWrite,
		unix.MAP_PRIVATE|unix.MAP_FIXED|anonymous, none, 0))
	probes["mem: mapping over the empty path"] = outcome(call(unix.SYS_MMAP, wire.EmptyPath-2*wire.EmptyPathSize,
		4*wire.EmptyPathSize, readWrite, unix.MAP_PRIVATE|unix.MAP_FIXED|anonymous, none, 0))
	paths := &texts{}
	for name, at := range map[string][2]uintptr{
		"proc: execute another descriptor":           {wire.AnswerFD, wire.EmptyPath},
		"proc: execute the descriptor beside a text": {wire.ExecutableFD, paths.str("")},
		"proc: execute a path":                       {wire.ExecutableFD, paths.str("/nonexistent-recurgentd")},
	} {
		probes[name] = outcome(call(unix.SYS_EXECVEAT, at[0], at[1], 0, 0, unix.AT_EMPTY_PATH))
	}
	runtime.KeepAlive(paths)
	// The filter allows the call until package narrow has run, but there is no path at the address.
	switch errno := call(unix.SYS_EXECVEAT, wire.ExecutableFD, wire.EmptyPath, 0, 0, unix.AT_EMPTY_PATH); errno {
	case unix.EFAULT:
		probes[Again] = "denied (" + unix.ErrnoName(errno) + ")"
	default:
		probes[Again] = outcome(errno)
	}
	return probes
}

// files returns the probes of the file system.
func (a *aims) files() []probe {
	return []probe{
		{"file: read", unix.SYS_OPENAT, []uintptr{a.at, a.passwd, unix.O_RDONLY}},
		{"file: environment of the daemon", unix.SYS_OPENAT, []uintptr{a.at,
			a.str(fmt.Sprintf("/proc/%d/environ", a.parent)), unix.O_RDONLY}},
		{"file: own memory", unix.SYS_OPENAT, []uintptr{a.at, a.str("/proc/self/mem"), unix.O_RDWR}},
		{"file: create", unix.SYS_OPENAT, []uintptr{a.at, a.tmp, unix.O_CREAT | unix.O_WRONLY, 0o600}},
		{"file: open how", unix.SYS_OPENAT2, []uintptr{a.at, a.passwd, a.buf, 24}},
		{"file: by handle", unix.SYS_OPEN_BY_HANDLE_AT, []uintptr{a.at, a.buf, 0}},
		{"file: status", unix.SYS_STATX, []uintptr{a.at, a.passwd, 0, 0x7ff, a.buf}},
		{"file: link", unix.SYS_LINKAT, []uintptr{a.at, a.passwd, a.at, a.tmp, 0}},
		{"file: symlink", unix.SYS_SYMLINKAT, []uintptr{a.passwd, a.at, a.tmp}},
		{"file: rename", unix.SYS_RENAMEAT2, []uintptr{a.at, a.tmp, a.at, a.tmp, 0}},
		{"file: unlink", unix.SYS_UNLINKAT, []uintptr{a.at, a.tmp, 0}},
		{"file: mkdir", unix.SYS_MKDIRAT, []uintptr{a.at, a.tmp, 0o700}},
		{"file: mknod", unix.SYS_MKNODAT, []uintptr{a.at, a.tmp, unix.S_IFIFO | 0o600, 0}},
		{"file: chmod", unix.SYS_FCHMODAT, []uintptr{a.at, a.tmp, 0o600}},
		{"file: chown", unix.SYS_FCHOWNAT, []uintptr{a.at, a.tmp, 0, 0, 0}},
		{"file: truncate", unix.SYS_TRUNCATE, []uintptr{a.tmp, 0}},
		{"file: chdir", unix.SYS_CHDIR, []uintptr{a.str("/")}},
		{"file: chroot", unix.SYS_CHROOT, []uintptr{a.str("/")}},
		{"file: access", unix.SYS_FACCESSAT, []uintptr{a.at, a.passwd, 4}},
		{"file: list", unix.SYS_GETDENTS64, []uintptr{0, a.buf, 512}},
		{"file: watch", unix.SYS_INOTIFY_INIT1, nil},
		{"file: in memory", unix.SYS_MEMFD_CREATE, []uintptr{a.str("x"), 0}},
		{"file: in secret memory", unix.SYS_MEMFD_SECRET, []uintptr{0}},
		{"file: mount", unix.SYS_MOUNT, []uintptr{a.str("none"), a.str("/"), a.str("no such type"), 0, 0}},
		{"file: unmount", unix.SYS_UMOUNT2, []uintptr{a.str("/"), 0xffff}},
		{"file: pivot", unix.SYS_PIVOT_ROOT, []uintptr{a.str("/"), a.str("/")}},
		{"file: splice", unix.SYS_TEE, []uintptr{0, 3, 1, 2}},
	}
}

// network returns the probes of sockets.
func (a *aims) network() []probe {
	return []probe{
		{"net: tcp", unix.SYS_SOCKET, []uintptr{unix.AF_INET, unix.SOCK_STREAM, 0}},
		{"net: tcp6", unix.SYS_SOCKET, []uintptr{unix.AF_INET6, unix.SOCK_STREAM, 0}},
		{"net: udp", unix.SYS_SOCKET, []uintptr{unix.AF_INET, unix.SOCK_DGRAM, 0}},
		{"net: mptcp", unix.SYS_SOCKET, []uintptr{unix.AF_INET, unix.SOCK_STREAM, 262}},
		{"net: raw", unix.SYS_SOCKET, []uintptr{unix.AF_INET, unix.SOCK_RAW, 1}},
		{"net: packet", unix.SYS_SOCKET, []uintptr{unix.AF_PACKET, unix.SOCK_RAW, 0}},
		{"net: unix", unix.SYS_SOCKET, []uintptr{unix.AF_UNIX, unix.SOCK_STREAM, 0}},
		{"net: netlink", unix.SYS_SOCKET, []uintptr{unix.AF_NETLINK, unix.SOCK_RAW, 0}},
		{"net: vsock", unix.SYS_SOCKET, []uintptr{unix.AF_VSOCK, unix.SOCK_STREAM, 0}},
		{"net: pair", unix.SYS_SOCKETPAIR, []uintptr{unix.AF_UNIX, unix.SOCK_STREAM, 0, a.buf}},
		{"net: io_uring", unix.SYS_IO_URING_SETUP, []uintptr{1, a.buf}},
	}
}

// processes returns the probes of other processes, above all of the daemon.
func (a *aims) processes() []probe {
	return []probe{
		{"proc: exec", unix.SYS_EXECVE, []uintptr{a.nowhere, 0, 0}},
		{"proc: exec at", unix.SYS_EXECVEAT, []uintptr{a.at, a.nowhere, 0, 0, 0}},
		{"proc: new namespace", unix.SYS_UNSHARE, []uintptr{unix.CLONE_NEWUSER}},
		{"proc: enter namespace", unix.SYS_SETNS, []uintptr{0, 0}},
		{"proc: signal the daemon", unix.SYS_KILL, []uintptr{a.parent, 0}},
		{"proc: signal all", unix.SYS_KILL, []uintptr{^uintptr(0), 0}},
		{"proc: signal a thread of the daemon", unix.SYS_TGKILL, []uintptr{a.parent + 1, a.parent + 1, 0}},
		{"proc: queue a signal", unix.SYS_RT_SIGQUEUEINFO, []uintptr{a.parent, 0, a.buf}},
		{"proc: trace the daemon", unix.SYS_PTRACE, []uintptr{unix.PTRACE_SEIZE, a.parent, 0, ^uintptr(0)}},
		{"proc: read the daemon's memory", unix.SYS_PROCESS_VM_READV, []uintptr{a.parent, a.buf, 1, a.buf, 1, 0}},
		{"proc: write the daemon's memory", unix.SYS_PROCESS_VM_WRITEV, []uintptr{a.parent, a.buf, 1, a.buf, 1, 0}},
		{"proc: handle of the daemon", unix.SYS_PIDFD_OPEN, []uintptr{a.parent, 0}},
		{"proc: limits of the daemon", unix.SYS_PRLIMIT64, []uintptr{a.parent, unix.RLIMIT_NOFILE, 0, a.buf}},
		{"proc: raise a limit", unix.SYS_PRLIMIT64, []uintptr{0, unix.RLIMIT_DATA, a.lim, 0}},
		{"proc: set a limit", unix.SYS_SETRLIMIT, []uintptr{unix.RLIMIT_DATA, a.lim}},
		{"proc: outlive the daemon", unix.SYS_PRCTL, []uintptr{unix.PR_SET_PDEATHSIG, 0}},
		{"proc: become dumpable", unix.SYS_PRCTL, []uintptr{unix.PR_SET_DUMPABLE, 1}},
		{"proc: leave the group", unix.SYS_SETPGID, []uintptr{0, 0}},
		{"proc: new session", unix.SYS_SETSID, nil},
		{"proc: priority", unix.SYS_SETPRIORITY, []uintptr{99, a.parent, 0}},
		{"proc: thread", unix.SYS_CLONE,
			[]uintptr{unix.CLONE_VM | unix.CLONE_SIGHAND | unix.CLONE_THREAD | unix.CLONE_FS | unix.CLONE_NEWNS}},
		{"proc: thread by the newer call", unix.SYS_CLONE3, []uintptr{0, 0}},
		{"proc: scheduler", unix.SYS_SCHED_SETAFFINITY, []uintptr{a.self, 8, a.buf}},
	}
}

// memory returns the probes of memory that no limit counts or that can be executed.
func (a *aims) memory() []probe {
	return []probe{
		{"mem: executable mapping", unix.SYS_MMAP, []uintptr{0, a.page, unix.PROT_READ | unix.PROT_EXEC,
			unix.MAP_PRIVATE | anonymous, none, 0}},
		{"mem: executable mapping beside a call's number", unix.SYS_MMAP,
			[]uintptr{a.self, a.page, unix.SYS_TGKILL<<32 | unix.PROT_READ | unix.PROT_EXEC,
				unix.MAP_PRIVATE | anonymous, none, 0}},
		{"mem: shared mapping beside a call's number", unix.SYS_MMAP,
			[]uintptr{a.self, a.page, unix.SYS_TGKILL<<32 | readWrite, unix.MAP_SHARED | anonymous, none, 0}},
		{"mem: shared mapping", unix.SYS_MMAP, []uintptr{0, a.page, readWrite, unix.MAP_SHARED | anonymous, none, 0}},
		{"mem: validated shared mapping", unix.SYS_MMAP, []uintptr{0, a.page, readWrite,
			unix.MAP_SHARED_VALIDATE | anonymous, none, 0}},
		{"mem: mapping that grows", unix.SYS_MMAP, []uintptr{0, a.page, readWrite,
			unix.MAP_PRIVATE | unix.MAP_GROWSDOWN | anonymous, none, 0}},
		{"mem: mapping of huge pages", unix.SYS_MMAP, []uintptr{0, a.page, readWrite,
			unix.MAP_PRIVATE | unix.MAP_HUGETLB | anonymous, none, 0}},
		{"mem: locked mapping", unix.SYS_MMAP, []uintptr{0, a.page, readWrite,
			unix.MAP_PRIVATE | unix.MAP_LOCKED | anonymous, none, 0}},
		{"mem: mapping of a file", unix.SYS_MMAP, []uintptr{0, a.page, unix.PROT_READ, unix.MAP_SHARED, 0, 0}},
		{"mem: move a mapping", unix.SYS_MREMAP, []uintptr{1, 0, 0, 0, 0}},
		{"mem: lock", unix.SYS_MLOCK, []uintptr{a.buf &^ (a.page - 1), a.page}},
		{"mem: lock all", unix.SYS_MLOCKALL, []uintptr{0}},
		{"mem: attach shared", unix.SYS_SHMAT, []uintptr{none, 0, 0}},
		{"mem: make executable", unix.SYS_MPROTECT, []uintptr{a.buf &^ (a.page - 1), a.page,
			unix.PROT_READ | unix.PROT_WRITE | unix.PROT_EXEC}},
		{"mem: protection keys", unix.SYS_PKEY_MPROTECT, []uintptr{0, 0, 0, 0}},
		{"mem: faults", unix.SYS_USERFAULTFD, []uintptr{0}},
		{"mem: shared", unix.SYS_SHMGET, []uintptr{0x7265637, a.page, 0}},
		{"mem: messages", unix.SYS_MSGGET, []uintptr{0x7265637, 0}},
		{"mem: semaphores", unix.SYS_SEMGET, []uintptr{0x7265637, 1, 0}},
		{"mem: queue", unix.SYS_MQ_OPEN, []uintptr{a.str("recurgentd-none"), unix.O_RDWR, 0, 0}},
	}
}

// kernel returns the probes of what belongs to the whole machine.
func (a *aims) kernel() []probe {
	return []probe{
		{"kernel: bpf", unix.SYS_BPF, []uintptr{0, a.buf, 48}},
		{"kernel: perf", unix.SYS_PERF_EVENT_OPEN, []uintptr{a.buf, 0, ^uintptr(0), ^uintptr(0), 0}},
		{"kernel: keys", unix.SYS_ADD_KEY, []uintptr{a.str("user"), a.str("x"), a.buf, 1, ^uintptr(2)}},
		{"kernel: key control", unix.SYS_KEYCTL, []uintptr{0, ^uintptr(2), 1}},
		{"kernel: become root", unix.SYS_SETRESUID, []uintptr{0, 0, 0}},
		{"kernel: capabilities", unix.SYS_CAPSET, []uintptr{a.buf, a.buf}},
		{"kernel: another filter", unix.SYS_SECCOMP, []uintptr{99, 0, 0}},
		{"kernel: device control", unix.SYS_IOCTL, []uintptr{0, 0x541B, a.buf}},
		{"kernel: host name", unix.SYS_SETHOSTNAME, []uintptr{a.str("x"), 1 << 20}},
		{"kernel: clock", unix.SYS_CLOCK_SETTIME, []uintptr{0x7fffffff, a.buf}},
		{"kernel: modules", unix.SYS_FINIT_MODULE, []uintptr{0, 0, 0}},
		{"kernel: log", unix.SYS_SYSLOG, []uintptr{3, a.buf, 512}},
		{"kernel: system", unix.SYS_UNAME, []uintptr{a.buf}},
	}
}

// fork tries to create a child process, which would end at once.
func fork() string {
	pid, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno == 0 && pid == 0 {
		syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
	return outcome(errno)
}

// memory asks for more memory than the process may have, and adds the outcomes to probes.
func (b Bounds) memory(probes map[string]string) {
	for name, ask := range map[string]struct{ bytes, prot uintptr }{
		"mem: beyond the limit":         {b.Data, unix.PROT_READ | unix.PROT_WRITE},
		"mem: beyond the address space": {b.Mapped, unix.PROT_READ},
	} {
		if ask.bytes == 0 {
			continue
		}
		errno := call(unix.SYS_MMAP, 0, ask.bytes, ask.prot, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS, ^uintptr(0), 0)
		if errno == unix.ENOMEM {
			errno = unix.EPERM
		}
		probes[name] = outcome(errno)
	}
}
