package agent

import (
	"encoding/json"
	"time"
)

// Encoded returns v as JSON. v must be plain data of this module, whose encoding cannot fail.
func Encoded(v any) json.RawMessage {
	raw, _ := json.Marshal(v)
	return raw
}

// Milliseconds returns d in milliseconds, with microsecond precision: the unit of duration_ms in replies, records and
// the log.
func Milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
