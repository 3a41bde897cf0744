package disk

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

// jsonWriter appends the members of an object to a buffer. The first error stays, and nothing is appended after it.
type jsonWriter struct {
	buf []byte
	err error
}

func (w *jsonWriter) key(name string) {
	if n := len(w.buf); n > 0 && w.buf[n-1] != '{' {
		w.buf = append(w.buf, ',')
	}
	w.buf = append(w.buf, '"')
	w.buf = append(w.buf, name...)
	w.buf = append(w.buf, '"', ':')
}

func (w *jsonWriter) str(name, v string) {
	w.key(name)
	w.buf = appendString(w.buf, v)
}

func (w *jsonWriter) int(name string, v int64) {
	w.key(name)
	w.buf = strconv.AppendInt(w.buf, v, 10)
}

func (w *jsonWriter) ints(name string, v []int64) {
	w.key(name)
	w.buf = append(w.buf, '[')
	for i, n := range v {
		if i > 0 {
			w.buf = append(w.buf, ',')
		}
		w.buf = strconv.AppendInt(w.buf, n, 10)
	}
	w.buf = append(w.buf, ']')
}

// value appends any value, and returns its JSON.
func (w *jsonWriter) value(name string, v any) json.RawMessage {
	return w.encoded(name, func() ([]byte, error) { return json.Marshal(v) })
}

// encoded appends what encode returns, which is compact JSON, and returns it.
func (w *jsonWriter) encoded(name string, encode func() ([]byte, error)) json.RawMessage {
	if w.err != nil {
		return nil
	}
	v, err := encode()
	if err != nil {
		w.err = err
		return nil
	}
	w.raw(name, v)
	return v
}

// raw appends compact JSON.
func (w *jsonWriter) raw(name string, v json.RawMessage) {
	w.key(name)
	w.buf = append(w.buf, v...)
}

// compact appends JSON of unknown origin, checked and without insignificant whitespace, and returns it. Nil is left out.
func (w *jsonWriter) compact(name string, v json.RawMessage) json.RawMessage {
	if v == nil {
		return nil
	}
	return w.encoded(name, func() ([]byte, error) {
		var out bytes.Buffer
		out.Grow(len(v))
		err := json.Compact(&out, v)
		return out.Bytes(), err
	})
}

// appendString appends s as a JSON string. Plain ASCII, which nearly everything here is, is only copied.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= utf8.RuneSelf || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, err := json.Marshal(s)
			if err != nil {
				panic("a string that cannot be JSON: " + err.Error()) // encoding/json replaces what is not UTF-8
			}
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// structCode writes values of a struct type as encoding/json does, at a fraction of the cost.
type structCode []memberCode

type memberCode struct {
	name   string
	index  int        // of the field
	omit   bool       // encoding/json leaves the zero value out
	nested structCode // of a field that is a struct
}

var rawMessage = reflect.TypeFor[json.RawMessage]()

// codeOf reads the members out of the tags of a struct type, each field of which has one.
func codeOf(t reflect.Type) structCode {
	code := make(structCode, t.NumField())
	for i := range code {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		code[i] = memberCode{name: name, index: i, omit: options == "omitempty"}
		if f.Type.Kind() == reflect.Struct {
			code[i].nested = codeOf(f.Type)
		}
	}
	return code
}

// append appends the value. When it is not full, zero members are left out, but nil and empty lists are distinguished:
// that is the journal's shape, and decodes to the same value.
func (c structCode) append(w *jsonWriter, v reflect.Value, full bool) {
	w.buf = append(w.buf, '{')
	for i := range c {
		m := &c[i]
		f := v.Field(m.index)
		if m.omit && emptyValue(f) || !full && (f.IsZero() || f.Type() == rawMessage && f.Len() == 0) {
			continue
		}
		w.key(m.name)
		if m.nested != nil {
			m.nested.append(w, f, full)
		} else {
			w.field(f)
		}
	}
	w.buf = append(w.buf, '}')
}

// emptyValue reports whether encoding/json leaves the value out under omitempty.
func emptyValue(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}

// field appends the value of a field.
func (w *jsonWriter) field(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		w.buf = appendString(w.buf, v.String())
	case reflect.Int, reflect.Int64:
		w.buf = strconv.AppendInt(w.buf, v.Int(), 10)
	case reflect.Bool:
		w.buf = strconv.AppendBool(w.buf, v.Bool())
	case reflect.Float64:
		w.float(v)
	case reflect.Slice:
		w.slice(v)
	default:
		w.marshal(v)
	}
}

func (w *jsonWriter) slice(v reflect.Value) {
	switch {
	case v.IsNil(), v.Type() == rawMessage && v.Len() == 0:
		w.buf = append(w.buf, "null"...)
	case v.Type() == rawMessage:
		w.compactRaw(v.Bytes())
	case v.Len() == 0 && v.Type().Elem().Kind() != reflect.Uint8: // bytes are a string
		w.buf = append(w.buf, '[', ']')
	case v.Type().Elem() == rawMessage || v.Type().Elem().Kind() == reflect.String:
		w.buf = append(w.buf, '[')
		for i := range v.Len() {
			if i > 0 {
				w.buf = append(w.buf, ',')
			}
			w.field(v.Index(i))
		}
		w.buf = append(w.buf, ']')
	default:
		w.marshal(v)
	}
}

// float appends a number as encoding/json does. Very large and very small ones, and what is none, it leaves to that package.
func (w *jsonWriter) float(v reflect.Value) {
	f := v.Float()
	if size := math.Abs(f); f != 0 && !(1e-6 <= size && size < 1e21) {
		w.marshal(v)
		return
	}
	w.buf = strconv.AppendFloat(w.buf, f, 'f', -1, 64)
}

// marshal appends the value, by its address: an interface with the value itself would hold a copy on the heap.
func (w *jsonWriter) marshal(v reflect.Value) {
	text, err := json.Marshal(v.Addr().Interface())
	w.err = errors.Join(w.err, err)
	w.buf = append(w.buf, text...)
}

func (w *jsonWriter) compactRaw(v []byte) {
	out := bytes.NewBuffer(w.buf)
	if err := json.Compact(out, v); err != nil {
		w.err = errors.Join(w.err, err)
		return
	}
	w.buf = out.Bytes()
}
