package policy

import (
	"runtime"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// mapFlags are the mapping flags under which writable memory counts against RLIMIT_DATA. Shared mappings and those that
// grow downwards do not count: a test touched a gigabyte of each under a limit of 256 MiB.
const mapFlags = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_FIXED | unix.MAP_FIXED_NOREPLACE |
	unix.MAP_NORESERVE | unix.MAP_STACK

const readWrite = unix.PROT_READ | unix.PROT_WRITE

// argument returns a rule for a system call if all conditions on its arguments hold.
func argument(name string, conditions ...seccomp.Condition) seccomp.NameWithConditions {
	return seccomp.NameWithConditions{Name: name, Conditions: conditions}
}

func is(argument uint32, value uint64) seccomp.Condition {
	return seccomp.Condition{Argument: argument, Operation: seccomp.Equal, Value: value}
}

func isNot(argument uint32, value uint64) seccomp.Condition {
	return seccomp.Condition{Argument: argument, Operation: seccomp.NotEqual, Value: value}
}

// only holds if the argument has no bits other than these.
func only(argument uint32, bits uint64) seccomp.Condition {
	return seccomp.Condition{Argument: argument, Operation: seccomp.BitsNotSet, Value: ^bits}
}

// noClone3 makes clone3 fail with ENOSYS: the C library tries it first and falls back to clone only on that error.
var noClone3 = seccomp.SyscallGroup{Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS),
	Names: []string{"clone3"}}

// runner returns the allow-list of a runner: memory, threads of this process, time, and the open pipes. The list fits
// the Go version of go.mod. The whole corpus is also run with otherwise = kill, so that new needs of a newer Go runtime
// are noticed. A process may signal only itself, whose id is pid.
func runner(otherwise seccomp.Action, pid uint64) seccomp.Policy {
	names, conditional := running(pid, wire.RaceBuild)
	names = append(names, "brk") // of the C library
	conditional = append(conditional, argument("mmap", only(2, readWrite), only(3, mapFlags)))
	return seccomp.Policy{DefaultAction: otherwise,
		Syscalls: []seccomp.SyscallGroup{{Action: seccomp.ActionAllow, Names: names, NamesWithCondtions: conditional},
			noClone3}}
}

// running returns the calls that a started program needs, except those that map memory.
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
	if race { // the race detector's runtime
		names = append(names, "personality", "fcntl", "readlinkat")
	}
	return names, []seccomp.NameWithConditions{
		argument("mprotect", only(2, readWrite)),
		argument("tgkill", is(0, pid)),
		argument("prlimit64", is(0, 0), is(2, 0)),
		argument("prctl", is(0, unix.PR_SET_VMA)),
	}
}

// goThread are the clone flags with which the Go runtime creates threads. On amd64 it adds CLONE_SETTLS.
const goThread = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND |
	unix.CLONE_SYSVSEM | unix.CLONE_THREAD

// setFS is ARCH_SET_FS, the operation of arch_prctl by which a thread sets its thread-local storage.
const setFS = 0x1002

// program returns the allow-list of an executable from its first instruction on. In addition to a runner's calls it may
// create threads, name itself, become non-dumpable and install another filter. Package narrow does all that and then
// forbids it.
func program(pid uint64) seccomp.Policy {
	names, conditional := running(pid, false)
	conditional = append(conditional,
		argument("execveat", theDescriptor()...),
		// Nothing may be mapped at or around wire.EmptyPath, so the launcher's execveat is the only one that succeeds.
		// Mappings must be at address 0 (any) or above: they extend upwards from their address.
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

// map32bit is MAP_32BIT, which exists on amd64 only.
const map32bit = 0x40

// theDescriptor returns the conditions of the launcher's execveat. Execution closes the descriptor and unmaps the path,
// so it cannot be repeated.
func theDescriptor() []seccomp.Condition {
	return []seccomp.Condition{is(0, wire.ExecutableFD), is(1, wire.EmptyPath), is(4, unix.AT_EMPTY_PATH)}
}

// tool returns the deny-list of a compiler or linker. It may use files and memory and start threads, but has no
// sockets, no other processes, and no control of the machine. After the launcher's execution it cannot execute
// anything.
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
	// amd64 also has legacy calls that the generic table lacks, and mappings near wire.EmptyPath without an address.
	if runtime.GOARCH == "amd64" {
		denied = append(denied, argument("mmap", seccomp.Condition{Argument: 3, Operation: seccomp.BitsSet,
			Value: map32bit}))
		names = append(names, "fork", "vfork", "chmod", "chown", "lchown", "mknod", "symlink", "link")
	}
	return seccomp.Policy{DefaultAction: seccomp.ActionAllow, Syscalls: []seccomp.SyscallGroup{noClone3,
		{Action: seccomp.ActionErrno, Names: names, NamesWithCondtions: denied}}}
}
