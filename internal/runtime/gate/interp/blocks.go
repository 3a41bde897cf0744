package interp

import (
	"go/token"
	"slices"
	"unsafe"

	"golang.org/x/tools/go/ssa"
)

// A codeBlock is a basic block: its operations, then where to go.
type codeBlock struct {
	ops []op
	end ending
	pos token.Pos  // of its first operation that may panic; none in functions that are not of the program's text
	to  *codeBlock // where it always goes; nil when end decides
	run ending     // ops, then end: made by link

	next   []*codeBlock // between which end decides
	marked bool         // some of ops are there for positions on further lines
}

// An ending returns the block that comes next, nil at the end of the function.
type ending func(m unsafe.Pointer) *codeBlock

// block compiles a basic block.
func (c *compiler) block(b *ssa.BasicBlock) {
	out := c.blocks[b.Index]
	line := 0
	for _, in := range b.Instrs {
		if c.folded[in] {
			c.mark(out, in, &line)
			continue
		}
		if o := c.instr(in); o != nil {
			c.mark(out, in, &line)
			out.ops = append(out.ops, c.metered(in, o))
		}
	}
	if len(b.Instrs) == 0 {
		out.end = func(unsafe.Pointer) *codeBlock { return nil }
		return
	}
	last := b.Instrs[len(b.Instrs)-1]
	c.mark(out, last, &line)
	out.end = c.meteredEnd(b, c.terminator(out, b, last))
}

// mark has the machine know the position of an instruction that may panic, where its line is another than that of the block's
// instruction before.
func (c *compiler) mark(out *codeBlock, in ssa.Instruction, line *int) {
	if !c.f.own || !in.Pos().IsValid() || c.harmless(in) {
		return
	}
	at := c.line(in.Pos())
	if at == *line {
		return
	}
	*line = at
	if out.pos == token.NoPos {
		out.pos = in.Pos()
		return
	}
	out.ops, out.marked = append(out.ops, c.markOp(in.Pos())), true
}

func (c *compiler) markOp(pos token.Pos) op {
	mc := c.mc
	return func(unsafe.Pointer) { mc.pos = pos }
}

// link completes the blocks when all are compiled: each runs its operations and its end, and a jump to a block of few operations becomes a copy
// of them, so that a loop's condition stands at the end of its body.
func (c *compiler) link() {
	const few = 8
	type tail struct {
		ops    []op
		end    ending
		next   []*codeBlock
		pos    token.Pos
		marked bool
	}
	tails := make([]tail, len(c.blocks))
	for i, b := range c.blocks {
		if to := b.to; c.mc.work == nil && to != nil && len(to.ops) <= few && to.to == nil {
			tails[i] = tail{to.ops, to.end, to.next, to.pos, to.marked}
		}
	}
	for i, b := range c.blocks {
		if t := tails[i]; t.end != nil {
			switch {
			case t.pos == token.NoPos:
			case b.pos == token.NoPos:
				b.pos = t.pos
			case b.marked || c.line(b.pos) != c.line(t.pos):
				b.ops, b.marked = append(b.ops, c.markOp(t.pos)), true
			}
			b.ops, b.end, b.next, b.marked = append(b.ops, t.ops...), t.end, t.next, b.marked || t.marked
		}
		b.link()
	}
}

func (c *compiler) line(pos token.Pos) int { return c.mc.prog.Fset.PositionFor(pos, false).Line }

func (b *codeBlock) link() {
	if slices.Contains(b.next, b) && len(b.ops) <= mostInLoop && !b.marked {
		b.run = loop(b)
	} else {
		b.run = sequence(b.ops, b.end)
	}
}

// sequence returns what does the operations one after another, and then what is at the end.
func sequence(ops []op, end ending) ending {
	if len(ops) > 48 {
		return many(ops[:48], sequence(ops[48:], end))
	}
	if len(ops) > 8 {
		return eight([8]op(ops), sequence(ops[8:], end))
	}
	var o [8]op
	copy(o[:], ops)
	a, b, c, d, e, f, g := o[0], o[1], o[2], o[3], o[4], o[5], o[6]
	switch len(ops) {
	case 0:
		return end
	case 1:
		return func(m unsafe.Pointer) *codeBlock { a(m); return end(m) }
	case 2:
		return func(m unsafe.Pointer) *codeBlock { a(m); b(m); return end(m) }
	case 3:
		return func(m unsafe.Pointer) *codeBlock { a(m); b(m); c(m); return end(m) }
	case 4:
		return func(m unsafe.Pointer) *codeBlock { a(m); b(m); c(m); d(m); return end(m) }
	case 5:
		return func(m unsafe.Pointer) *codeBlock {
			a(m)
			b(m)
			c(m)
			d(m)
			e(m)
			return end(m)
		}
	case 6:
		return func(m unsafe.Pointer) *codeBlock {
			a(m)
			b(m)
			c(m)
			d(m)
			e(m)
			f(m)
			return end(m)
		}
	case 7:
		return func(m unsafe.Pointer) *codeBlock {
			a(m)
			b(m)
			c(m)
			d(m)
			e(m)
			f(m)
			g(m)
			return end(m)
		}
	}
	return eight(o, end)
}

func eight(o [8]op, end ending) ending {
	a, b, c, d, e, f, g, h := o[0], o[1], o[2], o[3], o[4], o[5], o[6], o[7]
	return func(m unsafe.Pointer) *codeBlock {
		a(m)
		b(m)
		c(m)
		d(m)
		e(m)
		f(m)
		g(m)
		h(m)
		return end(m)
	}
}

// many is for long blocks: eight at a time would take a Go frame for each eight.
func many(ops []op, end ending) ending {
	return func(m unsafe.Pointer) *codeBlock {
		for _, o := range ops {
			o(m)
		}
		return end(m)
	}
}
