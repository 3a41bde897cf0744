package interp

//lint:file-ignore U1000 assembly uses it

import (
	"fmt"
	"go/types"
	"reflect"
	"sync"
	"unsafe"
)

// The host calls a method by a code address in the method table of the value's type and hands over the receiver, nothing else: the address
// must identify the method. So there is machine code to hand out, the stubs, each of which jumps to the function value in its slot.

// slotCount is how many methods of made types there may be at once in a process; the assembly files have as many stubs.
const (
	slotCount = 8192
	stubSize  = 16 // bytes of code
)

// slots holds function values of the form func(receiver unsafe.Pointer, arguments...) results. It is process-wide because code addresses
// are; a Compiled takes slots and gives them back when it is closed. A stub is called only while its slot is taken.
var slots [slotCount]unsafe.Pointer // guarded by slotMu while changed

var (
	slotMu    sync.Mutex
	freeSlots []int32 // given back; guarded by slotMu
	usedSlots int32   // those below it have been taken at some time; guarded by slotMu
)

func stubs()             // assembly: slotCount stubs
func firstStub() uintptr // assembly: the address of stubs

// takeSlot returns the code that calls the function value v.
func (mc *machine) takeSlot(v unsafe.Pointer) unsafe.Pointer {
	slotMu.Lock()
	defer slotMu.Unlock()
	var n int32
	if last := len(freeSlots) - 1; last >= 0 {
		n, freeSlots = freeSlots[last], freeSlots[:last]
	} else if n = usedSlots; n < slotCount {
		usedSlots++
	} else {
		refuse(fmt.Sprintf("the types of the program have more than %d methods", slotCount))
	}
	slots[n] = v
	mc.taken = append(mc.taken, n)
	return codeAt(firstStub() + uintptr(n)*stubSize)
}

// codeAt returns a code address as a pointer: the runtime keeps those of methods so.
func codeAt(pc uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&pc)) }

// freeSlots gives back what the program has taken.
func (mc *machine) freeSlots() {
	slotMu.Lock()
	defer slotMu.Unlock()
	for _, n := range mc.taken {
		slots[n] = nil
	}
	freeSlots = append(freeSlots, mc.taken...)
	mc.taken = nil
}

// A method is a method of a program type that the host may call.
type method struct {
	mc     *machine
	sel    *types.Selection
	f      *fn    // nil for a promoted method that nothing has called yet
	recv   *rtype // the receiver parameter's type
	direct bool   // the stub gets the receiver itself, not a pointer to it
	value  pointedTo
}

// stubCode returns the code by which the host calls a method of a made type. The method's function type is ft.
func (mc *machine) stubCode(t types.Type, sel *types.Selection, ft reflect.Type) unsafe.Pointer {
	if !sel.Obj().Exported() { // no interface of the host has such a method
		return mc.trapCode()
	}
	m := &method{mc: mc, sel: sel, recv: rtypeOf(mc.types.layout(t)), direct: rtypeOf(mc.types.of(t)).direct()}
	if len(sel.Index()) == 1 { // what is promoted, be it from a host type with a hundred methods, is compiled when it is called
		m.f = mc.fnOf(mc.prog.MethodValue(sel))
		m.value = mc.pointedTo(t, sel.Obj().Pkg(), sel.Obj().Name())
	}
	if f := m.form(ft); f != nil {
		return mc.takeSlot(funcPointer(reflect.ValueOf(f)))
	}
	return mc.takeSlot(funcPointer(m.anyForm(ft)))
}

// trapCode returns the code of unexported methods.
func (mc *machine) trapCode() unsafe.Pointer {
	if mc.trap == nil {
		trap := func() { mc.abort(&Failure{Why: "the host called an unexported method"}) }
		mc.trap = mc.takeSlot(funcPointer(reflect.ValueOf(trap)))
	}
	return mc.trap
}

// begin returns the method's function and a frame of it with the receiver in place.
func (m *method) begin(recv unsafe.Pointer) (*fn, unsafe.Pointer) {
	if v := m.value; recv != nil && v.f != nil && v.f.ready {
		mem := v.f.newFrame()
		copyTo(v.recv, unsafe.Add(mem, v.f.params[0].off), recv)
		return v.f, mem
	}
	if m.f == nil || !m.f.ready {
		m.prepare()
	}
	f := m.f
	mem := f.newFrame()
	if m.direct {
		*(*unsafe.Pointer)(unsafe.Add(mem, f.params[0].off)) = recv
	} else {
		typedmemmove(m.recv, unsafe.Add(mem, f.params[0].off), recv)
	}
	return f, mem
}

// prepare finds and compiles the method's function.
func (m *method) prepare() {
	defer m.mc.containOwn()
	if m.f == nil {
		m.resolve()
	}
	m.f.prepare()
}

// resolve finds the function of a promoted method.
func (m *method) resolve() {
	defer m.mc.containCompiling()
	m.f = m.mc.fnOf(m.mc.prog.MethodValue(m.sel))
}

// runForHost runs a frame on behalf of the host, which may recover panics.
func (f *fn) runForHost(mem unsafe.Pointer) {
	done := false
	defer func() {
		if done || f.mc.aborted != nil {
			return
		}
		place := faultOf()
		if r := recover(); r != nil {
			f.mc.noteCaught(r, place)
			panic(r)
		}
	}()
	f.mc.depth += hostWeight
	f.run(mem)
	f.mc.depth -= hostWeight
	done = true
}

// anyForm returns the function value for a method of any signature.
func (m *method) anyForm(ft reflect.Type) reflect.Value {
	in := []reflect.Type{reflect.TypeFor[unsafe.Pointer]()}
	for t := range ft.Ins() {
		in = append(in, t)
	}
	var out []reflect.Type
	for t := range ft.Outs() {
		out = append(out, t)
	}
	return reflect.MakeFunc(reflect.FuncOf(in, out, ft.IsVariadic()), func(args []reflect.Value) []reflect.Value {
		f, mem := m.begin(args[0].UnsafePointer())
		for i, a := range args[1:] {
			reflect.NewAt(a.Type(), unsafe.Add(mem, f.params[i+1].off)).Elem().Set(a)
		}
		f.runForHost(mem)
		values := f.hostResults(mem, out)
		f.release(mem)
		return values
	})
}

// hostResults returns the results of a frame. The frame is used again: they need memory of their own.
func (f *fn) hostResults(mem unsafe.Pointer, out []reflect.Type) []reflect.Value {
	values := make([]reflect.Value, len(f.results))
	for i, r := range f.results {
		v := reflect.New(out[i])
		copyTo(r.rt, v.UnsafePointer(), unsafe.Add(mem, r.off))
		values[i] = v.Elem()
	}
	return values
}
