package interp

import (
	"go/types"
	"reflect"
	"unsafe"

	"golang.org/x/tools/go/ssa"
)

// This file gives the values of a function their places in its frame.

func (c *compiler) layout(t types.Type) *rtype { return rtypeOf(c.mc.types.layout(t)) }

func (c *compiler) real(t types.Type) *rtype { return rtypeOf(c.mc.types.of(t)) }

// alloc reserves room for a value.
func (c *compiler) alloc(rt *rtype) uintptr {
	if rt.Size > 4<<20 {
		refuse("a value in a function takes more than 4 MiB; use a slice or a pointer")
	}
	align := max(uintptr(rt.Align), 1)
	off := (c.size + align - 1) &^ (align - 1)
	c.size = off + rt.Size
	for uintptr(len(c.mask))*wordSize < c.size {
		c.mask = append(c.mask, 0)
	}
	markPointers(reflectOf(rt), c.mask[off/wordSize:])
	return off
}

// markPointers marks the words that are pointers in a value of the type. The mask in a type will not do: large types have none until the
// collector needs it.
func markPointers(t reflect.Type, mask []byte) {
	if rtypeOf(t).PtrBytes == 0 {
		return
	}
	switch t.Kind() {
	case reflect.Array:
		words := t.Elem().Size() / wordSize
		for i := range uintptr(t.Len()) {
			markPointers(t.Elem(), mask[i*words:])
		}
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			markPointers(f.Type, mask[f.Offset/wordSize:])
		}
	case reflect.Interface:
		mask[0], mask[1] = 1, 1
	default:
		mask[0] = 1 // the first word of strings and slices, the only one of all others
	}
}

func (c *compiler) slotFor(v ssa.Value, t types.Type) slot {
	rt := c.layout(t)
	s := slot{c.alloc(rt), rt}
	c.offs[v] = s.off
	return s
}

func (c *compiler) slots(list []*ssa.Parameter) []slot {
	var out []slot
	for _, v := range list {
		out = append(out, c.slotFor(v, v.Type()))
	}
	return out
}

// tupleOffsets returns where the parts of a tuple register stand, allocating them at first.
func (c *compiler) tuple(v ssa.Value) []uintptr {
	t := v.Type().(*types.Tuple)
	if t.Len() == 0 {
		return nil
	}
	base, ok := c.offs[v]
	var lay []slot
	if !ok {
		for i := range t.Len() {
			rt := c.layout(t.At(i).Type())
			lay = append(lay, slot{c.alloc(rt), rt})
		}
		c.offs[v] = lay[0].off
		base = lay[0].off
	}
	// Parts follow each other as alloc placed them: recompute from the base.
	out := make([]uintptr, t.Len())
	at := base
	for i := range out {
		rt := c.layout(t.At(i).Type())
		align := max(uintptr(rt.Align), 1)
		at = (at + align - 1) &^ (align - 1)
		out[i] = at
		at += rt.Size
	}
	return out
}

// resultAndOK returns where the result of an operation stands and, of a comma-ok form, where its ok stands.
func (c *compiler) resultAndOK(v ssa.Value, commaOk bool) (result, ok uintptr) {
	if !commaOk {
		return c.off(v), 0
	}
	parts := c.tuple(v)
	return parts[0], parts[1]
}

// off returns where a value stands in the frame.
func (c *compiler) off(v ssa.Value) uintptr {
	if of, ok := c.shared[v]; ok {
		v = of
	}
	if off, ok := c.offs[v]; ok {
		return off
	}
	switch v := v.(type) {
	case *ssa.Const:
		return c.constant(v)
	case *ssa.Global:
		return c.pointerConst(v, c.mc.global(v))
	case *ssa.Function:
		return c.pointerConst(v, c.mc.funcValue(v))
	case *ssa.Extract:
		off := c.tuple(v.Tuple)[v.Index]
		c.offs[v] = off
		return off
	case *ssa.Field:
		off := c.off(v.X) + c.fieldOffset(v.X.Type(), v.Field)
		c.offs[v] = off
		return off
	case *ssa.ChangeType:
		off := c.off(v.X)
		c.offs[v] = off
		return off
	case *ssa.Call:
		if isView(v) {
			return c.view(v)
		}
	}
	if t, ok := v.Type().(*types.Tuple); ok && t.Len() > 0 {
		return c.tuple(v)[0]
	}
	var rt *rtype
	switch v.(type) {
	case *ssa.Range:
		rt = rtypeOf(reflect.TypeFor[unsafe.Pointer]())
	default:
		rt = c.layout(v.Type())
	}
	off := c.alloc(rt)
	c.offs[v] = off
	return off
}

// view returns where the length or capacity stands in a string or slice.
func (c *compiler) view(v *ssa.Call) uintptr {
	off := c.off(v.Call.Args[0]) + unsafe.Offsetof(sliceHeader{}.len)
	if isBuiltin(v, "cap") {
		off = c.off(v.Call.Args[0]) + unsafe.Offsetof(sliceHeader{}.cap)
	}
	c.offs[v] = off
	return off
}

func (c *compiler) fieldOffset(t types.Type, i int) uintptr {
	rt := c.mc.types.layout(t)
	if rt.Name() == "" {
		return rt.Field(i).Offset
	}
	// A type of the host: a patch release may have put fields in between.
	name := t.Underlying().(*types.Struct).Field(i).Name()
	f, ok := rt.FieldByName(name)
	if !ok || len(f.Index) != 1 {
		fail("no field " + name + " of " + rt.String())
	}
	return f.Offset
}

func (c *compiler) pointerConst(v ssa.Value, p unsafe.Pointer) uintptr {
	off := c.alloc(rtypeOf(reflect.TypeFor[unsafe.Pointer]()))
	c.offs[v] = off
	c.inits = append(c.inits, func(m unsafe.Pointer) { *(*unsafe.Pointer)(unsafe.Add(m, off)) = p })
	return off
}
