package interp

import (
	"go/types"

	"golang.org/x/tools/go/ssa"
)

// A witness is what shows that a pointer is not nil where it is done: a store through it, which has no load, or a load.
type witness struct{ load *ssa.UnOp }

// findKnown notes the fields whose struct is there for certain: something was loaded or stored through the same pointer before, in this block
// or one that always precedes it. seen has these pointers. A load that this relies on is done where it stands.
func (c *compiler) findKnown(b *ssa.BasicBlock, seen map[ssa.Value]witness) {
	var added []ssa.Value
	add := func(addr ssa.Value, w witness) {
		f, ok := addr.(*ssa.FieldAddr)
		if !ok {
			return
		}
		if _, known := seen[f.X]; !known {
			seen[f.X] = w
			added = append(added, f.X)
		}
	}
	for _, in := range b.Instrs {
		switch in := in.(type) {
		case *ssa.FieldAddr:
			if w, ok := seen[in.X]; ok {
				c.known[in] = true
				if w.load != nil {
					c.stays[w.load] = true
				}
			}
		case *ssa.Store:
			add(in.Addr, witness{})
		case *ssa.UnOp:
			if isLoad(in) && c.mayStay(in) {
				add(in.X, witness{in})
			}
		}
	}
	for _, next := range b.Dominees() {
		c.findKnown(next, seen)
	}
	for _, v := range added {
		delete(seen, v)
	}
}

// mayStay reports whether a load loses little by being done where it stands.
func (c *compiler) mayStay(in *ssa.UnOp) bool {
	user, ok := onlyUser(in).(*ssa.BinOp)
	return isBasic(in.Type(), types.IsConstType) && !(ok && c.isAssignment(user))
}
