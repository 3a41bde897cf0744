package interp

import (
	"errors"
	"fmt"
	"go/types"
	"reflect"
	"runtime"
	"sync/atomic"
	"unsafe"
)

// The oracle says whether the run-time types of a program are what they must be. It takes sizes, offsets, pointers, names and parts from
// go/types alone; the hashes and insides of maps it takes from map types that reflect makes of types of the binary. It makes no types of the program.
//
// Of an array with more than 64 elements it looks at the first two, the middle and the last.

// CheckTypes returns an error that names the types of the program that are not what they must be; it gives up after ten faults. Compile
// calls it, and builds with the tag enginecheck after each run. It may be called between runs.
func (c *Compiled) CheckTypes() error { return c.mc.types.check() }

const maxFaults = 10

func (tt *typeTable) check() error {
	o := &oracle{tt: tt, sizes: types.SizesFor("gc", runtime.GOARCH)}
	tt.byType.Iterate(func(t types.Type, rt any) {
		if len(o.faults) < maxFaults {
			o.check(types.Unalias(t), rt.(reflect.Type))
		}
	})
	if len(o.faults) == 0 { // it reads the tables that are right by now
		o.checkImplements()
	}
	return errors.Join(o.faults...)
}

type oracle struct {
	tt     *typeTable
	sizes  types.Sizes
	about  types.Type // the type under examination
	faults []error
}

// want notes a fault of the type under examination unless ok, which it returns.
func (o *oracle) want(ok bool, format string, args ...any) bool {
	if !ok {
		o.faults = append(o.faults, fmt.Errorf("type %s: "+format, append([]any{o.about}, args...)...))
	}
	return ok
}

func (o *oracle) check(t types.Type, rt reflect.Type) {
	o.about = t
	if b, ok := t.(*types.Basic); ok && (b.Info()&types.IsUntyped != 0 || b.Kind() == types.Invalid) {
		return // stands for a type of the binary
	}
	if !o.checkHead(t, rt) || !o.checkMask(t, rt) {
		return // what follows reads memory by that form
	}
	o.checkEqual(t, rt)
	if o.hosted(t) {
		return // its names, parts and methods are the binary's own
	}
	o.checkName(t, rt)
	o.checkParts(t.Underlying(), rt)
	o.checkMethods(t, rt)
}

// hosted reports whether t is a named type of the binary or the pointer to one.
func (o *oracle) hosted(t types.Type) bool {
	if p, ok := t.(*types.Pointer); ok {
		t = types.Unalias(p.Elem())
	}
	named, ok := t.(*types.Named)
	return ok && o.tt.host(named) != nil
}

// checkHead looks at size, alignment, kind and flags.
func (o *oracle) checkHead(t types.Type, rt reflect.Type) bool {
	before := len(o.faults)
	r, kind := rtypeOf(rt), o.tt.layout(t).Kind()
	o.want(int64(r.Size) == o.sizes.Sizeof(t), "has %d bytes instead of %d", r.Size, o.sizes.Sizeof(t))
	o.want(int64(r.Align) == o.sizes.Alignof(t) && r.FieldAlign == r.Align, "is aligned to %d and %d instead of %d", r.Align, r.FieldAlign, o.sizes.Alignof(t))
	o.want(rt.Kind() == kind, "is a %s instead of a %s", rt.Kind(), kind)
	o.want((r.Equal != nil) == types.Comparable(t), "can be compared: %t", r.Equal != nil)
	o.want(r.direct() == (r.Size == wordSize && r.PtrBytes == wordSize), "is the word of an interface itself: %t", r.direct())
	if r.TFlag&flagRegular != 0 {
		sum := uintptr(0)
		o.leaves(t, 0, false, func(l leaf) {
			sum += l.size
			switch l.lay.Kind() {
			case reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128, reflect.String, reflect.Interface:
				o.want(false, "is hashed as plain memory in spite of a %s", l.lay)
			}
		})
		o.want(sum == r.Size || sum < r.Size && hasLongArray(t), "is hashed as plain memory in spite of gaps")
	}
	return before == len(o.faults)
}

// A leaf is a part of a value that has no parts itself.
type leaf struct {
	off, size uintptr
	lay       reflect.Type
	blank     bool // within a field that has no name
}

// leaves calls yield for each leaf of a value of t that stands at off.
func (o *oracle) leaves(t types.Type, off uintptr, blank bool, yield func(leaf)) {
	switch u := t.Underlying().(type) {
	case *types.Struct:
		for i, at := range o.offsets(u) {
			o.leaves(u.Field(i).Type(), off+uintptr(at), blank || u.Field(i).Name() == "_", yield)
		}
	case *types.Array:
		size := uintptr(o.sizes.Sizeof(u.Elem()))
		for _, i := range sample(uintptr(u.Len())) {
			o.leaves(u.Elem(), off+i*size, blank, yield)
		}
	default:
		yield(leaf{off, uintptr(o.sizes.Sizeof(t)), o.tt.layout(t), blank})
	}
}

func (o *oracle) offsets(t *types.Struct) []int64 {
	fields := make([]*types.Var, t.NumFields())
	for i := range fields {
		fields[i] = t.Field(i)
	}
	return o.sizes.Offsetsof(fields)
}

const wholeArray = 64

// sample returns the indexes of an array to look at.
func sample(n uintptr) []uintptr {
	if n > wholeArray {
		return []uintptr{0, 1, n / 2, n - 1}
	}
	out := make([]uintptr, n)
	for i := range out {
		out[i] = uintptr(i)
	}
	return out
}

// hasLongArray reports whether leaves leaves out some of t.
func hasLongArray(t types.Type) bool {
	switch u := t.Underlying().(type) {
	case *types.Struct:
		for f := range u.Fields() {
			if hasLongArray(f.Type()) {
				return true
			}
		}
	case *types.Array:
		return u.Len() > wholeArray || hasLongArray(u.Elem())
	}
	return false
}

// A word of memory holds a pointer or does not. Of an interface's first word the compiler says no and reflect yes: what it points to lives anyway.
type word uint8

const (
	scalar word = iota
	pointer
	either
)

func (l leaf) words() []word {
	switch l.lay.Kind() {
	case reflect.String:
		return []word{pointer, scalar}
	case reflect.Slice:
		return []word{pointer, scalar, scalar}
	case reflect.Interface:
		return []word{either, pointer}
	case reflect.Pointer, reflect.UnsafePointer, reflect.Map, reflect.Chan, reflect.Func:
		return []word{pointer}
	}
	return make([]word, (l.off%wordSize+l.size+wordSize-1)/wordSize)
}

// checkMask looks at where the collector finds pointers.
func (o *oracle) checkMask(t types.Type, rt reflect.Type) bool {
	before := len(o.faults)
	r, end := rtypeOf(rt), uintptr(0)
	o.leaves(t, 0, false, func(l leaf) {
		for i, w := range l.words() {
			if w == pointer {
				end = max(end, (l.off/wordSize+uintptr(i)+1)*wordSize)
			}
		}
	})
	if !o.want(r.PtrBytes == end, "has pointers in the first %d bytes instead of %d", r.PtrBytes, end) {
		return false
	}
	o.compareMask(t, func(at uintptr) bool { return hasPointer(r, at) })
	if built := builtMask(r); built != nil && before == len(o.faults) {
		o.compareMask(t, func(at uintptr) bool { return at < r.PtrBytes/wordSize && maskBit(built, at) })
	}
	return before == len(o.faults)
}

// compareMask notes the first word of a t that holds a pointer and should not, or the reverse.
func (o *oracle) compareMask(t types.Type, holds func(at uintptr) bool) {
	before := len(o.faults)
	o.leaves(t, 0, false, func(l leaf) {
		for i, w := range l.words() {
			at := l.off/wordSize + uintptr(i)
			if w != either && before == len(o.faults) {
				o.want(holds(at) == (w == pointer), "has a pointer in word %d: %t", at, w != pointer)
			}
		}
	})
}

// hasPointer reports whether a word of r holds a pointer: by its mask or, where the runtime builds that when it is needed, by the
// parts of which it does.
func hasPointer(r *rtype, at uintptr) bool {
	for at < r.PtrBytes/wordSize {
		if r.TFlag&flagMaskOnDemand == 0 {
			return maskBit(r.GCData, at)
		}
		if reflectOf(r).Kind() == reflect.Array {
			r = (*arrayType)(unsafe.Pointer(r)).Elem
			at %= r.Size / wordSize
			continue
		}
		fields, i := (*structType)(unsafe.Pointer(r)).Fields, 0
		for j, f := range fields {
			if f.Typ.Size > 0 && f.Offset <= at*wordSize {
				i = j
			}
		}
		r, at = fields[i].Typ, at-fields[i].Offset/wordSize
	}
	return false
}

func maskBit(mask *byte, at uintptr) bool {
	return *(*byte)(unsafe.Add(unsafe.Pointer(mask), at/8))>>(at%8)&1 != 0
}

// builtMask returns the mask that the runtime has built when it was needed, or nil. While it builds one, it marks that by another pointer, for
// a moment: two equal looks with a collection between them have seen the mask.
func builtMask(r *rtype) *byte {
	if r.TFlag&flagMaskOnDemand == 0 {
		return nil
	}
	place := (*unsafe.Pointer)(unsafe.Pointer(r.GCData))
	for {
		p := atomic.LoadPointer(place)
		if p == nil {
			return nil
		}
		runtime.GC()
		if atomic.LoadPointer(place) == p {
			return (*byte)(p)
		}
	}
}
