package interp

import (
	"reflect"
	"unsafe"
)

// A hostCaller calls host functions of one signature, from one place of the program, without reflection.
type hostCaller struct {
	fn   *unsafe.Pointer // the function value to call
	call op
}

// directCaller returns what calls functions that take p and return ft's results; nil where this file knows no way.
func (c *compiler) directCaller(p passing, ft reflect.Type, results []argument) *hostCaller {
	if p.no || len(p.words) > maxWords {
		return nil
	}
	if p.narrow { // so that they can be read as whole words, whatever the frame ends with
		c.alloc(rtypeOf(reflect.TypeFor[uintptr]()))
	}
	fn := new(unsafe.Pointer)
	call := callOf(fn, p, ft, results)
	if call == nil {
		return nil
	}
	return &hostCaller{fn, call}
}

// dynamicCaller returns a guarded call of the function value that it is given, for where it is only known when it is made.
func (c *compiler) dynamicCaller(p passing, ft reflect.Type, results []argument) func(m, fn unsafe.Pointer) {
	direct := c.directCaller(p, ft, results)
	if direct == nil {
		return nil
	}
	call := c.mc.guarded(direct.call, true)
	return func(m, fn unsafe.Pointer) {
		*direct.fn = fn
		call(m)
	}
}

// valueCaller returns a guarded call of a function value of the host's, of type ft.
func (c *compiler) valueCaller(ft reflect.Type, args, results []argument) func(m, fn unsafe.Pointer) {
	var p passing
	p.addAll(ft, args)
	if call := c.dynamicCaller(p, ft, results); call != nil {
		return call
	}
	return func(m, fn unsafe.Pointer) {
		fv := reflect.NewAt(ft, unsafe.Pointer(&fn)).Elem()
		c.mc.guarded(reflectCall(fv, args, results), true)(m)
	}
}

// passing is how arguments are handed over: where in the frame the words for each kind of register stand.
type passing struct {
	words, reals []uintptr
	narrow       bool // some are smaller than a word
	no           bool // in another way
}

// addAll adds arguments for the parameters of ft.
func (p *passing) addAll(ft reflect.Type, args []argument) {
	for i := range args {
		p.add(ft.In(i), args[i].off)
	}
}

// add adds a value of type t at an offset.
func (p *passing) add(t reflect.Type, off uintptr) {
	switch t.Kind() {
	case reflect.Float64, reflect.Float32:
		p.reals = append(p.reals, off)
	case reflect.Complex128:
		p.reals = append(p.reals, off, off+8)
	case reflect.Complex64:
		p.reals = append(p.reals, off, off+4)
	case reflect.Array:
		p.no = true
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			p.add(f.Type, off+f.Offset)
		}
	default: // one word, or the words of a string, a slice or an interface
		for at := uintptr(0); at < t.Size(); at += wordSize {
			p.words = append(p.words, off+at)
		}
	}
	p.narrow = p.narrow || t.Size() < wordSize
}
