package equal

import (
	"encoding/json"
	"testing"
)

func TestSameValue(t *testing.T) {
	t.Parallel()
	one, half, none := 1.0, 0.5, 0.0
	tests := []struct {
		name, want, got string
		tolerance       *float64
		same, exact     bool
	}{
		{"the same text", `{"a":1}`, `{"a":1}`, nil, true, true},
		{"blanks and order of keys", `{"a":1,"b":[2]}`, `{"b": [2], "a": 1}`, nil, true, true},
		{"another key", `{"a":1}`, `{"b":1}`, nil, false, false},
		{"a key more", `{"a":1}`, `{"a":1,"b":1}`, nil, false, false},
		{"a value under the key", `{"a":1}`, `{"a":2}`, nil, false, false},
		{"an element more", `[1]`, `[1,2]`, nil, false, false},
		{"another element", `[1,2]`, `[1,3]`, nil, false, false},
		{"another order", `[1,2]`, `[2,1]`, nil, false, false},
		{"other kinds", `{"a":1}`, `[1]`, nil, false, false},
		{"an array for an object", `[1]`, `{"a":1}`, nil, false, false},
		{"text for a number", `1`, `"1"`, nil, false, false},
		{"another text", `"a"`, `"b"`, nil, false, false},
		{"null", `null`, ` null`, nil, true, true},
		{"true and false", `true`, `false`, nil, false, false},
		{"whole numbers within 1e-9", `20000000000`, `20000000001`, nil, true, false},
		{"whole numbers beyond 1e-9", `200000000`, `200000001`, nil, false, false},
		{"long identifiers", `123456789012345678901`, `123456789012345678902`, nil, false, false},
		{"whole numbers beyond 2^53 are exact", `9007199254740993`, `9007199254740992`, nil, false, false},
		{"whole numbers under a tolerance", `100`, `101`, &one, true, false},
		{"whole numbers beyond it", `100`, `102`, &one, false, false},
		{"whole numbers beyond 2^53 within it", `9007199254740993`, `9007199254740992`, &one, true, false},
		{"whole numbers beyond 2^53 beyond it", `9007199254740993`, `9007199254740992`, &half, false, false},
		{"rounding without a tolerance", `0.3`, `0.30000000000000004`, &none, false, false},
		{"whole numbers without a tolerance", `20000000000`, `20000000001`, &none, false, false},
		{"a written fraction without a tolerance", `[1]`, `[1.0]`, &none, true, false},
		{"rounding", `0.3`, `0.30000000000000004`, nil, true, false},
		{"rounding of large ones", `1e15`, `1000000000000001.5`, nil, true, false},
		{"a written fraction", `1`, `1.0`, nil, true, false},
		{"an exponent", `1e2`, `100`, nil, true, false},
		{"a millionth", `1.0`, `1.000001`, nil, false, false},
		{"at the relative edge, negative", `-1.0`, `-1.0000000005`, nil, true, false},
		{"beyond what a float holds", `1e400`, `1.5`, nil, false, false},
		{"no number beyond what a float holds", `1.5`, `1e400`, nil, false, false},
		{"inside of arrays", `[[0.1]]`, `[[0.10000000000000001]]`, nil, true, false},
		{"no JSON", `{`, `{}`, nil, false, false},
		{"no JSON came", `{}`, `{`, nil, false, false},
	}
	for _, tt := range tests {
		want, got := json.RawMessage(tt.want), json.RawMessage(tt.got)
		if same := Value(want, got, tt.tolerance); same != tt.same {
			t.Errorf("%s: the same value: %v, want %v", tt.name, same, tt.same)
		}
		if same := Exact(want, got); same != tt.exact {
			t.Errorf("%s: exactly the same: %v, want %v", tt.name, same, tt.exact)
		}
	}
}

// A tolerance is inclusive, also between numbers that a float64 does not hold.
func TestSameNumber(t *testing.T) {
	t.Parallel()
	half, one := 0.5, 1.0
	for _, tt := range []struct {
		x, y      json.Number
		tolerance *float64
		want      bool
	}{
		{"1", "1.5", &half, true}, {"1.5", "1", &half, true}, {"1", "1.51", &half, false}, {"1", "1.5", nil, false},
		{"1", "1.0000000005", nil, true}, {"1", "1.000000002", nil, false},
		{"9007199254740994", "9007199254740993", &one, true}, {"9007199254740995", "9007199254740993", &one, false},
		{"9007199254740994", "9007199254740993", nil, false},
	} {
		if got := sameNumber(tt.x, tt.y, tt.tolerance); got != tt.want {
			t.Errorf("%s and %s: got %v, want %v", tt.x, tt.y, got, tt.want)
		}
	}
}
