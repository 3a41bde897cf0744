package recurgent

import (
	"bytes"
	"encoding/json"
	"fmt"
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
func Inexact(text []byte) bool { return len(inexact(text)) > 0 }

// inexact returns the whole numbers in JSON text that float64 does not represent exactly, by their rounded values.
func inexact(text []byte) map[float64]json.Number {
	if !LongDigits(text) {
		return nil
	}
	var found map[float64]json.Number
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	for {
		t, err := d.Token()
		if err != nil {
			return found
		}
		n, _ := t.(json.Number)
		if v, ok := Number(string(n)); ok && v == any(n) {
			if found == nil {
				found = map[float64]json.Number{}
			}
			f, _ := n.Float64()
			found[f] = n
		}
	}
}

// Unmarshal is json.Unmarshal, except that Number decides the type of a number decoded into any. Programs get it for
// json.Unmarshal. It panics if a field of type float64 would change a whole number.
func Unmarshal(data []byte, v any) error {
	if !LongDigits(data) || !json.Valid(data) {
		return json.Unmarshal(data, v)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		return err
	}
	into := reflect.ValueOf(v)
	if !settle(into) { // a number out of range
		into.Elem().SetZero()
		return json.Unmarshal(data, v)
	}
	if numbers := inexact(data); numbers != nil {
		rounded(into, "", numbers)
	}
	return nil
}

// rounded panics if a float64 in v has the value of one of the numbers, whose digits it has lost. path leads to v.
func rounded(v reflect.Value, path string, numbers map[float64]json.Number) {
	switch v.Kind() {
	case reflect.Float64:
		if n, lost := numbers[v.Float()]; lost {
			panic(fmt.Sprintf("the field %s is a float64, which does not hold all digits of %s; it must be a json.Number or an int64",
				strings.TrimPrefix(path, "."), n))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			rounded(v.Elem(), path, numbers)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if name, ok := fieldName(f); ok {
				rounded(v.Field(i), path+"."+name, numbers)
			} else if f.Anonymous {
				rounded(v.Field(i), path, numbers)
			}
		}
	case reflect.Slice, reflect.Array:
		for i := 0; holds(v.Type().Elem()) && i < v.Len(); i++ {
			rounded(v.Index(i), path+"["+strconv.Itoa(i)+"]", numbers)
		}
	case reflect.Map:
		for all := v.MapRange(); holds(v.Type().Elem()) && all.Next(); {
			rounded(all.Value(), path+"."+fmt.Sprint(all.Key()), numbers)
		}
	}
}

// holds reports whether a value of type t can hold a number that Number or rounded is for.
func holds(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Interface, reflect.Pointer, reflect.Struct, reflect.Slice, reflect.Array, reflect.Map, reflect.Float64:
		return true
	}
	return false
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
			f := v.Type().Field(i)
			if (f.IsExported() || f.Anonymous) && !settle(v.Field(i)) {
				return false
			}
		}
	case reflect.Slice, reflect.Array:
		for i := 0; holds(v.Type().Elem()) && i < v.Len(); i++ {
			if !settle(v.Index(i)) {
				return false
			}
		}
	case reflect.Map:
		return settleMap(v)
	}
	return true
}

// settleMap settles the elements of a map.
func settleMap(v reflect.Value) bool {
	for all := v.MapRange(); holds(v.Type().Elem()) && all.Next(); {
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
