package interp

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
}

// stubCode returns the code by which the host calls a method of a made type. The method's function type is ft.
func (mc *machine) stubCode(t types.Type, sel *types.Selection, ft reflect.Type) unsafe.Pointer {
	if !sel.Obj().Exported() { // no interface of the host has such a method
		return mc.trapCode()
	}
	m := &method{mc: mc, sel: sel, recv: rtypeOf(mc.types.layout(t)), direct: rtypeOf(mc.types.of(t)).direct()}
	if len(sel.Index()) == 1 { // what is promoted, be it from a host type with a hundred methods, is compiled when it is called
		m.f = mc.fnOf(mc.prog.MethodValue(sel))
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

// form returns the function value for a method of one of the most common signatures, without the cost of reflection; nil for others.
func (m *method) form(ft reflect.Type) any {
	switch reflect.Zero(ft).Interface().(type) {
	case func() string:
		return form0[string](m)
	case func() error:
		return form0[error](m)
	case func() int:
		return form0[int](m)
	case func() bool:
		return form0[bool](m)
	case func() any:
		return form0[any](m)
	case func() []error:
		return form0[[]error](m)
	case func() float64:
		return form0[float64](m)
	case func() ([]byte, error):
		return form0x2[[]byte, error](m)
	case func() (byte, error):
		return form0x2[byte, error](m)
	case func(any):
		return form1x0[any](m)
	case func(error) bool:
		return form1[error, bool](m)
	case func(any) bool:
		return form1[any, bool](m)
	case func([]byte) error:
		return form1[[]byte, error](m)
	case func(string) error:
		return form1[string, error](m)
	case func(byte) error:
		return form1[byte, error](m)
	case func([]byte) (int, error):
		return form1x2[[]byte, int, error](m)
	case func(string) (int, error):
		return form1x2[string, int, error](m)
	case func(int, int) bool:
		return form2[int, int, bool](m)
	case func(int, int):
		return form2x0[int, int](m)
	case func(fmt.State, rune):
		return form2x0[fmt.State, rune](m)
	}
	return nil
}

func form0[R any](m *method) any {
	return func(recv unsafe.Pointer) R {
		f, mem := m.begin(recv)
		f.runForHost(mem)
		r := *at[R](mem, f.results[0].off)
		f.release(mem)
		return r
	}
}

func form0x2[R, S any](m *method) any {
	return func(recv unsafe.Pointer) (R, S) {
		f, mem := m.begin(recv)
		f.runForHost(mem)
		r, s := *at[R](mem, f.results[0].off), *at[S](mem, f.results[1].off)
		f.release(mem)
		return r, s
	}
}

func form1[A, R any](m *method) any {
	return func(recv unsafe.Pointer, a A) R {
		f, mem := m.begin(recv)
		*at[A](mem, f.params[1].off) = a
		f.runForHost(mem)
		r := *at[R](mem, f.results[0].off)
		f.release(mem)
		return r
	}
}

func form1x0[A any](m *method) any {
	return func(recv unsafe.Pointer, a A) {
		f, mem := m.begin(recv)
		*at[A](mem, f.params[1].off) = a
		f.runForHost(mem)
		f.release(mem)
	}
}

func form1x2[A, R, S any](m *method) any {
	return func(recv unsafe.Pointer, a A) (R, S) {
		f, mem := m.begin(recv)
		*at[A](mem, f.params[1].off) = a
		f.runForHost(mem)
		r, s := *at[R](mem, f.results[0].off), *at[S](mem, f.results[1].off)
		f.release(mem)
		return r, s
	}
}

func form2[A, B, R any](m *method) any {
	return func(recv unsafe.Pointer, a A, b B) R {
		f, mem := m.begin(recv)
		*at[A](mem, f.params[1].off), *at[B](mem, f.params[2].off) = a, b
		f.runForHost(mem)
		r := *at[R](mem, f.results[0].off)
		f.release(mem)
		return r
	}
}

func form2x0[A, B any](m *method) any {
	return func(recv unsafe.Pointer, a A, b B) {
		f, mem := m.begin(recv)
		*at[A](mem, f.params[1].off), *at[B](mem, f.params[2].off) = a, b
		f.runForHost(mem)
		f.release(mem)
	}
}
