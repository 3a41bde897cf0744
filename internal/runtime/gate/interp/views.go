package interp

import (
	"go/types"

	"golang.org/x/tools/go/ssa"
)

// Some values are views of others: parts of them, or they with another type. They have no place of their own.

// retyped returns the value that v is another view of.
func retyped(v ssa.Value) ssa.Value {
	for {
		t, ok := v.(*ssa.ChangeType)
		if !ok {
			return v
		}
		v = t.X
	}
}

func asInstruction(v ssa.Value) ssa.Instruction {
	in, _ := v.(ssa.Instruction)
	return in
}

// holder returns the value in whose place v stands.
func holder(v ssa.Value) ssa.Value {
	for {
		switch x := v.(type) {
		case *ssa.ChangeType:
			v = x.X
		case *ssa.Field:
			v = x.X
		case *ssa.Extract:
			v = x.Tuple
		case *ssa.Call:
			if !isView(x) {
				return v
			}
			v = x.Call.Args[0]
		default:
			return v
		}
	}
}

// inFrame reports whether an instruction is only a view of another value, which those read that read it.
func inFrame(in ssa.Instruction) bool {
	v, ok := in.(ssa.Value)
	return ok && holder(v) != v
}

func isTuple(v ssa.Value) bool {
	_, ok := v.Type().(*types.Tuple)
	return ok
}
