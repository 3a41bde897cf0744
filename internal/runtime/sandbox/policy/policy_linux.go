// Package policy says what confined processes may ask of the kernel. The daemon sends it to runners, native executables and tools, which have no code
// to make it.
package policy

import (
	"encoding/binary"
	"runtime"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/landlock"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// mapFlags are the kinds of mapping that count against RLIMIT_DATA as soon as they can be written to. Shared ones and those that grow
// downwards count nowhere: a gigabyte of each has been touched under a limit of a quarter of it.
const mapFlags = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_FIXED | unix.MAP_FIXED_NOREPLACE | unix.MAP_NORESERVE | unix.MAP_STACK

// syscallPolicy is an allow-list: memory, threads of this process, time, the pipes that are open. The list belongs to
// the Go version of go.mod; the whole corpus runs with otherwise = kill too, so that a newer runtime's needs show. A process may signal
// itself alone, which is pid.
func syscalls(otherwise seccomp.Action, pid uint64) seccomp.Policy {
	names := []string{
		"read", "write", "close", "pread64",
		"futex", "nanosleep", "clock_nanosleep", "clock_gettime", "clock_getres", "gettimeofday", "restart_syscall", "sched_yield", "sched_getaffinity", "getcpu",
		"munmap", "madvise", "mincore", "brk",
		"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack", "rt_sigtimedwait",
		"gettid", "getpid", "getppid", "getuid", "geteuid", "getgid", "getegid", "getrusage", "getrandom",
		"epoll_create1", "epoll_ctl", "epoll_pwait", "eventfd2",
		"set_robust_list", "rseq", "exit", "exit_group",
	}
	if runtime.GOARCH == "amd64" {
		names = append(names, "epoll_wait", "time")
	}
	if wire.RaceBuild { // the detector's runtime
		names = append(names, "personality", "fcntl", "readlinkat")
	}
	arg := func(name string, conditions ...seccomp.Condition) seccomp.NameWithConditions {
		return seccomp.NameWithConditions{Name: name, Conditions: conditions}
	}
	only := func(argument uint32, bits uint64) seccomp.Condition {
		return seccomp.Condition{Argument: argument, Operation: seccomp.BitsNotSet, Value: ^bits}
	}
	return seccomp.Policy{
		DefaultAction: otherwise,
		Syscalls: []seccomp.SyscallGroup{
			{Action: seccomp.ActionAllow, Names: names},
			{Action: seccomp.ActionAllow, NamesWithCondtions: []seccomp.NameWithConditions{
				arg("mmap", only(2, unix.PROT_READ|unix.PROT_WRITE), only(3, mapFlags)),
				arg("mprotect", only(2, unix.PROT_READ|unix.PROT_WRITE)),
				arg("tgkill", seccomp.Condition{Argument: 0, Operation: seccomp.Equal, Value: pid}),
				arg("prlimit64", seccomp.Condition{Argument: 0, Operation: seccomp.Equal, Value: 0}, seccomp.Condition{Argument: 2, Operation: seccomp.Equal, Value: 0}),
				arg("prctl", seccomp.Condition{Argument: 0, Operation: seccomp.Equal, Value: unix.PR_SET_VMA}),
			}},
			// The C library tries clone3 first and takes another way only when there is no such call.
			{Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS), Names: []string{"clone3"}},
		},
	}
}

// markedPID is no number that a process can have: the kernel's are below 2^22.
const markedPID = 0x7fc0ffee

// Confinement returns what a runner or a native executable must put on itself. System calls that are not allowed fail with EPERM, or kill the process.
func Confinement(kill bool) (*wire.Confinement, error) {
	action := seccomp.ActionErrno
	if kill {
		action = seccomp.ActionKillProcess
	}
	filter, err := assemble(syscalls(action, markedPID))
	if err != nil {
		return nil, err
	}
	c := &wire.Confinement{Filter: filter, PID: markedPID}
	abi, off := landlock.Supported()
	if off != "" {
		c.Given = off
		return c, nil
	}
	attr := landlock.Everything(abi)
	c.Landlock = &wire.Ruleset{ABI: abi, FS: attr.HandledAccessFS, Net: attr.HandledAccessNet, Scoped: attr.Scoped}
	return c, nil
}

// assemble returns the filter as the kernel takes it.
func assemble(p seccomp.Policy) ([]byte, error) {
	// The library loads a call's number once, and an argument in its place where it looks at one: what follows a call whose conditions do not hold compares that
	// argument with numbers of calls. So each such call is a policy of its own, whose default is the next one.
	var program []bpf.Instruction
	for _, group := range apart(p.Syscalls) {
		one := seccomp.Policy{DefaultAction: p.DefaultAction, Syscalls: []seccomp.SyscallGroup{group}}
		part, err := one.Assemble()
		if err != nil {
			return nil, err
		}
		program = append(program, part[:len(part)-1]...)
	}
	rest := seccomp.NewProgram()
	rest.Ret(p.DefaultAction)
	last, err := rest.Assemble()
	if err != nil {
		return nil, err
	}
	raw, err := bpf.Assemble(append(program, last...))
	if err != nil {
		return nil, err
	}
	var filter []byte
	for _, in := range raw {
		filter = append(binary.NativeEndian.AppendUint16(filter, in.Op), in.Jt, in.Jf)
		filter = binary.NativeEndian.AppendUint32(filter, in.K)
	}
	return filter, nil
}

// apart returns the groups with each call that has conditions in one of its own.
func apart(groups []seccomp.SyscallGroup) (all []seccomp.SyscallGroup) {
	for _, g := range groups {
		if len(g.Names) > 0 {
			all = append(all, seccomp.SyscallGroup{Action: g.Action, Names: g.Names})
		}
		byName := map[string]int{}
		for _, c := range g.NamesWithCondtions {
			at, ok := byName[c.Name]
			if !ok {
				at = len(all)
				byName[c.Name] = at
				all = append(all, seccomp.SyscallGroup{Action: g.Action})
			}
			all[at].NamesWithCondtions = append(all[at].NamesWithCondtions, c)
		}
	}
	return all
}

// Tools returns the filter for a compiler or linker: it may use files and memory and start threads, and has no sockets, no other processes, and
// nothing of the machine. It is loaded on one thread, which then executes the tool.
func Tools() ([]byte, error) { return assemble(tools()) }

func tools() seccomp.Policy {
	return seccomp.Policy{
		DefaultAction: seccomp.ActionAllow,
		Syscalls: []seccomp.SyscallGroup{{Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS), Names: []string{"clone3"}}, {Action: seccomp.ActionErrno, NamesWithCondtions: []seccomp.NameWithConditions{
			{Name: "clone", Conditions: []seccomp.Condition{{Argument: 0, Operation: seccomp.BitsNotSet, Value: unix.CLONE_THREAD}}},
		}}, {Action: seccomp.ActionErrno, Names: []string{
			"fork", "vfork",
			"socket", "socketpair", "connect", "bind", "listen", "accept", "accept4", "sendto", "sendmsg", "recvfrom", "recvmsg", "io_uring_setup", "io_uring_enter", "io_uring_register",
			"ptrace", "kill", "tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "process_vm_readv", "process_vm_writev", "pidfd_open", "pidfd_getfd", "pidfd_send_signal", "setns", "unshare", "kcmp",
			"mount", "umount2", "pivot_root", "chroot", "move_mount", "fsopen", "fsmount", "open_tree", "mount_setattr", "open_by_handle_at",
			"bpf", "perf_event_open", "keyctl", "add_key", "request_key", "userfaultfd", "memfd_create", "memfd_secret", "init_module", "finit_module", "delete_module", "kexec_load",
			"chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat", "mknod", "mknodat", "symlink", "symlinkat", "link", "linkat", "setxattr", "lsetxattr", "fsetxattr",
			"setuid", "setgid", "setreuid", "setregid", "setresuid", "setresgid", "setgroups", "capset", "personality", "reboot", "swapon", "swapoff", "syslog",
			"shmget", "msgget", "semget", "mq_open", "inotify_init1", "fanotify_init", "clock_settime", "settimeofday", "sethostname", "setdomainname", "quotactl", "acct",
		}}},
	}
}
