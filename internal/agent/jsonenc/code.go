package jsonenc

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"
)

// An Appender appends its own JSON. AppendJSON must write exactly the result of MarshalJSON.
type Appender interface{ AppendJSON(w *Writer) }

// Encoder encodes values of one type. Make it once and keep it; it is safe for concurrent use. It inspects the type at
// the first use, so a process that never uses it does not pay for it.
type Encoder[T any] struct {
	sparse bool
	once   sync.Once
	put    put
}

// For returns an encoder of a type that writes what encoding/json writes.
func For[T any]() *Encoder[T] { return &Encoder[T]{} }

// Sparse returns an encoder that omits zero members, including those of nested structs, but distinguishes nil from
// empty lists. Its output decodes to the same value.
func Sparse[T any]() *Encoder[T] { return &Encoder[T]{sparse: true} }

// Append appends the value, which must not change meanwhile. Errors go to w.Err.
func (e *Encoder[T]) Append(w *Writer, v *T) {
	e.once.Do(func() { e.put = compile(reflect.TypeFor[T](), e.sparse, nil) })
	e.put(w, unsafe.Pointer(v))
}

// Marshal returns the value's JSON. size is the initial capacity of the result.
func (e *Encoder[T]) Marshal(v *T, size int) ([]byte, error) {
	w := writers.Get().(*Writer)
	w.Buf = make([]byte, 0, size)
	e.Append(w, v)
	text, err := w.Buf, w.Err
	*w = Writer{}
	writers.Put(w)
	return text, err
}

// writers holds Writers for Marshal, without buffers.
var writers = sync.Pool{New: func() any { return new(Writer) }}

// put appends the value at address p.
type put func(w *Writer, p unsafe.Pointer)

// member is one field of a struct.
type member struct {
	key string // with quotes and colon
	at  uintptr
	// empty reports whether the member is omitted; nil means never.
	empty func(p unsafe.Pointer) bool
	put   put
}

var (
	rawMessage = reflect.TypeFor[json.RawMessage]()
	marshaler  = reflect.TypeFor[json.Marshaler]()
	textual    = reflect.TypeFor[encoding.TextMarshaler]()
	appender   = reflect.TypeFor[Appender]()
)

// compile returns the code that appends values of the type. Types without code of their own are left to encoding/json.
// above lists the enclosing struct types.
func compile(t reflect.Type, sparse bool, above []reflect.Type) put {
	switch {
	case t == rawMessage:
		return func(w *Writer, p unsafe.Pointer) { w.JSON(*(*json.RawMessage)(p)) }
	case t == reflect.TypeFor[time.Time]():
		return putTime
	case reflect.PointerTo(t).Implements(appender):
		return func(w *Writer, p unsafe.Pointer) { reflect.NewAt(t, p).Interface().(Appender).AppendJSON(w) }
	case reflect.PointerTo(t).Implements(marshaler), reflect.PointerTo(t).Implements(textual),
		t == reflect.TypeFor[json.Number]():
		return marshal(t)
	}
	switch t.Kind() {
	case reflect.String:
		return func(w *Writer, p unsafe.Pointer) { w.Buf = appendString(w.Buf, *(*string)(p)) }
	case reflect.Int:
		return func(w *Writer, p unsafe.Pointer) { w.Buf = strconv.AppendInt(w.Buf, int64(*(*int)(p)), 10) }
	case reflect.Int64:
		return func(w *Writer, p unsafe.Pointer) { w.Buf = strconv.AppendInt(w.Buf, *(*int64)(p), 10) }
	case reflect.Bool:
		return func(w *Writer, p unsafe.Pointer) { w.Buf = strconv.AppendBool(w.Buf, *(*bool)(p)) }
	case reflect.Float64:
		return func(w *Writer, p unsafe.Pointer) { w.float(*(*float64)(p)) }
	case reflect.Pointer:
		return pointer(compile(t.Elem(), false, above))
	case reflect.Slice:
		if t.Elem().Kind() != reflect.Uint8 { // encoding/json encodes byte slices as base64 strings
			return slice(compile(t.Elem(), false, above), t.Elem().Size())
		}
	case reflect.Struct:
		if put := structOf(t, sparse, above); put != nil {
			return put
		}
	}
	return marshal(t)
}

// marshal leaves the type to encoding/json. It passes the value's address, because an interface holding the value
// itself would copy it.
func marshal(t reflect.Type) put {
	return func(w *Writer, p unsafe.Pointer) { w.marshal(reflect.NewAt(t, p).Interface()) }
}

// pointer returns the code for pointers. nil becomes null.
func pointer(elem put) put {
	return func(w *Writer, p unsafe.Pointer) {
		if p = *(*unsafe.Pointer)(p); p == nil {
			w.Buf = append(w.Buf, "null"...)
			return
		}
		elem(w, p)
	}
}

// slice returns the code for slices with elements of size bytes. nil becomes null, as in encoding/json.
func slice(elem put, size uintptr) put {
	return func(w *Writer, p unsafe.Pointer) {
		s := *(*[]byte)(p) // only its length and address are used; the length counts elements of size bytes
		if s == nil {
			w.Buf = append(w.Buf, "null"...)
			return
		}
		w.Buf = append(w.Buf, '[')
		for i, first := 0, unsafe.Pointer(unsafe.SliceData(s)); i < len(s); i++ {
			if i > 0 {
				w.Buf = append(w.Buf, ',')
			}
			elem(w, unsafe.Add(first, uintptr(i)*size))
		}
		w.Buf = append(w.Buf, ']')
	}
}

// putTime appends a time as time.Time.MarshalJSON does.
func putTime(w *Writer, p unsafe.Pointer) {
	t := (*time.Time)(p)
	b, err := t.AppendText(append(w.Buf, '"'))
	if err != nil {
		w.marshal(*t) // to get the error
		return
	}
	w.Buf = append(b, '"')
}

// structOf returns nil for a recursive struct, or one with a field that this package does not handle.
func structOf(t reflect.Type, sparse bool, above []reflect.Type) put {
	for _, outer := range above {
		if outer == t {
			return nil
		}
	}
	above = append(above[:len(above):len(above)], t)
	var members []member
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		if tag == "-" || !f.IsExported() && !f.Anonymous {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		if f.Anonymous || name == "" || options != "" && options != "omitempty" {
			return nil
		}
		members = append(members, member{`"` + name + `":`, f.Offset, omitted(f.Type, options != "", sparse),
			compile(f.Type, sparse, above)})
	}
	return func(w *Writer, p unsafe.Pointer) {
		w.Buf = append(w.Buf, '{')
		first := true
		for i := range members {
			m := &members[i]
			at := unsafe.Add(p, m.at)
			if m.empty != nil && m.empty(at) {
				continue
			}
			if !first {
				w.Buf = append(w.Buf, ',')
			}
			first = false
			w.Buf = append(w.Buf, m.key...)
			m.put(w, at)
		}
		w.Buf = append(w.Buf, '}')
	}
}
