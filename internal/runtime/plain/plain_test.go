package plain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// texts are documents of every kind: plain, odd, and invalid.
var texts = []string{
	``, ` `, `null`, ` null `, `true`, `false`, `nul`, `truee`, `nullx`, "\x00", `0`, `-0`, `-`, `00`, `01`, `-01`, `1`,
	`-1`, `1.`, `.1`, `1.5`, `1.5e`, `1e+`, `1e5`, `1E-5`,
	`-0.0`, `-0e1`, `1e308`, `1e309`, `[1,1e309,2]`, `5e-324`, `1e-400`, `123456789012345`, `999999999999999`,
	`1234567890123456`, `9007199254740993`, `18446744073709551617`,
	`123456789012345678901234567890`, `0.1`, `1.7976931348623157e308`, `2.2250738585072011e-308`, `1 2`, `1,`, `+1`,
	`0x1`, `NaN`, `Infinity`, `1e1000000000000`,
	`""`, `"a"`, `"`, `"a`, `"\`, `"\"`, `"\n\r\t\b\f\/\\\""`, `"\'"`, `"\x"`, `"\u"`, `"\u12"`, `"\u12g4"`,
	`"\u0041\u00e9\u4E2d"`, `"\u0000"`, `"\ud83d\ude00"`, `"\ud83d"`,
	`"\ud83d\n"`, `"\ud83dx"`, `"\ude00\ud83d"`, `"\ud83d\u0041"`, `"\ud83d\u12"`, `"\uDBFF\uDFFF"`, `"\uFFFD\uFFFF"`,
	"\"ü\u2028\U0001F600\"", "\"\xff\"", "\"\\n\xff\"", "\"\xed\xa0\x80\"", "\"a\xe2\x80\"",
	"\"\n\"", "\"\\\n\"", "\"\\n\n\"", "\"\x7f\"", `[]`, `[ ]`, "\n[\t1 ,\r2 ] ", `[1,]`, `[,1]`, `[1 2]`, `[1`, `[`,
	`]`, `[]]`, `[[],{},[[]]]`, `[1,2,3,4,5,6,7,8,9]`,
	`{}`, `{ }`, `{"a":1}`, ` { "a" : 1 , "b" : [ ] } `, `{"a":1,"a":2}`, `{"a":{"b":1},"a":{"c":2}}`, `{"":null}`,
	`{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `{1:2}`, `{"a" 1}`,
	`{"a":1`, `{"a`, `{`, `}`, `{"\u0061":1,"a":2}`, `{"<&>":"<&>"}`, "\ufeff1", "\u00a01", `{"a":1]`, `[1}`, `/**/1`,
	`'a'`, `[1,2,"x",{"y":null}] x`,
}

// same returns an error unless two trees are equal, including the bits of numbers and the capacities of lists, because
// programs can see both.
func same(a, b any) error {
	switch a := a.(type) {
	case float64:
		if b, ok := b.(float64); !ok || math.Float64bits(a) != math.Float64bits(b) {
			return fmt.Errorf("%v and %v", a, b)
		}
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) || cap(a) != cap(b) || (a == nil) != (b == nil) {
			return fmt.Errorf("%v (%d) and %v (%d)", a, cap(a), b, cap(b))
		}
		for i := range a {
			if err := same(a[i], b[i]); err != nil {
				return fmt.Errorf("at %d: %w", i, err)
			}
		}
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) || (a == nil) != (b == nil) {
			return fmt.Errorf("%v and %v", a, b)
		}
		for k := range a {
			if v, ok := b[k]; !ok {
				return fmt.Errorf("%q is missing", k)
			} else if err := same(a[k], v); err != nil {
				return fmt.Errorf("at %q: %w", k, err)
			}
		}
	default:
		if !reflect.DeepEqual(a, b) {
			return fmt.Errorf("%#v and %#v", a, b)
		}
	}
	return nil
}

// decodeDigits is json.Unmarshal with a json.Number for each whole number that would be encoded with other digits.
func decodeDigits(text []byte) (v any, err error) {
	if err := json.Unmarshal(text, &v); err != nil {
		return v, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var digits any
	if err := d.Decode(&digits); err != nil {
		return nil, err
	}
	return withDigits(v, digits), nil
}

func withDigits(v, digits any) any {
	switch v := v.(type) {
	case float64:
		n := digits.(json.Number)
		if text, err := json.Marshal(v); err == nil && len(n) > 15 && !strings.ContainsAny(string(n), ".eE") &&
			string(text) != string(n) {
			return n
		}
	case []any:
		for i := range v {
			v[i] = withDigits(v[i], digits.([]any)[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = withDigits(v[k], digits.(map[string]any)[k])
		}
	}
	return v
}

// checkDecode compares Decode with decodeDigits, and Encode of the result with encoding/json.
func checkDecode(t *testing.T, text []byte) {
	t.Helper()
	given := bytes.Clone(text)
	want, wantErr := decodeDigits(text)
	got, err := Decode(text)
	if (err != nil) != (wantErr != nil) || err != nil && (err.Error() != wantErr.Error() ||
		reflect.TypeOf(err) != reflect.TypeOf(wantErr)) {
		t.Fatalf("%.300q: got the error %v, want %v", text, err, wantErr)
	}
	if differs := same(got, want); differs != nil {
		t.Fatalf("%.300q: %v", text, differs)
	}
	if !bytes.Equal(text, given) {
		t.Fatalf("Decode changed %.300q to %.300q", given, text)
	}
	if err == nil {
		checkEncode(t, got)
	}
	for i := range text { // the result must not share memory with its input
		text[i] = 'x'
	}
	if differs := same(got, want); differs != nil {
		t.Fatalf("%.300q changed with its text: %v", given, differs)
	}
}

// checkEncode compares Encode with encoding/json and reports whether it accepted the value.
func checkEncode(t *testing.T, v any) bool {
	t.Helper()
	got, ok := Encode(v)
	if !ok {
		return false
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	if want := strings.TrimSuffix(b.String(), "\n"); err != nil || string(got) != want {
		t.Fatalf("%#v: got %q, want %q, %v", v, got, want, err)
	}
	return true
}

func FuzzPlain(f *testing.F) {
	for _, text := range texts {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		checkDecode(t, bytes.Clone(text))
		checkEncode(t, string(text))
		checkEncode(t, map[string]any{string(text): string(text)})
	})
}

// Every document that differs by one byte from those above.
func TestDecodeNeighbours(t *testing.T) {
	t.Parallel()
	for _, text := range texts {
		checkDecode(t, []byte(text))
		for i := range len(text) {
			for _, c := range []byte("\"\\{}[],:0-9.eEu ntf\n\x00\xff\xe2") {
				checkDecode(t, []byte(text[:i]+string([]byte{c})+text[i+1:]))
				checkDecode(t, []byte(text[:i]+string([]byte{c})+text[i:]))
			}
			checkDecode(t, []byte(text[:i]+text[i+1:]))
			checkDecode(t, []byte(text[:i]))
		}
	}
}

// Depths around the bound beyond which encoding/json takes over, and around that package's own bound.
func TestDepth(t *testing.T) {
	t.Parallel()
	for _, depth := range []int{1, maxDepth - 2, maxDepth - 1, maxDepth, maxDepth + 1, maxDepth + 2, 1001, 9999, 10_000,
		10_001} {
		for _, inner := range []string{"", "1"} {
			checkDecode(t, []byte(strings.Repeat("[", depth)+inner+strings.Repeat("]", depth)))
		}
		checkDecode(t, []byte(strings.Repeat(`{"a":`, depth)+"1"+strings.Repeat("}", depth)))
	}
	cycle := []any{nil}
	cycle[0] = cycle
	loop := map[string]any{}
	loop["a"] = []map[string]any{loop}
	for _, v := range []any{cycle, loop} {
		if _, ok := Encode(v); ok {
			t.Errorf("a cycle was encoded")
		}
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	numbers := []float64{0, math.Copysign(0, -1), 1e-6, 9.99e-7, 1e-7, 1e-10, 1e20, 1e21, 1e22, -1e21,
		999999999999999868928, maxInteger - 1, maxInteger, maxInteger + 2, -maxInteger,
		math.MaxInt64, math.MinInt64, math.MaxFloat64, math.SmallestNonzeroFloat64, math.NaN(), math.Inf(1),
		math.Inf(-1), 0.1, 1.0 / 3, 100, 123456789.125}
	for range 20_000 {
		f := math.Float64frombits(r.Uint64())
		numbers = append(numbers, f, math.Trunc(r.NormFloat64()*1e17), math.Round(r.NormFloat64()*1e4)/100)
	}
	for _, f := range numbers {
		finite := !math.IsNaN(f) && !math.IsInf(f, 0)
		if took := checkEncode(t, f); took != finite {
			t.Fatalf("%v: taken is %v", f, took)
		}
		if finite {
			checkDecode(t, strconv.AppendFloat(nil, f, "feg"[r.IntN(3)], -1, 64))
			checkDecode(t, fmt.Appendf(nil, "%.*f", r.IntN(20), math.Mod(f, 1e18)))
		}
	}
}

func TestStrings(t *testing.T) {
	t.Parallel()
	for r := range rune(0x11000) {
		s := string([]rune{'a', r, 'b'})
		if !checkEncode(t, s) {
			t.Fatalf("%q was not taken", s)
		}
		checkDecode(t, []byte(`"`+s+`"`))
		checkDecode(t, fmt.Appendf(nil, `"\u%04x"`, r&0xFFFF))
	}
	for a := range 256 {
		for b := range 256 {
			checkEncode(t, string([]byte{'x', byte(a), byte(b)}))
			checkEncode(t, string([]byte{0xE2, byte(a), byte(b)}))
			checkDecode(t, []byte{'"', byte(a), byte(b), '"'})
			checkDecode(t, []byte{'"', '\\', byte(a), byte(b), '"'})
			checkDecode(t, []byte{byte(a), byte(b)})
		}
	}
}

type (
	own     map[string]any
	ownText string
	silent  struct{ t *testing.T }
)

// MarshalJSON must not be called: encoding/json would call it again.
func (s silent) MarshalJSON() ([]byte, error) {
	s.t.Error("Encode ran a method of the value")
	return []byte("1"), nil
}

// Types that are accepted, and types that are not.
func TestTypes(t *testing.T) {
	t.Parallel()
	taken := []any{nil, true, false, "x", 1.5, 7, int64(-7), math.MinInt64, []any(nil), []any{}, []any{1, "a", nil},
		[]map[string]any(nil), []map[string]any{nil, {}, {"b": 1, "a": []any{}}},
		[]string(nil), []string{"<", ""}, []float64{1, 0.5}, []float64(nil), map[string]any(nil), map[string]any{},
		map[string]any{"z": 1, "a": map[string]any{"y": 2, "b": nil}, "": 3, "ä": 4, "<": 5}}
	for _, v := range taken {
		if !checkEncode(t, v) {
			t.Errorf("%#v was not taken", v)
		}
	}
	for _, v := range []any{own{}, ownText("a"), json.Number("1"), json.RawMessage("1"), []byte("a"), uint(1),
		float32(1), struct{}{}, &struct{}{}, func() {}, make(chan int), map[string]int{"a": 1},
		silent{t}, []any{1, silent{t}}, map[string]any{"a": own{}}, []any{math.NaN()}, "\xff",
		map[string]any{"\xff": 1}, [1]any{1}} {
		if _, ok := Encode(v); ok {
			t.Errorf("%#v was taken", v)
		}
	}
}

// tree returns a random tree like those that programs return.
func tree(r *rand.Rand, depth int) any {
	words := []string{"", "id", "name", "a \"b\" \\ <c> & d", "ü \u2028", "\x01\n", "\U0001F600",
		strings.Repeat("long ", 30), "\xff"}
	word := func() string { return words[r.IntN(len(words)-1+r.IntN(200)/199)] }
	switch kind := r.IntN(9); {
	case kind < 4 && depth > 0:
		m := map[string]any{}
		for range r.IntN(20) {
			m[word()+strconv.Itoa(r.IntN(30))] = tree(r, depth-1)
		}
		return m
	case kind < 6 && depth > 0:
		list := make([]any, r.IntN(12))
		for i := range list {
			list[i] = tree(r, depth-1)
		}
		return list
	case kind == 6:
		return r.NormFloat64() * math.Pow(10, float64(r.IntN(40)-20))
	case kind == 7:
		return []any{nil, true, r.IntN(1000), int64(r.Uint64()), []string{word()}, []float64{1, r.Float64()}}[r.IntN(6)]
	}
	return word()
}

func TestTrees(t *testing.T) {
	t.Parallel()
	taken := 0
	for seed := range uint64(300) {
		v := tree(rand.New(rand.NewPCG(seed, 3)), 4)
		if checkEncode(t, v) {
			taken++
		}
		compact, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var wide bytes.Buffer
		if err := json.Indent(&wide, compact, " ", "\t"); err != nil {
			t.Fatal(err)
		}
		checkDecode(t, compact)
		checkDecode(t, wide.Bytes())
	}
	if taken < 150 {
		t.Errorf("%d of 300 trees were taken", taken)
	}
}

// rows returns a megabyte of JSON as a client sends it.
func rows() []byte {
	var out []string
	for i := range 14_000 {
		out = append(out, fmt.Sprintf(`{"id": %d, "name": "row number %d", "tags": ["a", "b"], "x": %.1f}`, i, i,
			1.5*float64(i)))
	}
	return []byte("[" + strings.Join(out, ", ") + "]")
}

func BenchmarkDecode(b *testing.B) {
	text := rows()
	b.Run("this", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = Decode(text)
		}
	})
	b.Run("encoding_json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var v any
			_ = json.Unmarshal(text, &v)
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	v, _ := Decode(rows())
	b.Run("this", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = Encode(v)
		}
	})
	b.Run("encoding_json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = json.Marshal(v)
		}
	})
}
