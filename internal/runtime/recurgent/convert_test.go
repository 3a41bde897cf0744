package recurgent

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"
)

type unit string

func TestAs(t *testing.T) {
	t.Parallel()
	object := map[string]any{"title": "A", "year": 1999.0}
	for _, c := range []struct{ v, like, want any }{
		{3.0, 0, 3}, {-3.0, 0, -3}, {3.0, int64(0), int64(3)}, {3.0, uint8(0), uint8(3)}, {3.0, float32(0), 3.0},
		{2.5, 0, 2.5}, {"3", 0, "3"}, {nil, 0, nil}, {true, 0, true}, {-3.0, uint(0), -3.0}, {256.0, uint8(0), 256.0},
		{1e300, 0, 1e300},
		{float64(1 << 63), 0, float64(1 << 63)}, {float64(1 << 63), int64(0), float64(1 << 63)},
		{-float64(1 << 63), 0, math.MinInt64}, {math.Inf(1), 0, math.Inf(1)},
		{5, 0, 5}, {5, 0.0, 5.0}, {int64(5), 0, 5}, {math.MaxInt64, 0.0, math.MaxInt64},
		{uint64(math.MaxUint64), 0, uint64(math.MaxUint64)},
		{"a", unit(""), "a"}, {"a", []byte(nil), "a"}, {"a", rune(0), "a"},
		{[]any{"a", "b"}, []string(nil), []string{"a", "b"}}, {[]any{}, []string(nil), []string{}},
		{[]any{"a", 1.0}, []string(nil), []any{"a", 1.0}}, {[]any{"a", nil}, []string(nil), []any{"a", nil}},
		{[]any{1.0, 2.0}, []int(nil), []int{1, 2}}, {[]any{1.0, 2.5}, []int(nil), []any{1.0, 2.5}},
		{[]any{1.0}, []float64(nil), []float64{1}},
		{[]any{[]any{1.0}, []any{}}, [][]float64(nil), [][]float64{{1}, {}}},
		{[]any{nil, 1.0}, []any(nil), []any{nil, 1.0}}, {[]string{"a"}, []any(nil), []any{"a"}},
		{map[string]any{"a": "x"}, map[string]string(nil), map[string]string{"a": "x"}},
		{map[string]any{"a": 1.0}, map[string]string(nil), map[string]any{"a": 1.0}},
		{map[string]any{"7": 1.0}, map[int]int(nil), map[string]any{"7": 1.0}},
		{[]any{object}, []map[string]any(nil), []map[string]any{object}},
		{[]any{object, 1.0}, []map[string]any(nil), []any{object, 1.0}},
		{[]any(nil), []string(nil), []any(nil)}, {3.0, nil, 3.0}, {make(chan int), 0, nil},
	} {
		if got := As(c.v, c.like); !reflect.DeepEqual(got, c.want) && c.want != nil {
			t.Errorf("As(%#v, %#v) is %#v, want %#v", c.v, c.like, got, c.want)
		}
	}
	if got := As([]any{"a"}, 0, []string(nil)); !reflect.DeepEqual(got, []string{"a"}) {
		t.Errorf("the first type that fits is %#v", got)
	}
	if As("a") != "a" {
		t.Error("without types it is another value")
	}
}

func TestMustAndOr(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		v, like any
		or      bool
		want    any
		message string
	}{
		{3.0, 0, false, 3, ""}, {nil, 7, true, 7, ""}, {"", "x", true, "", ""}, {4.0, 7, true, 4, ""},
		{2.5, 0, false, nil, "a whole number is needed, not 2.5"},
		{nil, "", false, nil, "a text is needed, not null"},
		{"x", 7, true, nil, `a whole number is needed, not "x"`},
		{map[string]any{}, []float64(nil), false, nil, "a list of which each is a number is needed, not an object"},
		{[]any{}, map[string]any(nil), false, nil, "an object is needed, not a list"},
		{1.0, false, false, nil, "true or false is needed, not 1"},
	} {
		got, message := func() (got any, message string) {
			defer func() {
				if m, ok := recover().(*Mismatch); ok {
					message = m.Message
				}
			}()
			if c.or {
				return Or(c.v, c.like), ""
			}
			return Must(c.v, c.like), ""
		}()
		if !reflect.DeepEqual(got, c.want) || message != c.message {
			t.Errorf("%#v as %#v: got %#v, %q", c.v, c.like, got, message)
		}
	}
}

// Maybe and Held return nil for null and reject any other value of a wrong type. Case rejects it only if it is of the
// kind that is asked for.
func TestMaybeHeldAndCase(t *testing.T) {
	t.Parallel()
	caught := func(f func() any) (got any) {
		defer func() {
			switch r := recover().(type) {
			case *Mismatch:
				got = r
			case string:
				got = "panic: " + r
			}
		}()
		return f()
	}
	ends := &Mismatch{"a whole number is needed, not 2.5"}
	for name, c := range map[string]struct{ got, want any }{
		"missing":             {caught(func() any { return Maybe(nil, 0) }), nil},
		"there":               {caught(func() any { return Maybe(3.0, 0) }), 3},
		"a part":              {caught(func() any { return Maybe(2.5, 0) }), ends},
		"nothing held":        {caught(func() any { return Held(nil, 0) }), nil},
		"held":                {caught(func() any { return Held(3.0, 0) }), 3},
		"a part held":         {caught(func() any { return Held(2.5, 0) }), "panic: " + ends.Message},
		"a case":              {caught(func() any { return Case(3.0, 0, []string{}) }), 3},
		"no case of its kind": {caught(func() any { return Case(2.5, 0, []string{}) }), ends},
		"a list of other kind": {caught(func() any { return Case([]any{1.0}, []string{}) }),
			&Mismatch{"a list of which each is a text is needed, not a list"}},
		"another kind": {caught(func() any { return Case("x", 0, []string{}) }), "x"},
		"null":         {caught(func() any { return Case(nil, 0) }), nil},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("%s: got %#v", name, c.got)
		}
	}
}

// For any JSON, a value that As has converted encodes to the same JSON again.
func FuzzAs(f *testing.F) {
	f.Add(`[1,2.5,"x",null,{"a":[true]},9007199254740993,1e300,-0.0]`)
	f.Fuzz(func(t *testing.T, text string) {
		var v any
		if json.Unmarshal([]byte(text), &v) != nil {
			return
		}
		before, _ := json.Marshal(v)
		for _, like := range []any{0, int8(0), uint64(0), "", false, []int(nil), []string(nil), [][]float64(nil),
			map[string]string(nil), map[string]int(nil), []map[string]any(nil), []any(nil)} {
			got := As(v, like)
			after, err := json.Marshal(got)
			var a, b any
			if err != nil || json.Unmarshal(after, &a) != nil || json.Unmarshal(before, &b) != nil ||
				!reflect.DeepEqual(a, b) {
				t.Errorf("As(%s, %T) is %s", before, like, after)
			}
		}
	})
}
