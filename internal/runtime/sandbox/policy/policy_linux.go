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

// markedPID is no number that a process can have: the kernel's are below 2^22.
const markedPID = 0x7fc0ffee

// Runner returns what a runner puts on itself, which may use so many bytes and seconds of processor time. System calls that are not allowed fail with EPERM, or kill the process.
func Runner(memory, cpu int64, kill bool) (*wire.Confinement, error) {
	action := seccomp.ActionErrno
	if kill {
		action = seccomp.ActionKillProcess
	}
	return confinement(limits(memory, cpu, wire.RaceBuild), runner(action, markedPID))
}

// Program returns what a launcher puts on the executable of a program: a runner's confinement, and in addition what the Go runtime does until package narrow takes it away.
func Program(memory, cpu int64) (*wire.Confinement, error) {
	c, err := confinement(limits(memory, cpu, false), program(markedPID))
	if err == nil {
		leave(c, wire.ExecutableFD, confine.Execute)
	}
	return c, err
}

// Tool returns what a launcher puts on a compiler or linker: it may use files and memory, and threads where tasks is not 0 only so many. The launcher has the descriptors of
// package wire.
func Tool(t *wire.Tools, tasks int64) (*wire.Confinement, error) {
	of := []wire.Limit{{Resource: unix.RLIMIT_CPU, Value: uint64(t.CPU)},
		{Resource: unix.RLIMIT_FSIZE, Value: uint64(t.File)}, {Resource: unix.RLIMIT_NOFILE, Value: 64},
		{Resource: unix.RLIMIT_CORE}}
	if tasks > 0 {
		of = append(of, wire.Limit{Resource: unix.RLIMIT_NPROC, Value: uint64(tasks)})
	}
	if !wire.RaceBuild { // the launcher has it too
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

// OneFile returns the rules of a process that may execute the file, and nothing else; nil where there is no landlock.
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

// leave adds a rule where there is a ruleset.
func leave(c *wire.Confinement, fd int, access uint64) {
	if c.Landlock != nil {
		c.Landlock.Rules = append(c.Landlock.Rules, wire.Rule{FD: fd, Access: access})
	}
}

// addressSpace is what a runner may map in addition to its memory: the Go runtime reserves much, and touches little of it.
const addressSpace = 4 << 30

// untouched is the size of data, in bytes, that every runner maps and never writes to, mostly tables of the Go runtime and libraries. RLIMIT_DATA counts it.
const untouched = 64 << 20

// limits are those of a process in which a program runs. A race build has none of memory, as its detector maps terabytes.
func limits(memory, cpu int64, race bool) []wire.Limit {
	// the first thread's stack grows by itself, and does not count as data
	all := append(common(cpu), wire.Limit{Resource: unix.RLIMIT_STACK, Value: confine.ThreadStack})
	if race {
		return all
	}
	// Address space alone says little: an idle Go process has over a gigabyte of it. But page tables count nowhere else, and take a
	// 512th part of what is mapped, even where it can only be read. Not RLIMIT_NPROC: it counts the user, not the process.
	return append(all, wire.Limit{Resource: unix.RLIMIT_DATA, Value: uint64(memory + untouched)},
		wire.Limit{Resource: unix.RLIMIT_AS, Value: uint64(addressSpace + 4*memory)})
}

// assemble returns the filter as the kernel takes it.
func assemble(p seccomp.Policy) ([]byte, error) {
	program, err := nativeOnly()
	if err != nil {
		return nil, err
	}
	// The library loads a call's number once, and an argument in its place where it looks at one: what follows a call whose conditions do not hold compares that
	// argument with numbers of calls. So each such call is a policy of its own, whose default is the next one.
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

// nativeOnly denies what is called by another architecture's numbers, as a 64-bit process can by an interrupt: the library takes such calls to the default, which allows them where
// the policy names what is denied.
func nativeOnly() ([]bpf.Instruction, error) {
	const offset = 4 // in what a filter is shown
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
