package recurgent

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
)

// This file is the runner's side, like host.go. A whole number that float64 cannot represent becomes a json.Number
// wherever JSON is decoded into any, so an id that a program passes on keeps all its digits.

// longDigits is the number of digits from which float64 may not represent a whole number exactly.
const longDigits = 16

// maxPlain is the most digits that encoding/json writes for a float64 without an exponent.
const maxPlain = 21

// LongDigits reports whether text has a run of so many digits, inside strings or out, that a number in it may not fit
// float64. It scans the text once, so it is a cheap test before a full decode.
func LongDigits(text []byte) bool {
	row := 0
	for _, c := range text {
		if row++; c-'0' > 9 {
			row = 0
		} else if row == longDigits {
			return true
		}
	}
	return false
}

// Number returns the value of a JSON number decoded into any: a float64, or a json.Number for a whole number that a
// float64 would encode with other digits. ok is false for a number out of range.
func Number(text string) (v any, ok bool) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, false
	}
	digits := strings.TrimPrefix(text, "-")
	if len(digits) < longDigits || strings.ContainsAny(digits, ".eE") || len(digits) <= maxPlain &&
		strconv.FormatFloat(f, 'f', -1, 64) == text {
		return f, true
	}
	return json.Number(text), true
}

// Inexact reports whether JSON text contains a whole number that float64 does not represent exactly.
func Inexact(text []byte) bool {
	if !LongDigits(text) {
		return false
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	for {
		t, err := d.Token()
		if err != nil {
			return false
		}
		if n, ok := t.(json.Number); ok {
			if v, ok := Number(string(n)); ok && v == any(n) {
				return true
			}
		}
	}
}

// Unmarshal is json.Unmarshal, except that Number decides the type of a number decoded into any.
func Unmarshal(data []byte, v any) error {
	if !LongDigits(data) || !json.Valid(data) {
		return json.Unmarshal(data, v)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		return err
	}
	if into := reflect.ValueOf(v); !settle(into) { // a number out of range
		into.Elem().SetZero()
		return json.Unmarshal(data, v)
	}
	return nil
}

// settle replaces each json.Number held in an interface by the value that Number returns. It returns false for a number
// out of range.
func settle(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer:
		return v.IsNil() || settle(v.Elem())
	case reflect.Interface:
		if v.NumMethod() > 0 || v.IsNil() {
			return true
		}
		settled, ok := settleAny(v.Interface())
		if ok && v.CanSet() {
			v.Set(reflect.ValueOf(settled))
		}
		return ok
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && !settle(v.Field(i)) {
				return false
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if !settle(v.Index(i)) {
				return false
			}
		}
	case reflect.Map:
		return settleMap(v)
	}
	return true
}

// settleMap settles the elements of a map. It skips maps whose elements cannot hold an interface.
func settleMap(v reflect.Value) bool {
	switch v.Type().Elem().Kind() {
	case reflect.Interface, reflect.Pointer, reflect.Struct, reflect.Slice, reflect.Array, reflect.Map:
	default:
		return true
	}
	for all := v.MapRange(); all.Next(); {
		item := reflect.New(v.Type().Elem()).Elem()
		item.Set(all.Value())
		if !settle(item) {
			return false
		}
		v.SetMapIndex(all.Key(), item)
	}
	return true
}

// settleAny settles a decoded value without reflection, which covers most of what is decoded.
func settleAny(v any) (any, bool) {
	switch v := v.(type) {
	case json.Number:
		return Number(string(v))
	case []any:
		for i := range v {
			var ok bool
			if v[i], ok = settleAny(v[i]); !ok {
				return nil, false
			}
		}
	case map[string]any:
		for k, x := range v {
			settled, ok := settleAny(x)
			if !ok {
				return nil, false
			}
			v[k] = settled
		}
	}
	return v, true
}
