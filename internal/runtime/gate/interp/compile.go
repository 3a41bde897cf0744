package interp

import (
	"go/constant"
	"go/token"
	"go/types"
	"reflect"
	"unsafe"

	"golang.org/x/tools/go/ssa"
)

// A compiler turns one function's SSA form into operations on its frame.
type compiler struct {
	mc     *machine
	f      *fn
	offs   map[ssa.Value]uintptr
	size   uintptr
	mask   []byte // one byte a word: holds a pointer
	inits  []func(template unsafe.Pointer)
	consts map[constKey]uintptr
	blocks []*codeBlock
}

type constKey struct {
	t reflect.Type
	v string
}

// newCompiler returns a compiler for frames of f, which begin with their head.
func newCompiler(f *fn) *compiler {
	c := &compiler{mc: f.mc, f: f, offs: map[ssa.Value]uintptr{}, consts: map[constKey]uintptr{}}
	c.alloc(rtypeOf(reflect.TypeFor[*frameHead]()))
	return c
}

// prepare compiles f at its first call.
func (f *fn) prepare() {
	if f.ready {
		return
	}
	if f.mc.running {
		defer f.mc.containCompiling()
	}
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
	c.blocks = make([]*codeBlock, len(f.ssa.Blocks))
	for i := range c.blocks {
		c.blocks[i] = &codeBlock{}
	}
	for _, b := range f.ssa.Blocks {
		for _, in := range b.Instrs {
			if d, ok := in.(*ssa.Defer); ok && d.DeferStack == nil {
				f.defers = true
			}
			if call, ok := in.(*ssa.Call); ok {
				if bi, ok := call.Call.Value.(*ssa.Builtin); ok && bi.Name() == "ssa:deferstack" {
					f.defers = true
				}
			}
		}
	}
	if f.ssa.Recover != nil {
		f.defers = true
	}
	for _, b := range f.ssa.Blocks {
		c.block(b)
	}
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

// off returns where a value stands in the frame.
func (c *compiler) off(v ssa.Value) uintptr {
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

func (c *compiler) constant(v *ssa.Const) uintptr {
	lay := c.mc.types.layout(v.Type())
	key := constKey{t: lay}
	if v.Value != nil {
		key.v = v.Value.ExactString()
	}
	if off, ok := c.consts[key]; ok {
		c.offs[v] = off
		return off
	}
	off := c.alloc(rtypeOf(lay))
	c.offs[v] = off
	c.consts[key] = off
	if v.Value == nil {
		return off // frames start as zeros
	}
	val := reflect.New(lay).Elem()
	switch lay.Kind() {
	case reflect.Bool:
		val.SetBool(constant.BoolVal(v.Value))
	case reflect.String:
		val.SetString(constStringOf(v.Value))
	case reflect.Float32, reflect.Float64:
		f, _ := constant.Float64Val(constant.ToFloat(v.Value))
		if lay.Kind() == reflect.Float32 {
			f32, _ := constant.Float32Val(constant.ToFloat(v.Value))
			f = float64(f32)
		}
		val.SetFloat(f)
	case reflect.Complex64, reflect.Complex128:
		z := constant.ToComplex(v.Value)
		re, _ := constant.Float64Val(constant.Real(z))
		im, _ := constant.Float64Val(constant.Imag(z))
		val.SetComplex(complex(re, im))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n, _ := constant.Int64Val(constant.ToInt(v.Value))
		val.SetInt(n)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		n, _ := constant.Uint64Val(constant.ToInt(v.Value))
		val.SetUint(n)
	default:
		fail("a constant of type " + v.Type().String())
	}
	rt := rtypeOf(lay)
	src := val.Addr().UnsafePointer()
	c.inits = append(c.inits, func(m unsafe.Pointer) { typedmemmove(rt, unsafe.Add(m, off), src) })
	return off
}

func constStringOf(v constant.Value) string {
	if v.Kind() == constant.String {
		return constant.StringVal(v)
	}
	n, _ := constant.Int64Val(v)
	return string(rune(n))
}

// block compiles a basic block.
func (c *compiler) block(b *ssa.BasicBlock) {
	out := c.blocks[b.Index]
	for _, in := range b.Instrs {
		if o := c.instr(in); o != nil {
			out.ops = append(out.ops, c.metered(in, o))
			out.pos = append(out.pos, in.Pos())
		}
	}
	if len(b.Instrs) == 0 {
		out.next = func(unsafe.Pointer) *codeBlock { return nil }
		return
	}
	last := b.Instrs[len(b.Instrs)-1]
	out.last = last.Pos()
	out.next = c.meteredEnd(b, c.terminator(b, last))
}

func (c *compiler) terminator(b *ssa.BasicBlock, in ssa.Instruction) func(unsafe.Pointer) *codeBlock {
	switch in := in.(type) {
	case *ssa.Jump:
		return c.edge(b, 0)
	case *ssa.If:
		return c.branch(b, in)
	case *ssa.Return:
		moves := make([]op, 0, len(in.Results))
		for i, r := range in.Results {
			moves = append(moves, moveOp(c.f.results[i].rt, c.f.results[i].off, c.off(r)))
		}
		if len(moves) == 1 {
			move := moves[0]
			return func(m unsafe.Pointer) *codeBlock { move(m); return nil }
		}
		return func(m unsafe.Pointer) *codeBlock {
			for _, move := range moves {
				move(m)
			}
			return nil
		}
	case *ssa.Panic:
		if check := c.loopPanic(in); check != nil {
			return check
		}
		x := c.off(in.X)
		if !isEmptyInterface(in.X.Type()) {
			x2 := c.alloc(rtypeOf(reflect.TypeFor[any]()))
			return func(m unsafe.Pointer) *codeBlock {
				ifaceToEface(unsafe.Add(m, x2), unsafe.Add(m, x))
				panic(*(*any)(unsafe.Add(m, x2)))
			}
		}
		return func(m unsafe.Pointer) *codeBlock { panic(*(*any)(unsafe.Add(m, x))) }
	}
	fail("unknown end of a block")
	return nil
}

func (c *compiler) branch(b *ssa.BasicBlock, in *ssa.If) func(unsafe.Pointer) *codeBlock {
	x := c.off(in.Cond)
	yes, no := c.edge(b, 0), c.edge(b, 1)
	yesPhi, noPhi := hasPhi(b.Succs[0]), hasPhi(b.Succs[1])
	if !yesPhi && !noPhi {
		yb, nb := c.blocks[b.Succs[0].Index], c.blocks[b.Succs[1].Index]
		return func(m unsafe.Pointer) *codeBlock {
			if *(*bool)(unsafe.Add(m, x)) {
				return yb
			}
			return nb
		}
	}
	return func(m unsafe.Pointer) *codeBlock {
		if *(*bool)(unsafe.Add(m, x)) {
			return yes(m)
		}
		return no(m)
	}
}

func hasPhi(b *ssa.BasicBlock) bool {
	if len(b.Instrs) == 0 {
		return false
	}
	_, ok := b.Instrs[0].(*ssa.Phi)
	return ok
}

// edge compiles the way from b to its i-th successor: the phi registers there get their values, all at once.
func (c *compiler) edge(b *ssa.BasicBlock, i int) func(unsafe.Pointer) *codeBlock {
	succ := b.Succs[i]
	to := c.blocks[succ.Index]
	pred := predIndex(b, i)
	type move struct {
		rt       *rtype
		dst, src uintptr
	}
	var moves []move
	for _, in := range succ.Instrs {
		phi, ok := in.(*ssa.Phi)
		if !ok {
			break
		}
		rt := c.layout(phi.Type())
		m := move{rt, c.off(phi), c.off(phi.Edges[pred])}
		if m.dst != m.src && rt.Size > 0 {
			moves = append(moves, m)
		}
	}
	clash := false
	for i, a := range moves {
		for j, d := range moves {
			if i != j && a.src < d.dst+d.rt.Size && d.dst < a.src+a.rt.Size {
				clash = true
			}
		}
	}
	var ops []op
	if clash {
		for i := range moves {
			tmp := c.alloc(moves[i].rt)
			ops = append(ops, moveOp(moves[i].rt, tmp, moves[i].src))
			moves[i].src = tmp
		}
	}
	for _, m := range moves {
		ops = append(ops, moveOp(m.rt, m.dst, m.src))
	}
	switch len(ops) {
	case 0:
		return func(unsafe.Pointer) *codeBlock { return to }
	case 1:
		o := ops[0]
		return func(m unsafe.Pointer) *codeBlock { o(m); return to }
	case 2:
		o, p := ops[0], ops[1]
		return func(m unsafe.Pointer) *codeBlock { o(m); p(m); return to }
	}
	return func(m unsafe.Pointer) *codeBlock {
		for _, o := range ops {
			o(m)
		}
		return to
	}
}

// predIndex returns which predecessor of its i-th successor b is. Both edges of a branch may lead to the same block.
func predIndex(b *ssa.BasicBlock, i int) int {
	succ := b.Succs[i]
	nth := 0
	for j := range i {
		if b.Succs[j] == succ {
			nth++
		}
	}
	for k, p := range succ.Preds {
		if p == b {
			if nth == 0 {
				return k
			}
			nth--
		}
	}
	fail("an edge without a predecessor")
	return 0
}

// instr compiles one instruction; nil when there is nothing to do at run time.
func (c *compiler) instr(in ssa.Instruction) op {
	switch in := in.(type) {
	case *ssa.DebugRef, *ssa.Phi, *ssa.Jump, *ssa.If, *ssa.Return, *ssa.Panic:
		return nil
	case *ssa.Extract, *ssa.Field, *ssa.ChangeType:
		c.off(in.(ssa.Value))
		return nil
	case *ssa.Alloc:
		return c.allocInstr(in)
	case *ssa.BinOp:
		return c.binop(in)
	case *ssa.UnOp:
		if unread(in) {
			x := c.off(in.X)
			return func(m unsafe.Pointer) { nilCheck(*at[unsafe.Pointer](m, x)) }
		}
		return c.unop(in)
	case *ssa.Store:
		if field, ok := in.Addr.(*ssa.FieldAddr); ok && isBlank(field) {
			return nil // the toolchain does not keep it, so that values are equal whatever stood there
		}
		return storeOp(c.layout(in.Val.Type()), c.off(in.Addr), c.off(in.Val))
	case *ssa.FieldAddr:
		return c.fieldAddr(in)
	case *ssa.IndexAddr:
		return c.indexAddr(in)
	case *ssa.Index:
		return c.index(in)
	case *ssa.Slice:
		return c.slice(in)
	case *ssa.Convert:
		if lends(in) {
			return lendOp(isText(in.Type()), c.off(in), c.off(in.X))
		}
		return c.convert(in.Type(), in.X.Type(), c.off(in), c.off(in.X))
	case *ssa.MultiConvert:
		return c.convert(in.Type(), in.X.Type(), c.off(in), c.off(in.X))
	case *ssa.SliceToArrayPointer:
		return c.sliceToArrayPointer(in)
	case *ssa.MakeInterface:
		return c.makeInterface(in)
	case *ssa.ChangeInterface:
		return c.changeInterface(in)
	case *ssa.TypeAssert:
		return c.typeAssert(in)
	case *ssa.MakeClosure:
		return c.makeClosure(in)
	case *ssa.MakeMap:
		return c.makeMap(in)
	case *ssa.MakeSlice:
		return c.makeSlice(in)
	case *ssa.MakeChan:
		return c.makeChan(in)
	case *ssa.Lookup:
		return c.lookup(in)
	case *ssa.MapUpdate:
		return c.mapUpdate(in)
	case *ssa.Range:
		return c.rangeInstr(in)
	case *ssa.Next:
		return c.next(in)
	case *ssa.Call:
		if o := c.call(&in.Call, in); !c.f.wrapper {
			return o
		} else {
			return c.passDeferral(o)
		}
	case *ssa.Defer:
		return c.deferInstr(in)
	case *ssa.RunDefers:
		return func(m unsafe.Pointer) { headOf(m).runDefers() }
	case *ssa.Send:
		return c.send(in)
	case *ssa.Select:
		return c.selectInstr(in)
	}
	refuse("the program uses something that does not run here: " + in.String())
	return nil
}

// passDeferral lets a method recover that is deferred through a wrapper: a promoted method, a method value.
func (c *compiler) passDeferral(call op) op {
	mc := c.mc
	return func(m unsafe.Pointer) {
		mc.deferring = headOf(m).deferOf
		call(m)
		mc.deferring = nil
	}
}

func (c *compiler) allocInstr(in *ssa.Alloc) op {
	elem := in.Type().Underlying().(*types.Pointer).Elem()
	rt := c.layout(elem)
	d := c.off(in)
	if in.Heap || rt.Size > 1024 {
		return func(m unsafe.Pointer) { *(*unsafe.Pointer)(unsafe.Add(m, d)) = unsafeNew(rt) }
	}
	local := c.alloc(rt)
	return func(m unsafe.Pointer) {
		p := unsafe.Add(m, local)
		typedmemclr(rt, p)
		*(*unsafe.Pointer)(unsafe.Add(m, d)) = p
	}
}

// global returns the memory of a package variable. Those of host packages are copies, so that nothing passes on through them.
func (mc *machine) global(g *ssa.Global) unsafe.Pointer {
	if p, ok := mc.globals[g]; ok {
		return p
	}
	elem := g.Type().Underlying().(*types.Pointer).Elem()
	var p unsafe.Pointer
	if g.Object() != nil {
		if v := mc.hostVar(pathOf(g.Pkg.Pkg), g.Name()); v != nil {
			src := reflect.ValueOf(v)
			dst := reflect.New(src.Type().Elem())
			dst.Elem().Set(src.Elem())
			p = dst.UnsafePointer()
		}
	}
	if p == nil {
		rt := rtypeOf(mc.types.layout(elem))
		p = unsafeNew(rt)
		mc.own = append(mc.own, ownGlobal{rt, p})
	}
	mc.globals[g] = p
	return p
}

func isBlank(in *ssa.FieldAddr) bool {
	st, ok := in.X.Type().Underlying().(*types.Pointer).Elem().Underlying().(*types.Struct)
	return ok && st.Field(in.Field).Name() == "_"
}

func isEmptyInterface(t types.Type) bool {
	it, ok := t.Underlying().(*types.Interface)
	return ok && it.NumMethods() == 0
}

var _ = token.NoPos
