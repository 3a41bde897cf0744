package jsonenc

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
)

type leaf struct {
	Word  string            `json:"word"`
	N     int64             `json:"n,omitempty"`
	Texts map[string]string `json:"texts,omitempty"`
}

// tree has a field of each kind that occurs in stored and sent types.
type tree struct {
	Text   string                     `json:"text"`
	Little string                     `json:"little,omitempty"`
	Int    int                        `json:"int"`
	Wide   int64                      `json:"wide,omitempty"`
	On     bool                       `json:"on"`
	Off    bool                       `json:"off,omitempty"`
	Float  float64                    `json:"float"`
	Small  float64                    `json:"small,omitempty"`
	At     time.Time                  `json:"at"`
	Later  *time.Time                 `json:"later,omitempty"`
	Raw    json.RawMessage            `json:"raw"`
	Part   json.RawMessage            `json:"part,omitempty"`
	Raws   []json.RawMessage          `json:"raws"`
	Words  []string                   `json:"words"`
	Some   []string                   `json:"some,omitempty"`
	Bytes  []byte                     `json:"bytes,omitempty"`
	Leaf   leaf                       `json:"leaf"`
	Leaves []leaf                     `json:"leaves"`
	Tip    *leaf                      `json:"tip"`
	Any    map[string]any             `json:"any,omitempty"`
	Keyed  map[string]json.RawMessage `json:"keyed,omitempty"`
	Value  any                        `json:"value,omitempty"`
	Number json.Number                `json:"number,omitempty"`
	Fixed  [2]int64                   `json:"fixed"`
	Self   []*tree                    `json:"self,omitempty"`
	hidden int
	Skip   string `json:"-"`
}

var treeCode, sparseCode = For[tree](), Sparse[tree]()

var samples = []string{"", "plain", "a \"b\" \\ <c> & d", "ü \u2028 \u2029 \xff \x01\n", "\U0001F600",
	strings.Repeat("long text ", 60)}

// raws returns JSON values in the forms that clients send.
func raws() []json.RawMessage {
	long, _ := json.Marshal(strings.Repeat("long text ", 60))
	out := []json.RawMessage{nil, long, bytes.Repeat([]byte("["), 300)}
	out[2] = append(out[2], bytes.Repeat([]byte("]"), 300)...)
	for _, s := range []string{`null`, `true`, `false`, `0`, `-1.5e+10`, `1E-5`, `"x"`, `"\u00e4\n\/ <&> "`,
		"\"\u2028 ü \xff\"", `[]`, `{}`, `{"a":[1,{"b":null}],"c":"<"}`,
		` { "a" : 1 } `, "[1,\n2]", `{"a":1}`, `"<a href=\"x\">&amp;\\ \u003c"`,
		"[\"\u2027\u2028\u2029\u202a < \xe2\",\t\" \\\" \" ]"} {
		out = append(out, json.RawMessage(s))
	}
	return out
}

func random(r *rand.Rand, depth int) *tree {
	text := func() string { return samples[r.IntN(len(samples))] }
	all := raws()
	raw := func() json.RawMessage { return all[r.IntN(len(all))] }
	t := &tree{Text: text(), Little: text(), Int: int(r.Uint64()), Wide: r.Int64N(3) - 1, On: r.IntN(2) == 0,
		Off:   r.IntN(2) == 0,
		Float: math.Float64frombits(r.Uint64()), Small: float64(r.IntN(3)) / 4,
		At: time.Unix(r.Int64N(1<<33), r.Int64N(1e9)).In(time.FixedZone("", 60*r.IntN(700))), Raw: raw(),
		Part: raw(), Leaf: leaf{text(), r.Int64N(2), nil}, Skip: "never", hidden: 1}
	if math.IsNaN(t.Float) || math.IsInf(t.Float, 0) {
		t.Float = math.Copysign(0, -1)
	}
	for range r.IntN(3) {
		t.Raws, t.Words, t.Some = append(t.Raws, raw()), append(t.Words, text()), append(t.Some, text())
		t.Leaves = append(t.Leaves, leaf{Word: text(), Texts: map[string]string{text(): text()}})
	}
	if r.IntN(2) == 0 {
		t.Words, t.Bytes, t.Leaves, t.Number = []string{}, []byte(text()), []leaf{}, "12.50"
		t.Tip, t.Later = &leaf{Word: text()}, &t.At
		t.Any, t.Keyed, t.Value = map[string]any{text(): 1, "x": nil}, map[string]json.RawMessage{text(): raw()}, text()
	}
	if depth > 0 && r.IntN(3) == 0 {
		t.Self = []*tree{nil, random(r, depth-1)}
	}
	return t
}

// check compares an encoding with that of encoding/json.
func check(t *testing.T, v *tree) {
	t.Helper()
	want, wantErr := json.Marshal(v)
	got, err := treeCode.Marshal(v, 0)
	if (err != nil) != (wantErr != nil) || wantErr == nil && string(got) != string(want) {
		t.Fatalf("got %s, %v\nwant %s, %v", got, err, want, wantErr)
	}
	if wantErr != nil {
		return
	}
	w := Writer{}
	sparseCode.Append(&w, v)
	var back, whole tree
	if err := json.Unmarshal(w.Buf, &back); err != nil || w.Err != nil {
		t.Fatalf("the sparse form %s: %v, %v", w.Buf, err, w.Err)
	}
	_ = json.Unmarshal(want, &whole)
	if !reflect.DeepEqual(back, whole) && !sameJSON(back, whole) {
		t.Fatalf("the sparse form %s decodes to %+v, want %+v", w.Buf, back, whole)
	}
}

func sameJSON(a, b tree) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

func TestEncodesAsEncodingJSON(t *testing.T) {
	t.Parallel()
	check(t, &tree{})
	for seed := range uint64(3000) {
		check(t, random(rand.New(rand.NewPCG(seed, 1)), 2))
	}
}

// FuzzJSON compares the encoding of raw JSON, valid or not, with that of encoding/json.
func FuzzJSON(f *testing.F) {
	for _, raw := range append(raws(), []byte(`{`), []byte(`01`), []byte(`"\x"`), []byte(`[1,]`), []byte("\"\n\""),
		[]byte(`{"a"}`), []byte(`1 2`), []byte(`-`), []byte(`1.`), []byte(`"\u12"`)) {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) == 0 {
			return // encoding/json rejects an empty value; here it becomes null, like a missing one
		}
		want, wantErr := json.Marshal(json.RawMessage(raw))
		w := Writer{}
		for range 2 { // the second one may be a noted value
			w.Buf = w.Buf[:0]
			w.JSON(raw)
			if (w.Err != nil) != (wantErr != nil) || wantErr == nil && string(w.Buf) != string(want) {
				t.Fatalf("%q: got %q, %v, want %q, %v", raw, w.Buf, w.Err, want, wantErr)
			}
		}
		var compact bytes.Buffer
		wantErr = json.Compact(&compact, raw)
		w = Writer{KeepHTML: true}
		w.JSON(raw)
		if (w.Err != nil) != (wantErr != nil) || wantErr == nil && string(w.Buf) != compact.String() {
			t.Fatalf("%q with HTML kept: got %q, %v, want %q, %v", raw, w.Buf, w.Err, compact.Bytes(), wantErr)
		}
		given := bytes.Clone(raw)
		if got := Compact(raw); wantErr == nil && string(got) != compact.String() || !bytes.Equal(raw, given) {
			t.Fatalf("Compact(%q): got %q and left %q, want %q", given, got, raw, compact.Bytes())
		}
	})
}

func TestCheckedJSONIsKnownPerForm(t *testing.T) {
	t.Parallel()
	raw := json.RawMessage(`"` + strings.Repeat("<", worthNoting) + `"`)
	w := Writer{KeepHTML: true}
	w.JSON(raw)
	w.Buf, w.KeepHTML = nil, false
	w.JSON(raw)
	if want, _ := json.Marshal(raw); string(w.Buf) != string(want) {
		t.Errorf("got %s, want %s", w.Buf, want)
	}
}

// Strings are written as encoding/json writes them.
func TestAppendString(t *testing.T) {
	t.Parallel()
	for _, s := range append(samples, " ~", "\x1f", "\x7f", "\u0080", `"`, `\`, "<", ">", "&") {
		want, err := json.Marshal(s)
		if got := appendString([]byte("x"), s); err != nil || string(got) != "x"+string(want) {
			t.Errorf("%q: got %s, want x%s, %v", s, got, want, err)
		}
	}
}

// Numbers are written as encoding/json writes them; NaN and infinities are errors.
func TestFloats(t *testing.T) {
	t.Parallel()
	for _, f := range []float64{0, math.Copysign(0, -1), 1, -1.5, 0.1, 123456789.25, 1e-6, 9.9e-7, -1e-9, 1e20, 1e21,
		-1e21, 1.7e308, 5e-324, math.NaN(), math.Inf(1)} {
		check(t, &tree{Float: f})
	}
}

// Encoding the most common kinds of members does not allocate.
func TestAppendAllocatesNothing(t *testing.T) {
	now := time.Now()
	v := &tree{Text: "text", At: now, Later: &now, Raw: json.RawMessage(`{"a":[1,2,3]}`),
		Raws: []json.RawMessage{json.RawMessage(`"x"`)}, Words: []string{"a"},
		Leaves: []leaf{{Word: "b"}}, Tip: &leaf{}, Float: 1.5}
	w := Writer{Buf: make([]byte, 0, 4096)}
	type bare struct { // without the kinds that are left to encoding/json
		A leaf            `json:"a"`
		B []leaf          `json:"b"`
		C time.Time       `json:"c"`
		D json.RawMessage `json:"d"`
	}
	code := For[bare]()
	b := &bare{v.Leaf, v.Leaves, v.At, v.Raw}
	if n := testing.AllocsPerRun(100, func() { w.Buf = w.Buf[:0]; code.Append(&w, b) }); n != 0 {
		t.Errorf("got %v allocations, want none", n)
	}
}

func BenchmarkAppend(b *testing.B) {
	v := random(rand.New(rand.NewPCG(2, 1)), 0)
	v.Any, v.Keyed, v.Value, v.Bytes, v.Number, v.Leaf.Texts, v.Leaves = nil, nil, nil, nil, "", nil, nil
	b.Run("this", func(b *testing.B) {
		w := Writer{}
		b.ReportAllocs()
		for b.Loop() {
			w.Buf = w.Buf[:0]
			treeCode.Append(&w, v)
		}
	})
	b.Run("encoding_json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = json.Marshal(v)
		}
	})
}

// BenchmarkMegabyte copies a megabyte of two kinds of JSON that is already checked.
func BenchmarkMegabyte(b *testing.B) {
	rows := make([]any, 20_000)
	for i := range rows {
		rows[i] = map[string]any{"id": i, "name": "row with a name", "on": true}
	}
	list, _ := json.Marshal(rows)
	text, _ := json.Marshal(strings.Repeat("a line of plain text\n", 50_000))
	for name, raw := range map[string]json.RawMessage{"list": list, "text": text} {
		w := Writer{Buf: make([]byte, 0, len(raw))}
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				w.Buf, w.checked = w.Buf[:0], [8]note{}
				w.JSON(raw)
			}
		})
		b.Run(name+"_encoding_json", func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				_, _ = json.Marshal(raw)
			}
		})
	}
}
