package interp

import (
	"reflect"
	"strings"
	"unsafe"
)

// resultForm describes a result as the registers and the collector see it.
func resultForm(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool, reflect.Int8, reflect.Uint8:
		return "1"
	case reflect.Int16, reflect.Uint16:
		return "2"
	case reflect.Int32, reflect.Uint32:
		return "4"
	case reflect.Int, reflect.Int64, reflect.Uint, reflect.Uint64, reflect.Uintptr:
		return "8"
	case reflect.Float64:
		return "f"
	case reflect.Float32:
		return "g"
	case reflect.Complex128:
		return "c"
	case reflect.String:
		return "s"
	case reflect.Slice:
		return "v"
	case reflect.Interface:
		return "i"
	case reflect.Pointer, reflect.Map, reflect.Chan, reflect.Func, reflect.UnsafePointer:
		return "p"
	case reflect.Struct:
		var b strings.Builder
		for i := range t.NumField() {
			b.WriteString(resultForm(t.Field(i).Type))
		}
		return "(" + b.String() + ")"
	}
	return "?"
}

// Structs that functions return.
type (
	timeForm struct {
		A, B uint64
		P    unsafe.Pointer
	} // time.Time
	valueForm struct {
		P, Q unsafe.Pointer
		A    uint64
	} // reflect.Value
	addrForm struct {
		A, B uint64
		P    unsafe.Pointer
	} // netip.Addr
	prefixForm struct {
		Addr addrForm
		N    uint8
	} // netip.Prefix
	portForm struct {
		Addr addrForm
		N    uint16
	} // netip.AddrPort
)

// callOf returns the call of a function whose results have the forms of ft's; nil for a few that no hot function has.
func callOf(fn *unsafe.Pointer, p passing, ft reflect.Type, results []argument) op {
	var forms []string
	for i := range results {
		forms = append(forms, resultForm(ft.Out(i)))
	}
	switch form := strings.Join(forms, " "); {
	case len(p.reals) > 0:
		return callWithReals(form, fn, p, results)
	case len(results) == 0:
		return calls0(fn, p.words)
	case len(results) == 1:
		return callOf1(form, fn, p.words, results)
	case len(results) == 2:
		return callOf2(form, fn, p.words, results)
	case len(results) == 3:
		return callOf3(form, fn, p.words, results)
	}
	return nil
}

func callOf1(form string, fn *unsafe.Pointer, w []uintptr, results []argument) op {
	r := results[0].off
	switch form {
	case "1":
		return calls1[uint8](fn, w, r)
	case "2":
		return rare1[uint16](fn, w, r)
	case "4":
		return calls1[uint32](fn, w, r)
	case "8":
		return calls1[uint64](fn, w, r)
	case "f":
		return rare1[float64](fn, w, r)
	case "g":
		return rare1[float32](fn, w, r)
	case "c":
		return rare1[complex128](fn, w, r)
	case "p":
		return calls1[unsafe.Pointer](fn, w, r)
	case "s":
		return calls1[string](fn, w, r)
	case "v":
		return calls1[[]byte](fn, w, r)
	case "i":
		return calls1[any](fn, w, r)
	case "(88p)":
		return rare1[timeForm](fn, w, r)
	case "(pp8)":
		return rare1[valueForm](fn, w, r)
	case "((88)(p))":
		return rare1[addrForm](fn, w, r)
	case "(((88)(p))1)":
		return rare1[prefixForm](fn, w, r)
	case "(((88)(p))2)":
		return rare1[portForm](fn, w, r)
	}
	return nil
}

func callOf2(form string, fn *unsafe.Pointer, w []uintptr, results []argument) op {
	r, s := results[0].off, results[1].off
	switch form {
	case "8 i":
		return calls2[uint64, any](fn, w, r, s)
	case "v i":
		return calls2[[]byte, any](fn, w, r, s)
	case "s i":
		return calls2[string, any](fn, w, r, s)
	case "p i":
		return calls2[unsafe.Pointer, any](fn, w, r, s)
	case "1 i":
		return calls2[uint8, any](fn, w, r, s)
	case "4 8":
		return calls2[uint32, uint64](fn, w, r, s)
	case "8 1":
		return calls2[uint64, uint8](fn, w, r, s)
	case "s 1":
		return calls2[string, uint8](fn, w, r, s)
	case "i i":
		return rare2[any, any](fn, w, r, s)
	case "f i":
		return rare2[float64, any](fn, w, r, s)
	case "v 1":
		return rare2[[]byte, uint8](fn, w, r, s)
	case "p 1":
		return rare2[unsafe.Pointer, uint8](fn, w, r, s)
	case "i 1":
		return rare2[any, uint8](fn, w, r, s)
	case "8 8":
		return rare2[uint64, uint64](fn, w, r, s)
	case "4 4":
		return rare2[uint32, uint32](fn, w, r, s)
	case "p p":
		return rare2[unsafe.Pointer, unsafe.Pointer](fn, w, r, s)
	case "v v":
		return rare2[[]byte, []byte](fn, w, r, s)
	case "s s":
		return rare2[string, string](fn, w, r, s)
	case "f 1":
		return rare2[float64, uint8](fn, w, r, s)
	case "s 8":
		return rare2[string, uint64](fn, w, r, s)
	}
	return callOf2Structs(form, fn, w, r, s)
}

func callOf2Structs(form string, fn *unsafe.Pointer, w []uintptr, r, s uintptr) op {
	switch form {
	case "(88p) i":
		return rare2[timeForm, any](fn, w, r, s)
	case "(88p) (88p)":
		return rare2[timeForm, timeForm](fn, w, r, s)
	case "(pp8) 1":
		return rare2[valueForm, uint8](fn, w, r, s)
	case "((88)(p)) i":
		return rare2[addrForm, any](fn, w, r, s)
	case "((88)(p)) 1":
		return rare2[addrForm, uint8](fn, w, r, s)
	case "(((88)(p))1) i":
		return rare2[prefixForm, any](fn, w, r, s)
	case "(((88)(p))2) i":
		return rare2[portForm, any](fn, w, r, s)
	}
	return nil
}

func callOf3(form string, fn *unsafe.Pointer, w []uintptr, results []argument) op {
	r, s, t := results[0].off, results[1].off, results[2].off
	switch form {
	case "4 8 i":
		return calls3[uint32, uint64, any](fn, w, r, s, t)
	case "8 8 8":
		return calls3[uint64, uint64, uint64](fn, w, r, s, t)
	case "s s 1":
		return calls3[string, string, uint8](fn, w, r, s, t)
	case "v v 1":
		return calls3[[]byte, []byte, uint8](fn, w, r, s, t)
	case "8 v i":
		return calls3[uint64, []byte, any](fn, w, r, s, t)
	case "v 1 i":
		return calls3[[]byte, uint8, any](fn, w, r, s, t)
	case "p 8 i":
		return calls3[unsafe.Pointer, uint64, any](fn, w, r, s, t)
	}
	return nil
}

func callWithReals(form string, fn *unsafe.Pointer, p passing, results []argument) op {
	switch form {
	case "1":
		return reals1[uint8](fn, p.words, p.reals, results[0].off)
	case "4":
		return reals1[uint32](fn, p.words, p.reals, results[0].off)
	case "8":
		return reals1[uint64](fn, p.words, p.reals, results[0].off)
	case "p":
		return reals1[unsafe.Pointer](fn, p.words, p.reals, results[0].off)
	case "s":
		return reals1[string](fn, p.words, p.reals, results[0].off)
	case "v":
		return reals1[[]byte](fn, p.words, p.reals, results[0].off)
	case "f":
		return reals1[float64](fn, p.words, p.reals, results[0].off)
	case "c":
		return reals1[complex128](fn, p.words, p.reals, results[0].off)
	case "f f":
		return reals2[float64, float64](fn, p.words, p.reals, results[0].off, results[1].off)
	case "f 8":
		return reals2[float64, uint64](fn, p.words, p.reals, results[0].off, results[1].off)
	}
	return nil
}
