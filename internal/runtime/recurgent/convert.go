package recurgent

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
)

// As converts a value of decoded JSON to a type that can hold it without loss: the first such type among those of the
// values in like. If no type fits, it returns v unchanged:
//
//	n, ok := recurgent.As(call.Arg(0, "n"), 0).(int)
//
// A whole number converts to any integer type that can hold it. A list converts to a slice if every item converts, and
// an object to a map if every member does. null and 2.5 do not convert to int.
func As(v any, like ...any) any {
	for _, l := range like {
		if l == nil {
			continue
		}
		if out, ok := convert(v, reflect.TypeOf(l)); ok {
			return out.Interface()
		}
	}
	return v
}

// Must is As for a required argument. It ends the call with invalid_input if v does not convert to the type of like.
func Must(v, like any) any {
	out := As(v, like)
	if reflect.TypeOf(out) != reflect.TypeOf(like) {
		panic(mismatch(v, like))
	}
	return out
}

// Maybe is Must for an optional argument: it returns nil if v is nil.
func Maybe(v, like any) any {
	if v == nil {
		return nil
	}
	return Must(v, like)
}

// Or is Must for an optional argument with a default: it returns like if v is nil.
func Or(v, like any) any {
	if v == nil {
		return like
	}
	return Must(v, like)
}

// Held is Maybe for values that are not arguments. A mismatch fails the program instead of ending the call with
// invalid_input.
func Held(v, like any) any {
	out := As(v, like)
	if v != nil && reflect.TypeOf(out) != reflect.TypeOf(like) {
		panic(mismatch(v, like).Message)
	}
	return out
}

// Case is As for the operand of a type switch whose cases have the types of the values in like. If v is of the same
// JSON kind as one of these values but converts to the type of none, such as 2.5 where the cases know only ints, the
// call ends with invalid_input.
func Case(v any, like ...any) any {
	out := As(v, like...)
	for _, l := range like {
		if out != nil && l != nil && kindOf(reflect.TypeOf(out)) == kindOf(reflect.TypeOf(l)) && !isOneOf(out, like) {
			panic(mismatch(v, l))
		}
	}
	return out
}

// isOneOf reports whether v has the type of one of the values.
func isOneOf(v any, like []any) bool {
	for _, l := range like {
		if reflect.TypeOf(v) == reflect.TypeOf(l) {
			return true
		}
	}
	return false
}

// kindOf returns the kind of t as JSON distinguishes kinds: every number type counts as float64.
func kindOf(t reflect.Type) reflect.Kind {
	if k := t.Kind(); (k < reflect.Int || k > reflect.Float64) && t != reflect.TypeFor[json.Number]() {
		return k
	}
	return reflect.Float64
}

// mismatch returns the error for a value that does not convert to the type of like. It panics with a text if the value
// is right and float64 is not: the program has to take the number in another way.
func mismatch(v, like any) *Mismatch {
	t := reflect.TypeOf(like)
	need := described(t)
	if n, ok := longNumber(v); ok {
		if ofFloats(t) {
			panic(string(n) + " is a json.Number, because a float64 does not hold all its digits; the program takes only float64")
		}
		if kindOf(t) == reflect.Float64 {
			need = "a smaller whole number"
		}
	}
	return &Mismatch{fmt.Sprintf("%s is needed, not %s", need, shown(v))}
}

// longNumber returns a whole number in decoded JSON that float64 does not represent.
func longNumber(v any) (n json.Number, ok bool) {
	switch v := v.(type) {
	case json.Number:
		return v, Inexact([]byte(v))
	case []any:
		for i := 0; i < len(v) && !ok; i++ {
			n, ok = longNumber(v[i])
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if n, ok = longNumber(v[k]); ok {
				break
			}
		}
	}
	return n, ok
}

// ofFloats reports whether t is float64, or a list or an object of float64.
func ofFloats(t reflect.Type) bool {
	for t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	return t.Kind() == reflect.Float64
}

// convert returns v as a value of type t, and whether v fits without loss. It converts only to unnamed and predeclared
// types and to those composed of them.
func convert(v any, t reflect.Type) (reflect.Value, bool) {
	x := reflect.ValueOf(v)
	switch {
	case !x.IsValid(): // null
		return reflect.Zero(t), t.Kind() == reflect.Interface
	case x.Type() == t:
		return x, true
	case t.Name() != "" && t.PkgPath() != "":
		return reflect.Value{}, false
	}
	switch t.Kind() {
	case reflect.Interface:
		return x, x.Type().Implements(t)
	case reflect.Slice:
		return convertList(x, t)
	case reflect.Map:
		return convertObject(x, t)
	}
	return convertNumber(x, t)
}

// convertList converts a list if every item converts to the element type of t.
func convertList(x reflect.Value, t reflect.Type) (reflect.Value, bool) {
	if x.Kind() != reflect.Slice || x.IsNil() {
		return reflect.Value{}, false
	}
	out := reflect.MakeSlice(t, x.Len(), x.Len())
	for i := range x.Len() {
		item, ok := convert(x.Index(i).Interface(), t.Elem())
		if !ok {
			return reflect.Value{}, false
		}
		out.Index(i).Set(item)
	}
	return out, true
}

// convertObject converts an object if every member converts to the element type of t. Keys stay strings.
func convertObject(x reflect.Value, t reflect.Type) (reflect.Value, bool) {
	if x.Kind() != reflect.Map || x.IsNil() || x.Type().Key() != reflect.TypeFor[string]() ||
		t.Key() != reflect.TypeFor[string]() {
		return reflect.Value{}, false
	}
	out := reflect.MakeMapWithSize(t, x.Len())
	for all := x.MapRange(); all.Next(); {
		item, ok := convert(all.Value().Interface(), t.Elem())
		if !ok {
			return reflect.Value{}, false
		}
		out.SetMapIndex(all.Key(), item)
	}
	return out, true
}

// convertNumber returns the number x as an equal value of type t.
func convertNumber(x reflect.Value, t reflect.Type) (reflect.Value, bool) {
	var f float64
	if n, ok := x.Interface().(json.Number); ok {
		return convertDigits(string(n), t)
	}
	switch {
	case x.CanInt():
		f = float64(x.Int())
		// A float64 rounds integers beyond 2^53. 1<<63 is excluded because it overflows int64.
		if int64(f) != x.Int() || f == 1<<63 {
			return reflect.Value{}, false
		}
	case x.CanUint():
		f = float64(x.Uint())
		if f == 1<<64 || uint64(f) != x.Uint() {
			return reflect.Value{}, false
		}
	case x.CanFloat():
		f = x.Float()
	default:
		return reflect.Value{}, false
	}
	out := reflect.New(t).Elem()
	switch whole := f == math.Trunc(f); {
	case out.CanInt() && whole && f >= -1<<63 && f < 1<<63 && !out.OverflowInt(int64(f)):
		out.SetInt(int64(f))
	case out.CanUint() && whole && f >= 0 && f < 1<<64 && !out.OverflowUint(uint64(f)):
		out.SetUint(uint64(f))
	case t.Kind() == reflect.Float64:
		out.SetFloat(f)
	default:
		return reflect.Value{}, false
	}
	return out, true
}

// convertDigits converts a json.Number to type t.
func convertDigits(digits string, t reflect.Type) (reflect.Value, bool) {
	out := reflect.New(t).Elem()
	if v, _ := Number(digits); t.Kind() == reflect.Float64 {
		f, exact := v.(float64)
		out.SetFloat(f)
		return out, exact
	}
	if n, err := strconv.ParseInt(digits, 10, 64); err == nil && out.CanInt() && !out.OverflowInt(n) {
		out.SetInt(n)
		return out, true
	}
	if n, err := strconv.ParseUint(digits, 10, 64); err == nil && out.CanUint() && !out.OverflowUint(n) {
		out.SetUint(n)
		return out, true
	}
	return reflect.Value{}, false
}

// described names, in JSON terms, the values that type t accepts.
func described(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Interface {
			return "a list"
		}
		return "a list of which each is " + described(t.Elem())
	case reflect.Map:
		return "an object"
	case reflect.Interface:
		return "a value"
	}
	return "a whole number"
}

// shown returns v for a message: its JSON if that has at most 40 bytes, otherwise its kind.
func shown(v any) string {
	switch v := v.(type) {
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	default:
		raw, err := json.Marshal(v)
		if err != nil || len(raw) > 40 {
			return "another value"
		}
		return string(raw)
	}
}
