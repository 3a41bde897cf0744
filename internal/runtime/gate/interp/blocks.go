package interp

import (
	"reflect"
	"unsafe"

	"golang.org/x/tools/go/ssa"
)

// block compiles a basic block.
func (c *compiler) block(b *ssa.BasicBlock) {
	out := c.blocks[b.Index]
	for _, in := range b.Instrs {
		if o := c.instr(in); o != nil {
			out.ops = append(out.ops, c.metered(in, o))
			out.pos = append(out.pos, in.Pos())
		}
	}
	if len(b.Instrs) == 0 {
		out.next = func(unsafe.Pointer) *codeBlock { return nil }
		return
	}
	last := b.Instrs[len(b.Instrs)-1]
	out.last = last.Pos()
	out.next = c.meteredEnd(b, c.terminator(b, last))
}

func (c *compiler) terminator(b *ssa.BasicBlock, in ssa.Instruction) func(unsafe.Pointer) *codeBlock {
	switch in := in.(type) {
	case *ssa.Jump:
		return c.edge(b, 0)
	case *ssa.If:
		return c.branch(b, in)
	case *ssa.Return:
		moves := make([]op, 0, len(in.Results))
		for i, r := range in.Results {
			moves = append(moves, moveOp(c.f.results[i].rt, c.f.results[i].off, c.off(r)))
		}
		if len(moves) == 1 {
			move := moves[0]
			return func(m unsafe.Pointer) *codeBlock { move(m); return nil }
		}
		return func(m unsafe.Pointer) *codeBlock {
			for _, move := range moves {
				move(m)
			}
			return nil
		}
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

func (c *compiler) branch(b *ssa.BasicBlock, in *ssa.If) func(unsafe.Pointer) *codeBlock {
	x := c.off(in.Cond)
	yes, no := c.edge(b, 0), c.edge(b, 1)
	yesPhi, noPhi := hasPhi(b.Succs[0]), hasPhi(b.Succs[1])
	if !yesPhi && !noPhi {
		yb, nb := c.blocks[b.Succs[0].Index], c.blocks[b.Succs[1].Index]
		return func(m unsafe.Pointer) *codeBlock {
			if *(*bool)(unsafe.Add(m, x)) {
				return yb
			}
			return nb
		}
	}
	return func(m unsafe.Pointer) *codeBlock {
		if *(*bool)(unsafe.Add(m, x)) {
			return yes(m)
		}
		return no(m)
	}
}

func hasPhi(b *ssa.BasicBlock) bool {
	if len(b.Instrs) == 0 {
		return false
	}
	_, ok := b.Instrs[0].(*ssa.Phi)
	return ok
}

// A phiMove gives a phi register its value when control enters a block.
type phiMove struct {
	rt       *rtype
	dst, src uintptr
}

// edge compiles the way from b to its i-th successor: the phi registers there get their values, all at once.
func (c *compiler) edge(b *ssa.BasicBlock, i int) func(unsafe.Pointer) *codeBlock {
	to := c.blocks[b.Succs[i].Index]
	moves := c.phiMoves(b.Succs[i], predIndex(b, i))
	var ops []op
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
	switch len(ops) {
	case 0:
		return func(unsafe.Pointer) *codeBlock { return to }
	case 1:
		o := ops[0]
		return func(m unsafe.Pointer) *codeBlock { o(m); return to }
	case 2:
		o, p := ops[0], ops[1]
		return func(m unsafe.Pointer) *codeBlock { o(m); p(m); return to }
	}
	return func(m unsafe.Pointer) *codeBlock {
		for _, o := range ops {
			o(m)
		}
		return to
	}
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
