package worker

import (
	"os"
	"runtime"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// mapFlags are the kinds of mapping that count against RLIMIT_DATA as soon as they can be written to. Shared ones and those that grow
// downwards count nowhere: a gigabyte of each has been touched under a limit of a quarter of it.
const mapFlags = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_FIXED | unix.MAP_FIXED_NOREPLACE | unix.MAP_NORESERVE | unix.MAP_STACK

// syscallPolicy is an allow-list: memory, threads of this process, time, the pipes that are open. The list belongs to
// the Go version of go.mod; the whole corpus runs with otherwise = kill too, so that a newer runtime's needs show.
func syscallPolicy(otherwise seccomp.Action) seccomp.Policy {
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
				arg("tgkill", seccomp.Condition{Argument: 0, Operation: seccomp.Equal, Value: uint64(os.Getpid())}),
				arg("prlimit64", seccomp.Condition{Argument: 0, Operation: seccomp.Equal, Value: 0}, seccomp.Condition{Argument: 2, Operation: seccomp.Equal, Value: 0}),
				arg("prctl", seccomp.Condition{Argument: 0, Operation: seccomp.Equal, Value: unix.PR_SET_VMA}),
			}},
			// The C library tries clone3 first and takes another way only when there is no such call.
			{Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS), Names: []string{"clone3"}},
		},
	}
}
