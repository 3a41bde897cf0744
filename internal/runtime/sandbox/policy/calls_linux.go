package policy

import (
	"runtime"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// mapFlags are the kinds of mapping that count against RLIMIT_DATA as soon as they can be written to. Shared ones and those that grow
// downwards count nowhere: a gigabyte of each has been touched under a limit of a quarter of it.
const mapFlags = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_FIXED | unix.MAP_FIXED_NOREPLACE | unix.MAP_NORESERVE | unix.MAP_STACK

const readWrite = unix.PROT_READ | unix.PROT_WRITE

// An argument is a system call that is meant where all conditions hold.
func argument(name string, conditions ...seccomp.Condition) seccomp.NameWithConditions {
	return seccomp.NameWithConditions{Name: name, Conditions: conditions}
}

func is(argument uint32, value uint64) seccomp.Condition {
	return seccomp.Condition{Argument: argument, Operation: seccomp.Equal, Value: value}
}

func isNot(argument uint32, value uint64) seccomp.Condition {
	return seccomp.Condition{Argument: argument, Operation: seccomp.NotEqual, Value: value}
}

func only(argument uint32, bits uint64) seccomp.Condition {
	return seccomp.Condition{Argument: argument, Operation: seccomp.BitsNotSet, Value: ^bits}
}

// noClone3 is for the C library, which tries this call first and takes another way only when there is no such call.
var noClone3 = seccomp.SyscallGroup{Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS),
	Names: []string{"clone3"}}

// runner is an allow-list: memory, threads of this process, time, the pipes that are open. The list belongs to
// the Go version of go.mod; the whole corpus runs with otherwise = kill too, so that a newer runtime's needs show. A process may signal
// itself alone, which is pid.
func runner(otherwise seccomp.Action, pid uint64) seccomp.Policy {
	names, conditional := running(pid, wire.RaceBuild)
	names = append(names, "brk") // of the C library
	conditional = append(conditional, argument("mmap", only(2, readWrite), only(3, mapFlags)))
	return seccomp.Policy{DefaultAction: otherwise,
		Syscalls: []seccomp.SyscallGroup{{Action: seccomp.ActionAllow, Names: names, NamesWithCondtions: conditional},
			noClone3}}
}

// running is what a program needs that has started, but for what makes memory.
func running(pid uint64, race bool) (names []string, conditional []seccomp.NameWithConditions) {
	names = []string{
		"read", "write", "close", "pread64",
		"futex", "nanosleep", "clock_nanosleep", "clock_gettime", "clock_getres", "gettimeofday", "restart_syscall",
		"sched_yield", "sched_getaffinity", "getcpu",
		"munmap", "madvise", "mincore",
		"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack", "rt_sigtimedwait",
		"gettid", "getpid", "getppid", "getuid", "geteuid", "getgid", "getegid", "getrusage", "getrandom",
		"epoll_create1", "epoll_ctl", "epoll_pwait", "eventfd2",
		"set_robust_list", "rseq", "exit", "exit_group",
	}
	if runtime.GOARCH == "amd64" {
		names = append(names, "epoll_wait", "time")
	}
	if race { // the detector's runtime
		names = append(names, "personality", "fcntl", "readlinkat")
	}
	return names, []seccomp.NameWithConditions{
		argument("mprotect", only(2, readWrite)),
		argument("tgkill", is(0, pid)),
		argument("prlimit64", is(0, 0), is(2, 0)),
		argument("prctl", is(0, unix.PR_SET_VMA)),
	}
}

// What the Go runtime makes threads with. On amd64 it sets their local storage at once.
const goThread = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_SYSVSEM | unix.CLONE_THREAD

// setFS is the operation of arch_prctl by which a thread sets its local storage.
const setFS = 0x1002

// program is what an executable may do from its first instruction on. Beside what a runner may do it may make threads, name and hide itself, and put another filter on itself: package narrow
// does that, and takes it away.
func program(pid uint64) seccomp.Policy {
	names, conditional := running(pid, false)
	conditional = append(conditional,
		argument("execveat", theDescriptor()...),
		// Nothing is mapped at or around wire.EmptyPath, so that this was the one execution: mappings begin at their address and go up.
		argument("mmap", is(0, 0), only(2, readWrite), only(3, mapFlags)),
		argument("mmap", seccomp.Condition{Argument: 0, Operation: seccomp.GreaterThan,
			Value: wire.EmptyPath + wire.EmptyPathSize - 1}, only(2, readWrite), only(3, mapFlags)),
		argument("clone", is(0, goThread)),
		argument("fcntl", is(1, unix.F_GETFD)),
		argument("prctl", is(0, unix.PR_SET_DUMPABLE), is(1, 0)),
		argument("prctl", is(0, unix.PR_SET_NAME)),
		argument("seccomp", is(0, unix.SECCOMP_SET_MODE_FILTER), is(1, unix.SECCOMP_FILTER_FLAG_TSYNC)),
	)
	if runtime.GOARCH == "amd64" {
		conditional = append(conditional, argument("clone", is(0, goThread|unix.CLONE_SETTLS)),
			argument("arch_prctl", is(0, setFS)))
	}
	return seccomp.Policy{DefaultAction: seccomp.ActionErrno,
		Syscalls: []seccomp.SyscallGroup{{Action: seccomp.ActionAllow, Names: names, NamesWithCondtions: conditional},
			noClone3}}
}

// map32bit is MAP_32BIT, which amd64 alone has.
const map32bit = 0x40

// theDescriptor is the execution that a launcher does. The descriptor is closed by it, and at the path there is nothing any more.
func theDescriptor() []seccomp.Condition {
	return []seccomp.Condition{is(0, wire.ExecutableFD), is(1, wire.EmptyPath), is(4, unix.AT_EMPTY_PATH)}
}

// tool is for a compiler or linker: it may use files and memory and start threads, and has no sockets, no other processes, and nothing of the machine. It executes nothing
// after the launcher's one execution.
func tool() seccomp.Policy {
	denied := []seccomp.NameWithConditions{
		argument("clone", seccomp.Condition{Argument: 0, Operation: seccomp.BitsNotSet, Value: unix.CLONE_THREAD}),
		argument("mmap", seccomp.Condition{Argument: 0, Operation: seccomp.GreaterThan, Value: 0},
			seccomp.Condition{Argument: 0, Operation: seccomp.LessThan, Value: wire.EmptyPath + wire.EmptyPathSize}),
		argument("mmap", seccomp.Condition{Argument: 3, Operation: seccomp.BitsSet, Value: unix.MAP_GROWSDOWN}),
	}
	for _, c := range theDescriptor() {
		denied = append(denied, argument("execveat", isNot(c.Argument, c.Value)))
	}
	names := []string{
		"execve", "shmat", "mremap", "brk", // a mapping that grows could reach wire.EmptyPath
		"socket", "socketpair", "connect", "bind", "listen", "accept", "accept4", "sendto", "sendmsg", "recvfrom",
		"recvmsg", "io_uring_setup", "io_uring_enter", "io_uring_register",
		"ptrace", "kill", "tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "process_vm_readv", "process_vm_writev",
		"pidfd_open", "pidfd_getfd", "pidfd_send_signal", "setns", "unshare", "kcmp",
		"mount", "umount2", "pivot_root", "chroot", "move_mount", "fsopen", "fsmount", "open_tree", "mount_setattr",
		"open_by_handle_at",
		"bpf", "perf_event_open", "keyctl", "add_key", "request_key", "userfaultfd", "memfd_create", "memfd_secret",
		"init_module", "finit_module", "delete_module", "kexec_load",
		"fchmod", "fchmodat", "fchmodat2", "fchown", "fchownat", "mknodat", "symlinkat", "linkat", "setxattr",
		"lsetxattr", "fsetxattr",
		"setuid", "setgid", "setreuid", "setregid", "setresuid", "setresgid", "setgroups", "capset", "personality",
		"reboot", "swapon", "swapoff", "syslog",
		"shmget", "msgget", "semget", "mq_open", "inotify_init1", "fanotify_init", "clock_settime", "settimeofday",
		"sethostname", "setdomainname", "quotactl", "acct",
	}
	// the calls of before, which the generic table has no more, and the mappings around wire.EmptyPath that need no address
	if runtime.GOARCH == "amd64" {
		denied = append(denied, argument("mmap", seccomp.Condition{Argument: 3, Operation: seccomp.BitsSet,
			Value: map32bit}))
		names = append(names, "fork", "vfork", "chmod", "chown", "lchown", "mknod", "symlink", "link")
	}
	return seccomp.Policy{DefaultAction: seccomp.ActionAllow, Syscalls: []seccomp.SyscallGroup{noClone3,
		{Action: seccomp.ActionErrno, Names: names, NamesWithCondtions: denied}}}
}
