package recurgent

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
)

// This file is the runner's side, as host.go. Whole numbers that float64 does not hold are json.Number wherever any is decoded: an id that a program
// passes on leaves with its digits.

// longDigits is how many digits in a row a whole number has that float64 may not hold.
const longDigits = 16

// maxPlain is how many digits a float64 has that encoding/json writes without an exponent.
const maxPlain = 21

// LongDigits reports whether JSON text has so many digits in a row that float64 may not hold them, be it within a string. It looks once at each byte.
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

// Number is the value of a JSON number in any: float64, or json.Number for a whole number whose digits are other ones when a float64 is encoded. ok is false
// for one out of range.
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

// Inexact reports whether JSON text has a whole number that float64 does not hold.
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

// Unmarshal is json.Unmarshal, except that Number decides the type of numbers in any.
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

// settle replaces each json.Number that stands in an interface by what Number says of it.
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
