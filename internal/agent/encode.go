package agent

import (
	"encoding/json"
	"time"
)

// Encoded returns the JSON of plain data of ours, which always has one.
func Encoded(v any) json.RawMessage {
	raw, _ := json.Marshal(v)
	return raw
}

// Milliseconds returns d in milliseconds, exact to the microsecond: the unit of duration_ms in replies, records and the log.
func Milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
