package interp

import (
	"reflect"
	"unsafe"

	"golang.org/x/tools/go/ssa"
)

// A compiler turns one function's SSA form into operations on its frame.
type compiler struct {
	mc       *machine
	f        *fn
	offs     map[ssa.Value]uintptr
	size     uintptr
	mask     []byte // one byte a word: holds a pointer
	inits    []func(template unsafe.Pointer)
	consts   map[constKey]uintptr
	folded   map[ssa.Instruction]bool  // compiled as a part of the instructions that use their values
	assigned map[*ssa.Store]*ssa.BinOp // that store the result of an operation on what was there
	shared   map[ssa.Value]ssa.Value   // by value: the one whose place it has
	known    map[*ssa.FieldAddr]bool   // of structs that are there
	stays    map[*ssa.UnOp]bool        // loads that are not folded
	blocks   []*codeBlock
}

type constKey struct {
	t reflect.Type
	v string
}

// newCompiler returns a compiler for frames of f, which begin with their head.
func newCompiler(f *fn) *compiler {
	c := &compiler{mc: f.mc, f: f, offs: map[ssa.Value]uintptr{}, consts: map[constKey]uintptr{},
		folded: map[ssa.Instruction]bool{}, assigned: map[*ssa.Store]*ssa.BinOp{}, shared: map[ssa.Value]ssa.Value{}, known: map[*ssa.FieldAddr]bool{}, stays: map[*ssa.UnOp]bool{}}
	c.alloc(rtypeOf(reflect.TypeFor[*frameHead]()))
	return c
}

// declare gives the parameters, free variables and results of f their places, which callers must know. It is nothing when that is done.
func (f *fn) declare() {
	if f.compiler != nil || f.ready {
		return
	}
	f.mc.types.noteLocals(f.ssa)
	c := newCompiler(f)
	f.params = c.slots(f.ssa.Params)
	for _, v := range f.ssa.FreeVars {
		f.free = append(f.free, c.slotFor(v, v.Type()))
	}
	results := f.ssa.Signature.Results()
	for i := range results.Len() {
		rt := c.layout(results.At(i).Type())
		f.results = append(f.results, slot{c.alloc(rt), rt})
	}
	f.defers = defers(f.ssa)
	f.compiler = c
}

// prepare compiles f at its first call.
func (f *fn) prepare() {
	if f.ready {
		return
	}
	if f.mc.running {
		defer f.mc.containCompiling()
	}
	f.declare()
	c := f.compiler
	f.compiler = nil
	c.blocks = make([]*codeBlock, len(f.ssa.Blocks))
	for i := range c.blocks {
		c.blocks[i] = &codeBlock{}
	}
	c.findKnown(f.ssa.Blocks[0], map[ssa.Value]witness{})
	for _, b := range f.ssa.Blocks {
		c.fold(b)
	}
	c.share(f.ssa)
	for _, b := range f.ssa.Blocks {
		c.block(b)
	}
	c.link()
	f.entry = c.blocks[0]
	if f.ssa.Recover != nil {
		f.recover = c.blocks[f.ssa.Recover.Index]
	}
	if f.defers {
		f.zero = f.results
	}
	c.finish()
	f.ready = true
}

// defers reports whether a function has deferred calls of its own, or of a loop over a function in it, or results that they may set.
func defers(f *ssa.Function) bool {
	if f.Recover != nil {
		return true
	}
	for _, b := range f.Blocks {
		for _, in := range b.Instrs {
			switch in := in.(type) {
			case *ssa.Defer:
				if in.DeferStack == nil {
					return true
				}
			case *ssa.Call:
				if b, ok := in.Call.Value.(*ssa.Builtin); ok && b.Name() == "ssa:deferstack" {
					return true
				}
			}
		}
	}
	return false
}

// finish makes the frame's type and the template of a fresh frame.
func (c *compiler) finish() {
	size := (c.size + wordSize) &^ (wordSize - 1) // one byte more, so that no empty value stands past the end
	mask := make([]byte, (len(c.mask)/64+1)*8)    // the collector reads it by words
	ptrs := uintptr(0)
	for i, p := range c.mask {
		if p != 0 {
			mask[i/8] |= 1 << (i % 8)
			ptrs = uintptr(i+1) * wordSize
		}
	}
	if size > 16<<20 {
		refuse("the values of a function take more than 16 MiB; use slices or pointers")
	}
	str := encodeName("frame", "", true, false, 0)
	c.f.frame = &rtype{Size: size, PtrBytes: ptrs, Align: 8, FieldAlign: 8, Kind: uint8(reflect.Struct),
		GCData: unsafe.SliceData(mask), Str: off(str)}
	addReflectOff(unsafe.Pointer(c.f.frame)) // the collector may come upon a dead frame when the program is gone
	c.f.template = unsafeNew(c.f.frame)
	for _, init := range c.inits {
		init(c.f.template)
	}
}
