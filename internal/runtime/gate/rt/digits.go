package rt

import (
	"encoding/json"

	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// Float returns v, which the program takes for a float64 or for none. It panics for a whole number that a float64 would
// change: the program would pass over it.
func Float(v any) any {
	if long(v) {
		return recurgent.Must(v, 0.0)
	}
	return v
}

// Kind returns v where the program looks only at its type: every number is a float64.
func Kind(v any) any {
	if long(v) {
		return 0.0
	}
	return v
}

// Checked returns v for checks of its value alone: the program reads its digits elsewhere.
func Checked(v any) any {
	if long(v) {
		f, _ := v.(json.Number).Float64()
		return f
	}
	return v
}

// long reports whether v is a whole number that float64 does not represent.
func long(v any) bool {
	n, ok := v.(json.Number)
	return ok && recurgent.Inexact([]byte(n))
}

// Decode is d.Decode for a program that has set no option of d. See recurgent.Unmarshal.
func Decode(d *json.Decoder, v any) error {
	var raw json.RawMessage
	if err := d.Decode(&raw); err != nil {
		return err
	}
	return recurgent.Unmarshal(raw, v)
}

// FloatAs is Float for a type parameter, which may be float64.
func FloatAs[T any](v any) any {
	if _, is := any(*new(T)).(float64); is {
		return Float(v)
	}
	return v
}
