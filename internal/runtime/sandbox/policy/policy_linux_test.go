package policy

import (
	"cmp"
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"testing"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/narrow"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// A filtered call is the data that the kernel passes to a filter.
type filtered struct {
	nr   uint32
	arch uint32 // 0 means the process's own
	args [6]uint64
}

// ask returns a function that applies the filter to a call.
func ask(t *testing.T, filter []byte) func(filtered) seccomp.Action {
	t.Helper()
	var raw []bpf.RawInstruction
	for b := filter; len(b) > 0; b = b[8:] {
		raw = append(raw, bpf.RawInstruction{Op: binary.NativeEndian.Uint16(b), Jt: b[2], Jf: b[3],
			K: binary.NativeEndian.Uint32(b[4:])})
	}
	program, ok := bpf.Disassemble(raw)
	if !ok {
		t.Fatal("not a program")
	}
	vm, err := bpf.NewVM(program)
	if err != nil {
		t.Fatal(err)
	}
	info, err := arch.GetInfo("")
	if err != nil {
		t.Fatal(err)
	}
	return func(c filtered) seccomp.Action {
		// Package bpf's machine reads big-endian words of packets.
		data := binary.BigEndian.AppendUint32(nil, c.nr)
		data = binary.BigEndian.AppendUint32(data, cmp.Or(c.arch, uint32(info.ID)))
		data = binary.BigEndian.AppendUint64(data, 0)
		for _, a := range c.args {
			data = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(data, uint32(a)), uint32(a>>32))
		}
		verdict, err := vm.Run(data)
		if err != nil {
			t.Fatal(err)
		}
		return seccomp.Action(verdict)
	}
}

// means returns the policy's action for a call: that of the first group that matches.
func means(t *testing.T, p seccomp.Policy, c filtered) seccomp.Action {
	t.Helper()
	info, err := arch.GetInfo("")
	if err != nil {
		t.Fatal(err)
	}
	full := func(a seccomp.Action) seccomp.Action {
		if a == seccomp.ActionErrno {
			a |= seccomp.Action(unix.EPERM)
		}
		return a
	}
	for _, g := range p.Syscalls {
		for _, name := range g.Names {
			if uint32(info.SyscallNames[name]) == c.nr {
				return full(g.Action)
			}
		}
		for _, n := range g.NamesWithCondtions {
			if uint32(info.SyscallNames[n.Name]) == c.nr && holds(t, n.Conditions, c) {
				return full(g.Action)
			}
		}
	}
	return full(p.DefaultAction)
}

func holds(t *testing.T, all []seccomp.Condition, c filtered) bool {
	t.Helper()
	for _, is := range all {
		v, ok := c.args[is.Argument], false
		switch is.Operation {
		case seccomp.Equal:
			ok = v == is.Value
		case seccomp.NotEqual:
			ok = v != is.Value
		case seccomp.GreaterThan:
			ok = v > is.Value
		case seccomp.LessThan:
			ok = v < is.Value
		case seccomp.BitsSet:
			ok = v&is.Value != 0
		case seccomp.BitsNotSet:
			ok = v&is.Value == 0
		default:
			t.Fatalf("no policy had %s", is.Operation)
		}
		if !ok {
			return false
		}
	}
	return true
}

// A filter has the action of its policy for every call, whatever the arguments, above all for numbers of other calls.
func TestFilterMeansPolicy(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for name, p := range map[string]seccomp.Policy{"runner": runner(seccomp.ActionErrno, markedPID),
		"runner that is killed": runner(seccomp.ActionKillProcess, markedPID), "program": program(markedPID),
		"tool": tool()} {
		filter, err := assemble(p)
		if err != nil {
			t.Fatal(err)
		}
		says := ask(t, filter)
		values := []uint64{0, markedPID}
		for _, g := range p.Syscalls {
			for _, n := range g.NamesWithCondtions {
				for _, c := range n.Conditions {
					values = append(values, c.Value, ^c.Value, c.Value-1, c.Value+1)
				}
			}
		}
		value := func() uint64 {
			if random.IntN(2) == 0 {
				return values[random.IntN(len(values))]
			}
			return uint64(random.IntN(460))<<32 | uint64(random.IntN(460))
		}
		for nr := range uint32(470) {
			for range 100 {
				c := filtered{nr: nr}
				for i := range c.args {
					c.args[i] = value()
				}
				if got, want := says(c), means(t, p, c); got != want {
					t.Fatalf("%s: call %d %x: the filter says %x, the policy %x", name, nr, c.args, got, want)
				}
			}
		}
	}
}

// After package narrow, a program's filter equals a runner's: it allows nothing for a start and everything for running.
// The exception is memory below and at the empty path, which stays denied.
func TestNarrowedProgramIsARunner(t *testing.T) {
	assembled := func(p seccomp.Policy) func(filtered) seccomp.Action {
		filter, err := assemble(p)
		if err != nil {
			t.Fatal(err)
		}
		return ask(t, filter)
	}
	var narrowing []byte
	for _, in := range narrow.Filter() {
		narrowing = append(binary.NativeEndian.AppendUint16(narrowing, in.Code), in.Jt, in.Jf)
		narrowing = binary.NativeEndian.AppendUint32(narrowing, in.K)
	}
	first, second, whole := assembled(program(markedPID)), ask(t, narrowing),
		assembled(runner(seccomp.ActionErrno, markedPID))
	random := rand.New(rand.NewPCG(3, 4))
	values := []uint64{0, 1, 3, 4, 7, 15, markedPID, wire.EmptyPath, wire.ExecutableFD, unix.AT_EMPTY_PATH, goThread,
		goThread | unix.CLONE_SETTLS, setFS, unix.PR_SET_VMA, mapFlags, 1 << 40}
	narrowed := 0
	for nr := range uint32(470) {
		for range 120 {
			c := filtered{nr: nr}
			for i := range c.args {
				c.args[i] = values[random.IntN(len(values))]
			}
			started, left, want := first(c) == seccomp.ActionAllow, second(c) == seccomp.ActionAllow,
				whole(c) == seccomp.ActionAllow
			if nr == unix.SYS_BRK || nr == unix.SYS_MMAP && c.args[0] > 0 &&
				c.args[0] < wire.EmptyPath+wire.EmptyPathSize {
				want = false
			}
			if got := started && left; got != want {
				t.Fatalf("call %d %x: %t, a runner's is %t", nr, c.args, got, want)
			}
			if started && !left {
				narrowed++
			}
		}
	}
	if narrowed == 0 {
		t.Error("nothing was taken away")
	}
}

// No filter allows calls by the numbers of another architecture.
func TestForeignNumbers(t *testing.T) {
	own, err := arch.GetInfo("")
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]seccomp.Policy{"runner": runner(seccomp.ActionErrno, markedPID),
		"program": program(markedPID), "tool": tool()} {
		filter, err := assemble(p)
		if err != nil {
			t.Fatal(err)
		}
		says := ask(t, filter)
		for _, foreign := range []*arch.Info{arch.I386, arch.ARM, arch.AARCH64, arch.X86_64} {
			for nr := uint32(0); nr < 470 && foreign.ID != own.ID; nr++ {
				if got := says(filtered{nr: nr, arch: uint32(foreign.ID)}); got == seccomp.ActionAllow {
					t.Fatalf("%s: call %d of %s is allowed", name, nr, foreign.Name)
				}
			}
		}
		if x32 := says(filtered{nr: 1 << 30}); own.ID == arch.X86_64.ID && x32 == seccomp.ActionAllow {
			t.Errorf("%s: a call of x32 is allowed", name)
		}
	}
}

// Whatever a tool asks for, none of its memory is placed at the empty path, so nothing is executed a second time.
func TestToolKeepsTheEmptyPathEmpty(t *testing.T) {
	filter, err := assemble(tool())
	if err != nil {
		t.Fatal(err)
	}
	says, anonymous := ask(t, filter), uint64(unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	for name, c := range map[string]filtered{
		"a mapping there": {nr: unix.SYS_MMAP, args: [6]uint64{wire.EmptyPath, 4096, readWrite, anonymous}},
		"a mapping below": {nr: unix.SYS_MMAP, args: [6]uint64{4096, 1 << 31, readWrite, anonymous}},
		"one that grows downwards": {nr: unix.SYS_MMAP, args: [6]uint64{0, 4096, readWrite,
			anonymous | unix.MAP_GROWSDOWN}},
		"one that is moved": {nr: unix.SYS_MREMAP, args: [6]uint64{1 << 40, 4096, 4096,
			unix.MREMAP_MAYMOVE | unix.MREMAP_FIXED, wire.EmptyPath}},
		"one that grows":            {nr: unix.SYS_MREMAP, args: [6]uint64{1 << 22, 4096, 1 << 31}},
		"the end of the data moves": {nr: unix.SYS_BRK, args: [6]uint64{wire.EmptyPath + 4096}},
	} {
		if says(c) == seccomp.ActionAllow {
			t.Errorf("%s is allowed", name)
		}
	}
	if low := (filtered{nr: unix.SYS_MMAP, args: [6]uint64{0, 4096, readWrite,
		anonymous | 0x40}}); runtime.GOARCH == "amd64" && says(low) == seccomp.ActionAllow {
		t.Error("a mapping in the first two gigabytes is allowed")
	}
	if says(filtered{nr: unix.SYS_MMAP, args: [6]uint64{0, 4096, readWrite, anonymous}}) != seccomp.ActionAllow {
		t.Error("memory is denied")
	}
}
