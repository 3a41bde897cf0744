package interp

import (
	"go/types"
	"unsafe"

	"golang.org/x/tools/go/ssa"
)

// A meter counts the work of runs, for tests that show how it grows: one for each operation, and one for each word that it
// moves within a frame or between a frame and what it points to. What operations allocate or do within the host is not counted.
type meter struct{ work uint64 }

// metered counts the work of an operation, where there is a meter.
func (c *compiler) metered(in ssa.Instruction, o op) op {
	work := c.mc.work
	if work == nil {
		return o
	}
	weight := 1 + c.moved(in)
	return func(m unsafe.Pointer) {
		work.work += weight
		o(m)
	}
}

// meteredEnd counts the work of the end of a block: the values of the phi registers that follow.
func (c *compiler) meteredEnd(b *ssa.BasicBlock, next ending) ending {
	work := c.mc.work
	if work == nil {
		return next
	}
	weight := uint64(1)
	for _, succ := range b.Succs {
		for _, in := range succ.Instrs {
			if phi, ok := in.(*ssa.Phi); ok {
				weight += c.words(phi.Type())
			}
		}
	}
	return func(m unsafe.Pointer) *codeBlock {
		work.work += weight
		return next(m)
	}
}

// moved returns how many words an instruction moves.
func (c *compiler) moved(in ssa.Instruction) (n uint64) {
	switch in := in.(type) {
	case *ssa.Range:
		return 1 // a type of go/ssa's own
	case *ssa.Store:
		return c.words(in.Val.Type())
	case *ssa.MapUpdate:
		return c.words(in.Key.Type()) + c.words(in.Value.Type())
	case *ssa.Call:
		for _, a := range in.Call.Args {
			n += c.words(a.Type())
		}
	}
	if v, ok := in.(ssa.Value); ok {
		n += c.words(v.Type())
	}
	return n
}

func (c *compiler) words(t types.Type) (n uint64) {
	if tuple, ok := t.(*types.Tuple); ok {
		for v := range tuple.Variables() {
			n += c.words(v.Type())
		}
		return n
	}
	if b, ok := t.(*types.Basic); ok && b.Kind() == types.Invalid {
		return 0 // a part of a tuple that nobody reads
	}
	return uint64((c.layout(t).Size + wordSize - 1) / wordSize)
}
