package rig

import (
	"encoding/json"
	"testing"
	"time"
)

// ParseJSON parses a test's own JSON. It panics if the JSON is invalid.
func ParseJSON(text string) any {
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		panic("a test's own JSON: " + err.Error())
	}
	return v
}

// Until polls until cond holds. It fails the test after Patience.
func Until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	UntilWithin(t, Patience, what, cond)
}

// UntilWithin is Until with another patience, for conditions that take minutes of processor time.
func UntilWithin(t *testing.T, patience time.Duration, what string, cond func() bool) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("in vain waited for: %s", what)
		}
	}
}

// Equal compares JSON values. Numbers may differ by less than 1e-6.
func Equal(want, got any) bool {
	var w any
	data, err := json.Marshal(want)
	if err != nil || json.Unmarshal(data, &w) != nil {
		return false
	}
	return equalJSON(w, got)
}

// equalJSON compares decoded JSON.
func equalJSON(want, got any) bool {
	switch w := want.(type) {
	case float64:
		g, ok := got.(float64)
		return ok && (w == g || w-g < 1e-6 && g-w < 1e-6)
	case []any:
		g, ok := got.([]any)
		if !ok || len(w) != len(g) {
			return false
		}
		for i := range w {
			if !equalJSON(w[i], g[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok || len(w) != len(g) {
			return false
		}
		for k := range w {
			if v, ok := g[k]; !ok || !equalJSON(w[k], v) {
				return false
			}
		}
		return true
	}
	return want == got
}

// MustJSON encodes plain test data.
func MustJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // test data is plain
	}
	return data
}
