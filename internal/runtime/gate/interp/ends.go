package interp

import (
	"reflect"
	"unsafe"

	"golang.org/x/tools/go/ssa"
)

// This file compiles the ends of blocks.

// terminator compiles the last instruction of a block b, which is compiled to out.
func (c *compiler) terminator(out *codeBlock, b *ssa.BasicBlock, in ssa.Instruction) ending {
	switch in := in.(type) {
	case *ssa.Jump:
		out.ops = append(out.ops, c.phiOps(b, 0)...)
		to := c.blocks[b.Succs[0].Index]
		out.to = to
		return func(unsafe.Pointer) *codeBlock { return to }
	case *ssa.If:
		yes, no := c.edge(b, 0), c.edge(b, 1)
		out.next = []*codeBlock{yes, no}
		return c.branch(in.Cond, yes, no)
	case *ssa.Return:
		return c.returns(out, in)
	case *ssa.Panic:
		if check := c.loopPanic(in); check != nil {
			return check
		}
		x := c.off(in.X)
		if !isEmptyInterface(in.X.Type()) {
			x2 := c.alloc(rtypeOf(reflect.TypeFor[any]()))
			return func(m unsafe.Pointer) *codeBlock {
				ifaceToEface(unsafe.Add(m, x2), unsafe.Add(m, x))
				panic(*(*any)(unsafe.Add(m, x2)))
			}
		}
		return func(m unsafe.Pointer) *codeBlock { panic(*(*any)(unsafe.Add(m, x))) }
	}
	fail("unknown end of a block")
	return nil
}

// returns moves the results to their places. One number is moved by the end itself.
func (c *compiler) returns(out *codeBlock, in *ssa.Return) ending {
	if len(in.Results) == 1 {
		r := c.f.results[0]
		d, x := r.off, c.off(in.Results[0])
		switch classOf(r.rt) {
		case class1:
			return returnOne[uint8](d, x)
		case class8:
			return returnOne[uint64](d, x)
		case classPointer:
			return returnOne[unsafe.Pointer](d, x)
		}
	}
	for i, r := range in.Results {
		out.ops = append(out.ops, moveOp(c.f.results[i].rt, c.f.results[i].off, c.off(r)))
	}
	return func(unsafe.Pointer) *codeBlock { return nil }
}

func returnOne[T any](d, x uintptr) ending {
	return func(m unsafe.Pointer) *codeBlock {
		*(*T)(unsafe.Add(m, d)) = *(*T)(unsafe.Add(m, x))
		return nil
	}
}

// edge returns the block that control enters between b and its i-th successor: the successor, or one in between that gives the phi
// registers there their values.
func (c *compiler) edge(b *ssa.BasicBlock, i int) *codeBlock {
	to := c.blocks[b.Succs[i].Index]
	ops := c.phiOps(b, i)
	if len(ops) == 0 {
		return to
	}
	between := &codeBlock{ops: ops, to: to, end: func(unsafe.Pointer) *codeBlock { return to }}
	c.blocks = append(c.blocks, between)
	return between
}

// A phiMove gives a phi register its value when control enters a block.
type phiMove struct {
	rt       *rtype
	dst, src uintptr
}

// phiOps returns what gives the phi registers of b's i-th successor their values, all at once.
func (c *compiler) phiOps(b *ssa.BasicBlock, i int) (ops []op) {
	moves := c.phiMoves(b.Succs[i], predIndex(b, i))
	if clash(moves) {
		for i := range moves {
			tmp := c.alloc(moves[i].rt)
			ops = append(ops, moveOp(moves[i].rt, tmp, moves[i].src))
			moves[i].src = tmp
		}
	}
	for _, m := range moves {
		ops = append(ops, moveOp(m.rt, m.dst, m.src))
	}
	return ops
}

// phiMoves returns the moves that a block begins with when it is entered from its predecessor of that index.
func (c *compiler) phiMoves(b *ssa.BasicBlock, pred int) (moves []phiMove) {
	for _, in := range b.Instrs {
		phi, ok := in.(*ssa.Phi)
		if !ok {
			break
		}
		m := phiMove{c.layout(phi.Type()), c.off(phi), c.off(phi.Edges[pred])}
		if m.dst != m.src && m.rt.Size > 0 {
			moves = append(moves, m)
		}
	}
	return moves
}

// clash reports whether one of the moves writes what another reads.
func clash(moves []phiMove) bool {
	for i, a := range moves {
		for j, d := range moves {
			if i != j && a.src < d.dst+d.rt.Size && d.dst < a.src+a.rt.Size {
				return true
			}
		}
	}
	return false
}

// predIndex returns which predecessor of its i-th successor b is. Both edges of a branch may lead to the same block.
func predIndex(b *ssa.BasicBlock, i int) int {
	succ := b.Succs[i]
	nth := 0
	for j := range i {
		if b.Succs[j] == succ {
			nth++
		}
	}
	for k, p := range succ.Preds {
		if p == b {
			if nth == 0 {
				return k
			}
			nth--
		}
	}
	fail("an edge without a predecessor")
	return 0
}
