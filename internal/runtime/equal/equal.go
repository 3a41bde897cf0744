// Package equal compares the answers of programs to the same input, either exactly or with a tolerance for numbers. It
// knows nothing about programs or calls.
package equal

import (
	"bytes"
	"encoding/json"
	"math"
	"math/big"
	"reflect"
	"strconv"
	"strings"
)

// Value compares JSON values. Numbers may differ by tolerance, an absolute value; nil means 1e-9 relative. Integers
// beyond 2^53 are compared by their digits, all else exactly.
func Value(want, got json.RawMessage, tolerance *float64) bool {
	if bytes.Equal(want, got) {
		return true
	}
	x, errX := decodeExact(want)
	y, errY := decodeExact(got)
	return errX == nil && errY == nil && same(x, y, tolerance)
}

func same(x, y any, tolerance *float64) bool {
	switch x := x.(type) {
	case json.Number:
		y, ok := y.(json.Number)
		return ok && sameNumber(x, y, tolerance)
	case []any:
		y, ok := y.([]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !same(x[i], y[i], tolerance) {
				return false
			}
		}
		return true
	case map[string]any:
		y, ok := y.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for k := range x {
			v, there := y[k]
			if !there || !same(x[k], v, tolerance) {
				return false
			}
		}
		return true
	}
	return x == y
}

// whole reports whether the number is written as an integer.
func whole(n json.Number) bool { return !strings.ContainsAny(n.String(), ".eE") }

// large reports whether an integer exceeds what a float64 holds exactly. Such an integer is an identifier, or is meant
// to be exact.
func large(n json.Number) bool {
	const exact = 1 << 53
	i, err := strconv.ParseInt(n.String(), 10, 64)
	return err != nil || i > exact || i < -exact
}

// relative is the tolerance if an example gives none, relative to the larger number.
const relative = 1e-9

func sameNumber(x, y json.Number, tolerance *float64) bool {
	if x == y {
		return true
	}
	if whole(x) && whole(y) && (large(x) || large(y)) {
		return tolerance != nil && integersWithin(x, y, *tolerance)
	}
	f, errF := x.Float64()
	g, errG := y.Float64()
	if errF != nil || errG != nil {
		return false
	}
	if tolerance != nil {
		return math.Abs(f-g) <= *tolerance
	}
	return math.Abs(f-g) <= relative*math.Max(math.Abs(f), math.Abs(g))
}

// integersWithin compares integers that a float64 does not hold exactly.
func integersWithin(x, y json.Number, tolerance float64) bool {
	i, okX := new(big.Int).SetString(x.String(), 10)
	k, okY := new(big.Int).SetString(y.String(), 10)
	if !okX || !okY {
		return false
	}
	apart := new(big.Float).SetInt(i.Sub(i, k))
	return apart.Abs(apart).Cmp(big.NewFloat(tolerance)) <= 0
}

// Exact compares JSON values exactly, except for whitespace and the order of members.
func Exact(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, errX := decodeExact(a)
	y, errY := decodeExact(b)
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}

// decodeExact decodes JSON without converting numbers to float64, which would lose digits of large integers.
func decodeExact(raw json.RawMessage) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}
