package interp

import (
	"math/bits"

	"golang.org/x/tools/go/ssa"
)

// This file lets a phi register and the values that it gets share one place in the frame, so that nothing is to be moved: the variable of a loop
// is changed where it stands. Values share a place when they have one type and none is written while another is still to be read.

// mostShared bounds the values of a function that are looked at.
const mostShared = 1024

// sharing finds which values may share a place.
type sharing struct {
	c       *compiler
	values  []ssa.Value
	index   map[ssa.Value]int
	in      []bitset // by block: live when it begins, its phi registers not counted
	clashes []bitset // by value: those that are live when it is written
	class   []int    // by value: its class, which is the index of one of its values
}

// share finds for the phi registers of f which values share their places.
func (c *compiler) share(f *ssa.Function) {
	s := &sharing{c: c, index: map[ssa.Value]int{}}
	for _, b := range f.Blocks {
		for _, in := range b.Instrs {
			phi, ok := in.(*ssa.Phi)
			if !ok {
				break
			}
			s.look(phi)
			for _, e := range phi.Edges {
				s.look(retyped(e))
			}
		}
	}
	if len(s.values) == 0 || len(s.values) > mostShared {
		return
	}
	s.findLive(f)
	s.findClashes(f)
	if r := f.Recover; r != nil { // entered from anywhere
		for i := range s.values {
			if s.in[r.Index].has(i) {
				s.clash(i, s.all())
			}
		}
	}
	s.join(f)
	for i, v := range s.values {
		if k := s.class[i]; k != i {
			c.shared[v] = s.values[k]
		}
	}
}

// look adds a value that has a place of its own to those that are looked at.
func (s *sharing) look(v ssa.Value) {
	switch v := v.(type) {
	case *ssa.Parameter, *ssa.Phi, *ssa.BinOp, *ssa.UnOp, *ssa.Slice, *ssa.Convert, *ssa.MakeInterface, *ssa.ChangeInterface, *ssa.Lookup, *ssa.TypeAssert,
		*ssa.MakeSlice, *ssa.MakeMap, *ssa.MakeClosure, *ssa.Index, *ssa.FieldAddr, *ssa.IndexAddr:
		if s.c.folded[asInstruction(v)] || isTuple(v) {
			return
		}
	case *ssa.Call:
		if isView(v) || isTuple(v) {
			return
		}
	default:
		return
	}
	if _, known := s.index[v]; !known && s.c.layout(v.Type()).Size > 0 {
		s.index[v] = len(s.values)
		s.values = append(s.values, v)
	}
}

// read adds what an operation reads: its operands, and those of what is folded into it.
func (s *sharing) read(in ssa.Instruction, live bitset) {
	for _, o := range in.Operands(nil) {
		if *o == nil {
			continue
		}
		v := holder(*o)
		if part := asInstruction(v); part != nil && s.c.folded[part] {
			s.read(part, live)
		} else if i, ok := s.index[v]; ok {
			live.add(i)
		}
	}
}

// walk goes through a block from its end to its phi registers. live has what is live after the block, in the end what is live when it begins;
// written is called where a value is written, with what is live then.
func (s *sharing) walk(b *ssa.BasicBlock, live bitset, written func(i int)) {
	for n := len(b.Instrs) - 1; n >= 0; n-- {
		in := b.Instrs[n]
		if _, ok := in.(*ssa.Phi); ok {
			return
		}
		if s.c.folded[in] || inFrame(in) {
			continue
		}
		if v, ok := in.(ssa.Value); ok {
			if i, ok := s.index[v]; ok {
				live.remove(i)
				written(i)
			}
		}
		s.read(in, live)
	}
}

func (s *sharing) findLive(f *ssa.Function) {
	s.in = make([]bitset, len(f.Blocks))
	for i := range s.in {
		s.in[i] = s.none()
	}
	for grown := true; grown; {
		grown = false
		for n := len(f.Blocks) - 1; n >= 0; n-- {
			b := f.Blocks[n]
			live := s.after(b)
			s.walk(b, live, func(int) {})
			for _, phi := range s.phis(b) {
				live.remove(phi)
			}
			grown = s.in[n].merge(live) || grown
		}
	}
}

// after returns what is live at the end of a block: what is live in the blocks that follow, and what their phi registers get from here.
func (s *sharing) after(b *ssa.BasicBlock) bitset {
	live := s.none()
	for i, succ := range b.Succs {
		live.merge(s.in[succ.Index])
		pred := predIndex(b, i)
		for _, in := range succ.Instrs {
			phi, ok := in.(*ssa.Phi)
			if !ok {
				break
			}
			if i, ok := s.index[holder(phi.Edges[pred])]; ok {
				live.add(i)
			}
		}
	}
	return live
}

// phis returns the phi registers of a block.
func (s *sharing) phis(b *ssa.BasicBlock) (list []int) {
	for _, in := range b.Instrs {
		phi, ok := in.(*ssa.Phi)
		if !ok {
			break
		}
		if i, ok := s.index[phi]; ok {
			list = append(list, i)
		}
	}
	return list
}

func (s *sharing) findClashes(f *ssa.Function) {
	s.clashes = make([]bitset, len(s.values))
	for i := range s.clashes {
		s.clashes[i] = s.none()
	}
	for _, b := range f.Blocks {
		live := s.after(b)
		s.walk(b, live, func(i int) { s.clash(i, live) })
		phis := s.phis(b)
		for _, p := range phis {
			live.add(p)
		}
		for _, p := range phis {
			s.clash(p, live)
		}
		if b.Index == 0 {
			for i, v := range s.values {
				if _, ok := v.(*ssa.Parameter); ok {
					s.clash(i, live)
				}
			}
		}
	}
}

// clash notes that i is written while others are live.
func (s *sharing) clash(i int, live bitset) {
	s.clashes[i].merge(live)
	s.clashes[i].remove(i)
	for n, w := range live {
		for ; w != 0; w &= w - 1 {
			if k := n*64 + bits.TrailingZeros64(w); k != i {
				s.clashes[k].add(i)
			}
		}
	}
}

// join makes one class of a phi register and each of its operands that may share its place. Of a class, clashes has all that any of its
// values clashes with.
func (s *sharing) join(f *ssa.Function) {
	s.class = make([]int, len(s.values))
	members := make([]bitset, len(s.values))
	for i := range s.class {
		s.class[i] = i
		members[i] = s.none()
		members[i].add(i)
	}
	for _, b := range f.Blocks {
		for _, p := range s.phis(b) {
			for _, e := range s.values[p].(*ssa.Phi).Edges {
				if k, ok := s.index[retyped(e)]; ok {
					s.joinTwo(s.class[p], s.class[k], members)
				}
			}
		}
	}
}

func (s *sharing) joinTwo(a, b int, members []bitset) {
	if s.fixed(b) {
		a, b = b, a // a parameter's place is where callers put it
	}
	if a == b || s.fixed(b) || s.c.layout(s.values[a].Type()) != s.c.layout(s.values[b].Type()) {
		return
	}
	for i, w := range s.clashes[a] {
		if w&members[b][i] != 0 {
			return
		}
	}
	s.clashes[a].merge(s.clashes[b])
	members[a].merge(members[b])
	for i := range s.class {
		if s.class[i] == b {
			s.class[i] = a
		}
	}
}

func (s *sharing) fixed(i int) bool {
	_, ok := s.values[i].(*ssa.Parameter)
	return ok
}

func (s *sharing) none() bitset { return make(bitset, (len(s.values)+63)/64) }

func (s *sharing) all() bitset {
	out := s.none()
	for i := range s.values {
		out.add(i)
	}
	return out
}
