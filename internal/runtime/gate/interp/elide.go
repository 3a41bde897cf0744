package interp

import (
	"go/token"
	"go/types"
	"unsafe"

	"golang.org/x/tools/go/ssa"
)

// The toolchain leaves out copies that nobody can notice, and programs come to cost what they cost without them. This file finds the same
// ones: values that are loaded for nothing, strings made of bytes to be compared, bytes made of strings to be read.

// unread reports whether an instruction loads a value that nobody reads, as _ = x.array does.
func unread(in *ssa.UnOp) bool {
	if in.Op != token.MUL {
		return false
	}
	for _, r := range *in.Referrers() {
		if _, debug := r.(*ssa.DebugRef); !debug {
			return false
		}
	}
	return true
}

// lends reports whether the result of a conversion between strings and bytes may share memory with its operand.
func lends(in *ssa.Convert) bool {
	switch {
	case isBytes(in.X.Type()) && isText(in.Type()):
		return onlyCompared(in)
	case isText(in.X.Type()) && isBytes(in.Type()):
		return onlyRead(in)
	}
	return false
}

// lent reports whether a value shares memory with what it was converted from.
func lent(v ssa.Value) bool {
	in, ok := v.(*ssa.Convert)
	return ok && lends(in)
}

func isText(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsString != 0
}

func isBytes(t types.Type) bool {
	s, ok := t.Underlying().(*types.Slice)
	if !ok {
		return false
	}
	b, ok := s.Elem().Underlying().(*types.Basic)
	return ok && b.Kind() == types.Byte
}

// lendOp is the conversion without a copy.
func lendOp(toText bool, d, x uintptr) op {
	if toText {
		return func(m unsafe.Pointer) {
			b := *at[[]byte](m, x)
			*at[string](m, d) = unsafe.String(unsafe.SliceData(b), len(b))
		}
	}
	return func(m unsafe.Pointer) {
		s := *at[string](m, x)
		*at[[]byte](m, d) = unsafe.Slice(unsafe.StringData(s), len(s))
	}
}

// onlyCompared reports whether a string is compared, measured or looked up in a map at once, before its bytes can change, and
// not kept.
func onlyCompared(v *ssa.Convert) bool {
	for _, r := range *v.Referrers() {
		switch r := r.(type) {
		case *ssa.DebugRef:
			continue
		case *ssa.BinOp:
			if r.Op == token.ADD { // which returns an operand as it is where the other is empty
				return false
			}
		case *ssa.Lookup:
			if r.Index != ssa.Value(v) || r.X == ssa.Value(v) {
				return false
			}
		case *ssa.Call:
			if !isBuiltin(r, "len") {
				return false
			}
		default:
			return false
		}
		if !quietBetween(v, r) {
			return false
		}
	}
	return true
}

// onlyRead reports whether bytes are only read, one by one or by a built-in function.
func onlyRead(v *ssa.Convert) bool {
	for _, r := range *v.Referrers() {
		switch r := r.(type) {
		case *ssa.DebugRef:
		case *ssa.IndexAddr:
			for _, use := range *r.Referrers() {
				if load, ok := use.(*ssa.UnOp); !ok || load.Op != token.MUL {
					return false
				}
			}
		case *ssa.Call:
			reads := isBuiltin(r, "len") || (isBuiltin(r, "append") || isBuiltin(r, "copy")) && r.Call.Args[0] != ssa.Value(v)
			if !reads {
				return false
			}
		default:
			return false
		}
	}
	return true
}

func isBuiltin(in *ssa.Call, name string) bool {
	b, ok := in.Call.Value.(*ssa.Builtin)
	return ok && b.Name() == name
}

// quietBetween reports whether nothing that changes memory can happen after from and before to.
func quietBetween(from, to ssa.Instruction) bool {
	list := to.Block().Instrs
	for i := len(list) - 1; list[i] != to; i-- {
		list = list[:i]
	}
	for b := to.Block(); ; list = b.Instrs {
		for i := len(list) - 1; i >= 0; i-- {
			if list[i] == from {
				return true
			}
			if list[i] != to && !quiet(list[i]) {
				return false
			}
		}
		if len(b.Preds) != 1 {
			return false
		}
		b = b.Preds[0]
	}
}

func quiet(in ssa.Instruction) bool {
	switch in := in.(type) {
	case *ssa.DebugRef, *ssa.BinOp, *ssa.If, *ssa.Jump, *ssa.IndexAddr, *ssa.FieldAddr, *ssa.Index, *ssa.Field, *ssa.Lookup, *ssa.Extract,
		*ssa.Convert, *ssa.ChangeType, *ssa.Slice:
		return true
	case *ssa.UnOp:
		return in.Op != token.ARROW
	case *ssa.Call:
		return isBuiltin(in, "len")
	}
	return false
}
