package order

import (
	"go/types"
)

// How the compiler passes a key to the map functions of the Go runtime.
const (
	keyByValue   = iota // by value, at the time of the map operation
	keyByAddress        // by its address; a key without one is copied early
	keyCopied           // by the address of an early copy
)

// largestElement is the element size in bytes above which every map takes its keys by address (internal/abi.MapMaxElemBytes).
const largestElement = 128

// keyPassing returns how the keys of a map are passed: words and strings by value, structs and arrays that consist of one word or string by an early
// copy, others by address.
func keyPassing(m *types.Map) int {
	if open(m.Key()) || open(m.Elem()) {
		return keyByValue
	}
	size := sizes.Sizeof(m.Key())
	text := isText(component(m.Key()))
	word := (size == 4 || size == 8) && plainMemory(m.Key())
	switch {
	case sizes.Sizeof(m.Elem()) > largestElement, !text && !word:
		return keyByAddress
	case aggregate(m.Key()):
		return keyCopied
	}
	return keyByValue
}

// plainMemory reports whether two values of a type are equal exactly if their bytes are equal.
func plainMemory(t types.Type) bool {
	switch u := t.Underlying().(type) {
	case *types.Basic:
		return u.Info()&(types.IsInteger|types.IsBoolean) != 0 || u.Kind() == types.UnsafePointer
	case *types.Pointer, *types.Chan:
		return true
	case *types.Array:
		return plainMemory(u.Elem())
	case *types.Struct:
		end := int64(0)
		var fields []*types.Var
		for f := range u.Fields() {
			if f.Name() == "_" || !plainMemory(f.Type()) {
				return false
			}
			fields = append(fields, f)
		}
		offsets := sizes.Offsetsof(fields)
		for i, f := range fields {
			if offsets[i] != end {
				return false // padding
			}
			end += sizes.Sizeof(f.Type())
		}
		return end == sizes.Sizeof(t)
	}
	return false
}

// inRegisters reports whether the compiler keeps values of a type in registers: at most four words, in structs of at most four fields and arrays of at
// most one element.
func inRegisters(t types.Type) bool {
	if open(t) || sizes.Sizeof(t) > 4*sizes.Sizeof(types.Typ[types.Uintptr]) {
		return false
	}
	switch u := t.Underlying().(type) {
	case *types.Array:
		return u.Len() <= 1 && inRegisters(u.Elem())
	case *types.Struct:
		for f := range u.Fields() {
			if !inRegisters(f.Type()) {
				return false
			}
		}
		return u.NumFields() <= 4
	}
	return true
}

// pointers reports whether values of a type contain pointers.
func pointers(t types.Type) bool {
	switch u := t.Underlying().(type) {
	case *types.Basic:
		return u.Info()&types.IsString != 0 || u.Kind() == types.UnsafePointer
	case *types.Array:
		return u.Len() > 0 && pointers(u.Elem())
	case *types.Struct:
		for f := range u.Fields() {
			if pointers(f.Type()) {
				return true
			}
		}
		return false
	}
	return true
}

// open reports whether a type depends on a type parameter, so that its size is unknown.
func open(t types.Type) bool { return (&opener{seen: map[types.Type]bool{}}).open(t) }

type opener struct{ seen map[types.Type]bool }

func (o *opener) open(t types.Type) bool {
	if o.seen[t] {
		return false
	}
	o.seen[t] = true
	switch t := t.(type) {
	case *types.TypeParam:
		return true
	case *types.Alias:
		return o.open(types.Unalias(t))
	case *types.Named:
		for arg := range t.TypeArgs().Types() {
			if o.open(arg) {
				return true
			}
		}
		return false
	case *types.Map:
		return o.open(t.Key()) || o.open(t.Elem())
	case *types.Signature:
		return o.open(t.Params()) || o.open(t.Results())
	case *types.Tuple:
		for v := range t.Variables() {
			if o.open(v.Type()) {
				return true
			}
		}
		return false
	case *types.Struct:
		for f := range t.Fields() {
			if o.open(f.Type()) {
				return true
			}
		}
		return false
	case interface{ Elem() types.Type }:
		return o.open(t.Elem())
	}
	return false
}
