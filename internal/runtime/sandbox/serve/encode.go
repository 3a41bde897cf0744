package serve

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
)

// encode is the engine's Encode, which returns what encoding/json does, for values that leave the process. It returns
// an error for a value that encodes to {} although it holds data, because all of the data would be lost.
func (s *server) encode(v any) (json.RawMessage, error) {
	raw, err := s.engine.Encode(v)
	if err == nil && bytes.Contains(raw, []byte("{}")) {
		if t := withoutForm(reflect.ValueOf(v), deepestSought); t != nil {
			return nil, fmt.Errorf("a value of %s has no JSON form: it has no exported field and no method that encodes it, so all that it holds would be lost", t)
		}
	}
	return raw, err
}

// deepestSought bounds the depth of the search for such a value. It is deeper than contracts describe.
const deepestSought = 64

// withoutForm returns the first type in the value that encodes to {} although it holds data: a bytes.Buffer, an error,
// a reader, a struct whose fields are all unexported. It returns nil if there is none.
func withoutForm(v reflect.Value, depth int) reflect.Type {
	if depth == 0 || !v.IsValid() || encodesItself(v) {
		return nil
	}
	var parts iter.Seq[reflect.Value]
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		return withoutForm(v.Elem(), depth-1)
	case reflect.Slice, reflect.Array:
		if k := v.Type().Elem().Kind(); k != reflect.Interface && k != reflect.Pointer && k != reflect.Struct &&
			k != reflect.Map && k != reflect.Slice && k != reflect.Array {
			return nil
		}
		parts = items(v)
	case reflect.Map:
		parts = members(v)
	case reflect.Struct:
		if holdsUnexported(v.Type()) {
			return v.Type()
		}
		parts = fields(v)
	default:
		return nil
	}
	for part := range parts {
		if t := withoutForm(part, depth-1); t != nil {
			return t
		}
	}
	return nil
}

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// encodesItself reports whether encoding/json calls a method of the value to encode it.
func encodesItself(v reflect.Value) bool {
	has := func(t reflect.Type) bool { return t.Implements(jsonMarshaler) || t.Implements(textMarshaler) }
	return has(v.Type()) || v.CanAddr() && has(reflect.PointerTo(v.Type()))
}

// holdsUnexported reports whether a struct has fields, but none that encoding/json sees.
func holdsUnexported(t reflect.Type) bool {
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() || f.Anonymous {
			return false
		}
	}
	return t.NumField() > 0
}

func items(v reflect.Value) iter.Seq[reflect.Value] {
	return func(yield func(reflect.Value) bool) {
		for i := range v.Len() {
			if !yield(v.Index(i)) {
				return
			}
		}
	}
}

func members(v reflect.Value) iter.Seq[reflect.Value] {
	return func(yield func(reflect.Value) bool) {
		for all := v.MapRange(); all.Next(); {
			if !yield(all.Value()) {
				return
			}
		}
	}
}

// fields yields the fields that encoding/json sees, including those of embedded structs.
func fields(v reflect.Value) iter.Seq[reflect.Value] {
	return func(yield func(reflect.Value) bool) { eachField(v, yield) }
}

func eachField(v reflect.Value, yield func(reflect.Value) bool) bool {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		switch {
		case f.Anonymous && f.Type.Kind() == reflect.Struct && f.Tag.Get("json") == "":
			if !eachField(v.Field(i), yield) {
				return false
			}
		case f.IsExported() && f.Tag.Get("json") != "-":
			if !yield(v.Field(i)) {
				return false
			}
		}
	}
	return true
}
