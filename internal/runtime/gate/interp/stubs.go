package interp

import (
	"reflect"
	"sync"
	"unsafe"
)

// A method is a method of a program type that the host may call through a stub.
type method struct {
	f      *fn
	recv   *rtype // the receiver parameter's type
	direct bool   // the stub's word is the receiver itself, not a pointer to it
}

// slots is what the stubs stand for. It is process-wide because code addresses are; a Compiled takes slots
// and gives them back when it is closed.
var slots struct {
	mu      sync.Mutex
	methods [slotCount]*method // guarded by mu while changed; a stub is called only between take and free of its slot
}

type stubShape struct {
	form  string
	base  int
	codes []unsafe.Pointer
}

// codes returns the code addresses of functions.
func codes[F any](list []F) []unsafe.Pointer {
	out := make([]unsafe.Pointer, len(list))
	for i := range list {
		out[i] = **(**unsafe.Pointer)(unsafe.Pointer(&list[i]))
	}
	return out
}

// takeSlot returns the code that the host can call for m, and its slot; -1 when the host never calls methods of that type.
func (mc *machine) takeSlot(ft reflect.Type, m *method) (unsafe.Pointer, int) {
	if mc.shapes == nil {
		mc.shapes = map[reflect.Type]stubShape{}
		list := stubShapes()
		for i, t := range stubTypes() {
			mc.shapes[reflect.TypeOf(t)] = list[i]
		}
	}
	s, ok := mc.shapes[ft]
	if !ok {
		return nil, -1
	}
	slots.mu.Lock()
	defer slots.mu.Unlock()
	for i, code := range s.codes {
		if n := s.base + i; slots.methods[n] == nil {
			slots.methods[n] = m
			return code, n
		}
	}
	fail("too many methods of the form " + ft.String())
	return nil, -1
}

func (mc *machine) freeSlots() {
	slots.mu.Lock()
	defer slots.mu.Unlock()
	for _, n := range mc.taken {
		slots.methods[n] = nil
	}
	mc.taken = nil
}

// invokeSlot is what every stub calls.
func invokeSlot(slot int, recv unsafe.Pointer, args, results []unsafe.Pointer) {
	m := slots.methods[slot]
	f := m.f
	f.prepare()
	mem := f.newFrame()
	if m.direct {
		*(*unsafe.Pointer)(unsafe.Add(mem, f.params[0].off)) = recv
	} else {
		typedmemmove(m.recv, unsafe.Add(mem, f.params[0].off), recv)
	}
	for i, a := range args {
		p := f.params[i+1]
		typedmemmove(p.rt, unsafe.Add(mem, p.off), a)
	}
	f.mc.depth += hostWeight
	f.run(mem)
	f.mc.depth -= hostWeight
	for i, r := range results {
		typedmemmove(f.results[i].rt, r, unsafe.Add(mem, f.results[i].off))
	}
	f.release(mem)
}

// hostCalls reports whether an interface of the allowed packages has a method of that name: no other method needs a stub.
func hostCalls(name string) bool {
	switch name {
	case "Error", "String", "GoString", "Unwrap", "Close", "UnreadByte", "UnreadRune", "Is", "As", "Format", "Scan",
		"MarshalJSON", "MarshalText", "MarshalBinary", "UnmarshalJSON", "UnmarshalText", "UnmarshalBinary", "AppendText", "AppendBinary",
		"MarshalXML", "UnmarshalXML", "MarshalXMLAttr", "UnmarshalXMLAttr", "Len", "Less", "Swap", "Push", "Pop",
		"Read", "Write", "WriteString", "ReadByte", "WriteByte", "ReadRune", "ReadAt", "WriteAt", "Seek", "WriteTo", "ReadFrom",
		"Sum", "Reset", "Size", "BlockSize", "Sum32", "Sum64", "Uint64", "Int63", "Seed", "Timeout", "Temporary", "IsZero", "Token", "Width", "Precision", "Flag":
		return true
	}
	return false
}

// trap is the code of methods that the host has no way to call.
func trap(unsafe.Pointer) { panic("interp: the host called a method that no interface of its own has") }
