package support

import (
	"encoding/json"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/rt"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// Float, Kind, Checked, FloatAs and Decode are the functions that gate.Program.GuardDigits inserts.
func Float(v any) any { return rt.Float(v) }

func Kind(v any) any { return rt.Kind(v) }

func Checked(v any) any { return rt.Checked(v) }

func FloatAs[T any](v any) any { return rt.FloatAs[T](v) }

func Decode(d *json.Decoder, v any) error { return rt.Decode(d, v) }

// Unmarshal replaces json.Unmarshal.
func Unmarshal(data []byte, v any) error { return recurgent.Unmarshal(data, v) }
