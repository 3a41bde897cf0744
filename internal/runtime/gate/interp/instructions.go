package interp

import (
	"go/types"
	"reflect"
	"unsafe"

	"golang.org/x/tools/go/ssa"
)

// An instruction says how one kind of go/ssa's instructions is compiled.
type instruction struct {
	kind    reflect.Type
	compile func(*compiler, ssa.Instruction) op
}

func of[I ssa.Instruction](compile func(*compiler, I) op) instruction {
	return instruction{reflect.TypeFor[I](), func(c *compiler, in ssa.Instruction) op { return compile(c, in.(I)) }}
}

// instructions lists all that is compiled to an operation or to nothing. What ends a block has no operation; the terminator compiles it.
func instructions() map[reflect.Type]func(*compiler, ssa.Instruction) op {
	table := map[reflect.Type]func(*compiler, ssa.Instruction) op{}
	for _, in := range []instruction{
		of(nothing[*ssa.DebugRef]), of(nothing[*ssa.Phi]), of(nothing[*ssa.Jump]), of(nothing[*ssa.If]), of(nothing[*ssa.Return]), of(nothing[*ssa.Panic]),
		of(inPlace[*ssa.Extract]), of(inPlace[*ssa.Field]), of(inPlace[*ssa.ChangeType]),
		of((*compiler).allocInstr), of((*compiler).binop), of((*compiler).unop), of((*compiler).store),
		of((*compiler).fieldAddr), of((*compiler).indexAddr), of((*compiler).index), of((*compiler).slice),
		of((*compiler).convertInstr), of((*compiler).multiConvert), of((*compiler).sliceToArrayPointer),
		of((*compiler).makeInterface), of((*compiler).changeInterface), of((*compiler).typeAssert),
		of((*compiler).makeClosure), of((*compiler).makeMap), of((*compiler).makeSlice), of((*compiler).makeChan),
		of((*compiler).lookup), of((*compiler).mapUpdate), of((*compiler).rangeInstr), of((*compiler).next),
		of((*compiler).callInstr), of((*compiler).deferInstr), of((*compiler).runDefers),
		of((*compiler).send), of((*compiler).selectInstr),
	} {
		table[in.kind] = in.compile
	}
	return table
}

// instr compiles one instruction; nil when there is nothing to do at run time.
func (c *compiler) instr(in ssa.Instruction) op {
	compile := c.mc.instructions[reflect.TypeOf(in)]
	if compile == nil {
		refuse("the program uses something that does not run here: " + in.String())
	}
	return compile(c, in)
}

func nothing[I ssa.Instruction](*compiler, I) op { return nil }

// inPlace is for parts of values and other views of them, which take no room of their own.
func inPlace[V ssa.Value](c *compiler, v V) op {
	c.off(v)
	return nil
}

func (c *compiler) store(in *ssa.Store) op {
	if field, ok := in.Addr.(*ssa.FieldAddr); ok && isBlank(field) {
		return nil // the toolchain does not keep it, so that values are equal whatever stood there
	}
	if result := c.assigned[in]; result != nil {
		return c.assignment(result, c.place(in.Addr))
	}
	return storeOp(c.layout(in.Val.Type()), c.place(in.Addr), c.off(in.Val))
}

func (c *compiler) convertInstr(in *ssa.Convert) op {
	if lends(in) {
		return lendOp(isText(in.Type()), c.off(in), c.off(in.X))
	}
	return c.withoutRoom(in, c.convert(in.Type(), in.X.Type(), c.off(in), c.off(in.X)))
}

func (c *compiler) multiConvert(in *ssa.MultiConvert) op {
	return c.convert(in.Type(), in.X.Type(), c.off(in), c.off(in.X))
}

func (c *compiler) callInstr(in *ssa.Call) op {
	if isView(in) {
		return inPlace(c, in)
	}
	o := c.call(&in.Call, in)
	if c.f.wrapper {
		return c.passDeferral(o, c.plainCall(in))
	}
	return o
}

func (c *compiler) runDefers(*ssa.RunDefers) op {
	return func(m unsafe.Pointer) { headOf(m).runDefers() }
}

// passDeferral lets a method recover that is deferred through a wrapper: a promoted method, a method value. The wrapper makes a plain call, where there
// is one, when it is not deferred itself.
func (c *compiler) passDeferral(call, plain op) op {
	mc := c.mc
	return func(m unsafe.Pointer) {
		of := headOf(m).deferOf
		if of == nil && plain != nil {
			plain(m)
			return
		}
		mc.deferring = of
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
