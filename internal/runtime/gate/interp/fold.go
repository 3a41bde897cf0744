package interp

import (
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"
)

// This file finds the instructions that need no operation of their own: addresses that are only loaded from or stored to, slices that are only
// indexed, comparisons that only a branch reads. They are done with the one instruction that uses their value, which is right when nothing
// between the two can panic or change memory, and the two are on one line, which a panic names.

// farthest bounds how many instructions may be between two that become one.
const farthest = 24

// fold notes the instructions of a block that become parts of others.
func (c *compiler) fold(b *ssa.BasicBlock) {
	for i, in := range b.Instrs {
		switch in := in.(type) {
		case *ssa.If:
			c.foldCondition(b.Instrs, i, in)
		case *ssa.BinOp:
			if !c.isAssignment(in) && takesLoaded(in) && !c.foldOperand(b.Instrs, i, in.Y) {
				c.foldOperand(b.Instrs, i, in.X)
			}
		case *ssa.Store:
			c.foldAssignment(b.Instrs, i, in)
			c.foldInto(b.Instrs, i, in.Addr)
		case *ssa.UnOp:
			if in.Op == token.MUL && !isLoopState(in.X) {
				c.foldInto(b.Instrs, i, in.X)
			}
		case *ssa.IndexAddr:
			if isInt(in.Index.Type()) {
				c.foldInto(b.Instrs, i, in.X)
				if _, ok := in.X.Type().Underlying().(*types.Slice); ok && !c.folded[asInstruction(in.X)] {
					c.foldSum(b.Instrs, i, in.Index)
				}
			}
		case *ssa.Index:
			if isText(in.X.Type()) && isInt(in.Index.Type()) {
				c.foldSum(b.Instrs, i, in.Index)
			}
		case *ssa.FieldAddr:
			c.foldInto(b.Instrs, i, in.X)
		}
	}
}

// foldInto folds an address, or a slice or pointer that is loaded, into list[i], which is its only user.
func (c *compiler) foldInto(list []ssa.Instruction, i int, v ssa.Value) {
	in, ok := v.(ssa.Instruction)
	if !ok || in.Block() != list[i].Block() || onlyUser(v) != list[i] {
		return
	}
	switch v := v.(type) {
	case *ssa.IndexAddr:
	case *ssa.FieldAddr:
		ok = !isBlank(v)
	case *ssa.UnOp:
		_, isStore := list[i].(*ssa.Store)
		ok = v.Op == token.MUL && !isLoopState(v.X) && !isStore && !isLoad(list[i])
	default:
		ok = false
	}
	if ok && c.adjacent(list, i, in) {
		c.folded[in] = true
	}
}

// foldSum folds an index to which a constant is added, as in s[i-1].
func (c *compiler) foldSum(list []ssa.Instruction, i int, v ssa.Value) {
	sum, ok := v.(*ssa.BinOp)
	if !ok || sum.Op != token.ADD && sum.Op != token.SUB || sum.Block() != list[i].Block() || onlyUser(sum) != list[i] {
		return
	}
	if _, ok := sum.Y.(*ssa.Const); ok && c.loaded(sum.X) == nil && c.adjacent(list, i, sum) {
		c.folded[sum] = true
	}
}

func isLoad(in ssa.Instruction) bool {
	u, ok := in.(*ssa.UnOp)
	return ok && u.Op == token.MUL
}

// foldCondition folds what a branch reads: a comparison, and what is loaded for it.
func (c *compiler) foldCondition(list []ssa.Instruction, i int, in *ssa.If) {
	cond, ok := in.Cond.(*ssa.BinOp)
	if !ok {
		c.foldOperand(list, i, in.Cond)
		return
	}
	if cond.Block() != in.Block() || onlyUser(cond) != ssa.Instruction(in) || !c.branches(cond) {
		return
	}
	if (lent(cond.X) || lent(cond.Y)) && !quietBetween(cond, in) { // what is compared are bytes that may change
		return
	}
	c.folded[cond] = true
	if !c.branchesLoaded(cond) {
		return
	}
	if at := slices.Index(list, ssa.Instruction(cond)); !c.foldOperandOf(list, at, cond.Y, i) {
		c.foldOperandOf(list, at, cond.X, i)
	}
}

// foldOperand folds a number that is loaded into list[i], which is its only user.
func (c *compiler) foldOperand(list []ssa.Instruction, i int, v ssa.Value) bool {
	return c.foldOperandOf(list, i, v, i)
}

// foldOperandOf is foldOperand for list[i] that is itself done with list[last].
func (c *compiler) foldOperandOf(list []ssa.Instruction, i int, v ssa.Value, last int) bool {
	load, ok := v.(*ssa.UnOp)
	if !ok || !isLoad(load) || c.stays[load] || isLoopState(load.X) || load.Block() != list[i].Block() || onlyUser(load) != list[i] || !c.adjacent(list, last, load) {
		return false
	}
	c.folded[load] = true
	return true
}

// isAssignment reports whether an operation is x op y of an assignment x op= y.
func (c *compiler) isAssignment(in *ssa.BinOp) bool {
	store, ok := onlyUser(in).(*ssa.Store)
	load, isLoad := in.X.(*ssa.UnOp)
	return ok && isLoad && assigns(in.Op) && load.X == store.Addr
}

// foldAssignment folds x op y, whose x is loaded from where list[i] stores the result.
func (c *compiler) foldAssignment(list []ssa.Instruction, i int, in *ssa.Store) {
	result, ok := in.Val.(*ssa.BinOp)
	if !ok || !c.isAssignment(result) || result.Block() != in.Block() || !isBasic(result.Type(), types.IsInteger|types.IsFloat) {
		return
	}
	load, ok := result.X.(*ssa.UnOp)
	if !ok || !isLoad(load) || c.stays[load] || result.Y == result.X || load.Block() != in.Block() || onlyUser(load) != ssa.Instruction(result) || isLoopState(load.X) {
		return
	}
	if !c.adjacent(list, i, load) {
		return
	}
	c.folded[result], c.folded[load] = true, true
	c.assigned[in] = result
	addr, ok := in.Addr.(ssa.Instruction)
	if !ok || addr.Block() != in.Block() || len(*in.Addr.Referrers()) != 2 {
		return
	}
	switch in.Addr.(type) {
	case *ssa.IndexAddr, *ssa.FieldAddr:
		if c.adjacent(list, i, addr) {
			c.folded[addr] = true
		}
	}
}

func assigns(tok token.Token) bool {
	switch tok {
	case token.ADD, token.SUB, token.MUL, token.AND, token.OR, token.XOR, token.AND_NOT:
		return true
	}
	return false
}

// adjacent reports whether in, an instruction before list[i], can as well be done with it.
func (c *compiler) adjacent(list []ssa.Instruction, i int, in ssa.Instruction) bool {
	for k := i - 1; k >= 0 && i-k <= farthest; k-- {
		if list[k] == in {
			return c.sameLine(in, list[i])
		}
		if !c.harmless(list[k]) && !c.folded[list[k]] {
			return false
		}
	}
	return false
}

func (c *compiler) sameLine(a, b ssa.Instruction) bool {
	if !c.f.own || c.harmless(a) || !b.Pos().IsValid() {
		return true
	}
	return a.Pos().IsValid() && c.line(a.Pos()) == c.line(b.Pos())
}

// onlyUser returns the instruction that uses v, nil when there are more or none.
func onlyUser(v ssa.Value) ssa.Instruction {
	var user ssa.Instruction
	for _, r := range *v.Referrers() {
		if _, debug := r.(*ssa.DebugRef); debug {
			continue
		}
		if user != nil {
			return nil
		}
		user = r
	}
	return user
}
