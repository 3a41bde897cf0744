package wire

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func FuzzCheckValue(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5e3,"x\u00e9",true,null]}`, `1 2`, `[`, `"\ud800"`, `-0`, `01`, `1e999`,
		"\"\x01\""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if CheckValue(b, 64) != nil {
			return
		}
		var v any
		if err := json.Unmarshal(b, &v); err != nil {
			t.Errorf("checkValue takes %q, encoding/json does not: %v", b, err)
		}
	})
}

func TestCheckValue(t *testing.T) {
	t.Parallel()
	for _, good := range []string{`null`, `true`, `false`, `0`, `-1.5e-3`, `""`, `"é\n\u0041"`, `[]`, `{}`,
		`[1,[2,{"a":[]}]]`, `{"a":{"b":null}}`, `9007199254740993`} {
		if err := CheckValue([]byte(good), 8); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for bad, want := range map[string]error{``: ErrNotJSON, ` 1`: ErrNotCompact, `1 `: ErrNotJSON,
		`[1, 2]`: ErrNotCompact, `{"a" :1}`: ErrNotJSON, `[1,]`: ErrNotJSON, `{"a":1,}`: ErrNotJSON,
		`{a:1}`: ErrNotJSON, `nul`: ErrNotJSON, `truex`: ErrNotJSON,
		`"a`: ErrNotJSON, "\"\n\"": ErrNotJSON, `"\x"`: ErrNotJSON, `"\u12g4"`: ErrNotJSON, "\"\xff\"": ErrNotUTF8,
		`01`: ErrNotJSON, `1.`: ErrNotJSON, `.5`: ErrNotJSON, `1e`: ErrNotJSON, `+1`: ErrNotJSON, `1e999`: ErrBigNumber,
		`NaN`:                 ErrNotJSON,
		`[[[[[[[[[1]]]]]]]]]`: ErrTooDeep, `]`: ErrNotJSON, `{"a"}`: ErrNotJSON, `[1 2]`: ErrNotJSON} {
		if err := CheckValue([]byte(bad), 8); err != want {
			t.Errorf("%q: %v, want %v", bad, err, want)
		}
	}
}

func FuzzParseAnswer(f *testing.F) {
	var b Builder
	(&Answer{Nonce: 1, Value: []byte(`{"a":1}`)}).Put(&b)
	f.Add(b.Finish()[5:])
	(&Answer{Nonce: 1, End: EndAuthored, Type: "x", Message: "y"}).Put(&b)
	f.Add(b.Finish()[5:])
	(&Answer{Nonce: 1, End: EndRetriable, Type: "x", Message: "y"}).Put(&b)
	f.Add(b.Finish()[5:])
	(&Answer{Nonce: 1, End: EndFailure, Type: "execution", Message: "y", Detail: "z"}).Put(&b)
	f.Add(b.Finish()[5:])
	limits := Limits{MaxValue: 4 << 20, MaxContext: 4 << 20, MaxDepth: 128}
	f.Fuzz(func(t *testing.T, payload []byte) {
		a, err := ParseAnswer(payload, 1, limits)
		if err == nil && a.End == EndValue && !json.Valid(a.Value) {
			t.Errorf("a value that is no JSON: %q", a.Value)
		}
	})
}

func FuzzFrameReader(f *testing.F) {
	f.Add([]byte{2, 0, 0, 0, 'r', 1})
	f.Add([]byte{255, 255, 255, 255, 'r'})
	f.Fuzz(func(t *testing.T, stream []byte) {
		r := NewReader(strings.NewReader(string(stream)))
		for {
			if _, _, err := r.Next(1 << 16); err != nil {
				break
			}
		}
		if cap(r.buf) > 2*len(stream)+8<<10 {
			t.Errorf("%d bytes made it take %d", len(stream), cap(r.buf))
		}
	})
}

// BenchmarkCheckValue checks a megabyte of objects, as every call with such a value does.
func BenchmarkCheckValue(b *testing.B) {
	var rows []string
	for i := range 14_000 {
		rows = append(rows, fmt.Sprintf(`{"id":%d,"name":"row number %d","tags":["a","b"],"x":%.1f}`, i, i,
			1.5*float64(i)))
	}
	value := []byte("[" + strings.Join(rows, ",") + "]")
	b.SetBytes(int64(len(value)))
	for b.Loop() {
		if err := CheckValue(value, 1000); err != nil {
			b.Fatal(err)
		}
	}
}
