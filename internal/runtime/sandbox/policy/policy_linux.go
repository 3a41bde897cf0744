package policy

import (
	"encoding/binary"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/confine"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// markedPID is a placeholder that cannot be a process id: the kernel's are below 2^22.
const markedPID = 0x7fc0ffee

// Runner returns the confinement of a runner, which may use memory bytes and cpu seconds of processor time. Forbidden
// system calls fail with EPERM or, with kill, kill the process.
func Runner(memory, cpu int64, kill bool) (*wire.Confinement, error) {
	action := seccomp.ActionErrno
	if kill {
		action = seccomp.ActionKillProcess
	}
	return confinement(limits(memory, cpu, wire.RaceBuild), runner(action, markedPID))
}

// Program returns the confinement that a launcher applies to the executable of a program: that of a runner, and the
// start-up calls of the Go runtime, which package narrow forbids later.
func Program(memory, cpu int64) (*wire.Confinement, error) {
	c, err := confinement(limits(memory, cpu, false), program(markedPID))
	if err == nil {
		leave(c, wire.ExecutableFD, confine.Execute)
	}
	return c, err
}

// Tool returns the confinement that a launcher applies to a compiler or linker. The tool may use files, memory and at
// most tasks threads, if tasks is not 0. The launcher has the descriptors that package wire defines.
func Tool(t *wire.Tools, tasks int64) (*wire.Confinement, error) {
	of := []wire.Limit{{Resource: unix.RLIMIT_CPU, Value: uint64(t.CPU)},
		{Resource: unix.RLIMIT_FSIZE, Value: uint64(t.File)}, {Resource: unix.RLIMIT_NOFILE, Value: 64},
		{Resource: unix.RLIMIT_CORE}}
	if tasks > 0 {
		of = append(of, wire.Limit{Resource: unix.RLIMIT_NPROC, Value: uint64(tasks)})
	}
	if !wire.RaceBuild { // the limit would apply to the launcher as well
		of = append(of, wire.Limit{Resource: unix.RLIMIT_DATA, Value: uint64(t.Memory)},
			wire.Limit{Resource: unix.RLIMIT_AS, Value: uint64(addressSpace + 4*t.Memory)})
	}
	c, err := confinement(of, tool())
	if err != nil {
		return nil, err
	}
	leave(c, wire.ExecutableFD, confine.Execute)
	leave(c, wire.ToolDirFD, confine.Read|confine.List)
	leave(c, wire.ToolOutFD, confine.Read|confine.Write)
	leave(c, wire.ToolNullFD, confine.Read|confine.Write)
	for i := range t.Read {
		leave(c, wire.ToolReadFD+i, confine.Read|confine.List)
	}
	return c, nil
}

// OneFile returns a confinement that only lets a process execute the file. Its Landlock is nil if the kernel has no
// landlock.
func OneFile(fd int) *wire.Confinement {
	c := &wire.Confinement{}
	c.Landlock, c.Given = confine.Everything()
	leave(c, fd, confine.Execute)
	return c
}

func confinement(limits []wire.Limit, calls seccomp.Policy) (c *wire.Confinement, err error) {
	c = &wire.Confinement{Limits: limits, User: wire.Nobody, PID: markedPID}
	c.Landlock, c.Given = confine.Everything()
	c.Filter, err = assemble(calls)
	return c, err
}

// leave adds an exception if there is a ruleset.
func leave(c *wire.Confinement, fd int, access uint64) {
	if c.Landlock != nil {
		c.Landlock.Rules = append(c.Landlock.Rules, wire.Rule{FD: fd, Access: access})
	}
}

// addressSpace is how many bytes a runner may map in addition to its memory: the Go runtime reserves much and touches
// little of it.
const addressSpace = 4 << 30

// untouched is how many bytes of data every runner maps and never writes to, mostly tables of the Go runtime and
// libraries. RLIMIT_DATA counts them.
const untouched = 64 << 20

// limits returns the limits of a process in which a program runs. A race build has no memory limit, because the race
// detector maps terabytes.
func limits(memory, cpu int64, race bool) []wire.Limit {
	// The main thread's stack grows by itself and does not count as data.
	all := append(common(cpu), wire.Limit{Resource: unix.RLIMIT_STACK, Value: confine.ThreadStack})
	if race {
		return all
	}
	// RLIMIT_AS alone means little, because an idle Go process maps over a gigabyte. But page tables count nowhere
	// else, and take 1/512 of what is mapped, even if it is only readable. RLIMIT_NPROC does not fit: it counts threads
	// of the user, not of the process.
	return append(all, wire.Limit{Resource: unix.RLIMIT_DATA, Value: uint64(memory + untouched)},
		wire.Limit{Resource: unix.RLIMIT_AS, Value: uint64(addressSpace + 4*memory)})
}

// assemble returns the filter in the kernel's format.
func assemble(p seccomp.Policy) ([]byte, error) {
	program, err := nativeOnly()
	if err != nil {
		return nil, err
	}
	// The library loads the call's number once, and overwrites it with an argument to check a condition. If a
	// conditional call does not match, the following comparisons would compare that argument with call numbers. So each
	// conditional call is assembled as a policy of its own, which falls through to the next.
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

// nativeOnly returns instructions that deny calls by another architecture's numbers, which a 64-bit process can make by
// an interrupt. The library sends such calls to the default action, and a deny-list allows by default.
func nativeOnly() ([]bpf.Instruction, error) {
	const offset = 4 // of the architecture in struct seccomp_data
	own, err := arch.GetInfo("")
	if err != nil {
		return nil, err
	}
	return []bpf.Instruction{
		bpf.LoadAbsolute{Off: offset, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(own.ID), SkipTrue: 1},
		bpf.RetConstant{Val: uint32(seccomp.ActionErrno) | uint32(unix.EPERM)},
	}, nil
}

// apart splits the groups: all calls without conditions of a group stay together, and each conditional call gets a
// group of its own.
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
