package strict

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCheckAccepts(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		`null`, ` true `, `0`, `-0`, `-0.5e+10`, `1E9`, `9007199254740993`, `"a"`, `"\ud83d\ude00"`,
		`"` + "\u00e4\U0001f600" + `"`, `""`,
		`[]`, `{}`, `[1, 2 ,3]`, `{"a":{"a":1},"b":[{"a":1},{"a":2}]}`, "\t\r\n [ ] \n", `{"":1}`, `"\u0000"`, // NUL
		strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth),
		strings.Repeat("9", 308), "0." + strings.Repeat("9", MaxNumber-2), `1.7976931348623157e308`, `1e-999`,
		`9223372036854775808`,
	} {
		if err := Check([]byte(in)); err != nil {
			t.Errorf("Check(%.60q) = %v, want nil", in, err)
		}
	}
}

func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	many := "{"
	for i := range 40 {
		many += fmt.Sprintf(`"k%d":1,`, i)
	}
	for _, c := range []struct{ in, pointer, reason string }{
		{"", "", "ends too early"},
		{"  ", "", "ends too early"},
		{`{"a":1,"a":2}`, "/a", "twice"},
		{`{"a":1,"\u0061":2}`, "/a", "twice"},
		{`{"x":[0,{"a/b":1,"a/b":2}]}`, "/x/1/a~1b", "twice"},
		{many + `"k3":2}`, "/k3", "twice"},
		{`{"\ud800":1,"\udbff":2}`, "/\ufffd", "twice"},
		{`1 2`, "", "more behind"},
		{`{} x`, "", "more behind"},
		{`[1,]`, "/1", "where a value is needed"},
		{`[1 2]`, "", "comma or ]"},
		{`{"a" 1}`, "", "colon"},
		{`{"a":1,}`, "", "name in double quotes"},
		{`{a:1}`, "", "name in double quotes"},
		{`{"a":1 "b":2}`, "", "comma or }"},
		{`{"a":nul}`, "/a", "unknown word"},
		{`NaN`, "", "where a value is needed"},
		{`01`, "", "more behind"},
		{`-`, "", "without digits"},
		{`1.`, "", "behind the point"},
		{`1e`, "", "exponent"},
		{`+1`, "", "where a value is needed"},
		{`"` + "\xff" + `"`, "", "UTF-8"},
		{`"` + "\xed\xa0\x80" + `"`, "", "UTF-8"},
		{`"` + "a\nb" + `"`, "", "control character"},
		{`"\x"`, "", "escape"},
		{`"\u12g4"`, "", "hexadecimal"},
		{`"\u12`, "", "hexadecimal"},
		{`"abc`, "", "within a string"},
		{`"abc\`, "", "within a string"},
		{"\ufeff{}", "", "where a value is needed"},
		{strings.Repeat("[", MaxDepth+1) + strings.Repeat("]", MaxDepth+1), strings.Repeat("/0", MaxDepth),
			"nests deeper"},
		{strings.Repeat(`{"a":`, MaxDepth+1), strings.Repeat("/a", MaxDepth), "nests deeper"},
		{strings.Repeat("9", MaxNumber+1), "", "number"},
		{`{"args":[0,-1e999]}`, "/args/1", "no 64-bit float"},
		{`[` + strings.Repeat("9", 310) + `]`, "/0", "no 64-bit float"},
	} {
		err := Check([]byte(c.in))
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("Check(%.60q) = %v, want an *Error", c.in, err)
			continue
		}
		if e.Pointer != c.pointer || !strings.Contains(e.Reason, c.reason) {
			t.Errorf("Check(%.60q) = %.80v, want %q at %.80q", c.in, e, c.reason, c.pointer)
		}
	}
}

func TestLoneSurrogatesBecomeReplacements(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`"\ud800"`:             `"\ufffd"`,
		`"\udfff\ud83d\ude00"`: `"\ufffd\ud83d\ude00"`,
		`"\ud800\u0041"`:       `"\ufffd\u0041"`,
		`"\ud800\ud800"`:       `"\ufffd\ufffd"`,
		`"\\ud800"`:            `"\\ud800"`,
	} {
		data := []byte(in)
		if err := Check(data); err != nil || string(data) != want {
			t.Errorf("Check(%s) left %s, %v; want %s", in, data, err, want)
		}
	}
}

func TestMembers(t *testing.T) {
	t.Parallel()
	var got []string
	err := Members([]byte(` { "method" : "add" , "\u0061rgs":[1, [2]], "Method": null, "n":9007199254740993 } `),
		func(name, value []byte) error {
			got = append(got, string(name)+"="+string(value))
			return nil
		})
	want := []string{`method="add"`, `args=[1, [2]]`, `Method=null`, `n=9007199254740993`}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("Members gave %q, %v; want %q", got, err, want)
	}
	for _, in := range []string{"", "null", "[1]", `"x"`, "5", `{"a":1}{}`} {
		if err := Members([]byte(in), func(_, _ []byte) error { return nil }); err == nil {
			t.Errorf("Members(%q) = nil, want an error", in)
		}
	}
	stop := errors.New("stop")
	if err := Members([]byte(`{"a":1,"b":2}`), func(_, _ []byte) error { return stop }); err != stop {
		t.Errorf("Members = %v, want member's own error", err)
	}
}

func TestElements(t *testing.T) {
	t.Parallel()
	for in, want := range map[string][]string{
		`[]`: nil, `[ ]`: nil,
		`[1, "a,]\"" , {"x":[1,2]} ,[],null ]`: {`1`, `"a,]\""`, `{"x":[1,2]}`, `[]`, `null`},
	} {
		var got []string
		Elements([]byte(in), func(v []byte) { got = append(got, string(v)) })
		if !reflect.DeepEqual(got, want) {
			t.Errorf("Elements(%s) = %q, want %q", in, got, want)
		}
	}
}

func TestString(t *testing.T) {
	t.Parallel()
	if got, ok := String([]byte(`"a\u00e4\n"`)); got != "a\u00e4\n" || !ok {
		t.Errorf("String = %q, %v", got, ok)
	}
	if _, ok := String([]byte(`5`)); ok {
		t.Error("a number is a string")
	}
}

// encoding/json decodes everything that Check accepts, with the same meaning. Check refuses everything that
// encoding/json refuses.
func FuzzCheck(f *testing.F) {
	for _, seed := range []string{`{"method":"add","args":[2,3],"kwargs":{},"role":null}`, `{"a":1,"a":2}`,
		`"\ud800\udc00\ud800"`, `[1e5,-0.1,"x"]`, "\xff", `{"\u0061":[{}]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		given := bytes.Clone(data)
		err := Check(data)
		if len(data) != len(given) {
			t.Fatalf("the length changed from %d to %d", len(given), len(data))
		}
		if err != nil {
			if !bytes.Equal(data, given) && !bytes.Contains(given, []byte(`\u`)) {
				t.Errorf("refused input was changed: %q", given)
			}
			return
		}
		if !json.Valid(given) || !utf8.Valid(given) {
			t.Fatalf("Check lets %q pass, which is not JSON in UTF-8", given)
		}
		var before, after any
		if err := json.Unmarshal(given, &before); err != nil {
			t.Fatalf("Check lets %q pass, which encoding/json does not read: %v", given, err)
		}
		if err := json.Unmarshal(data, &after); err != nil || !reflect.DeepEqual(before, after) {
			t.Fatalf("%q now means %v instead of %v (%v)", given, after, before, err)
		}
		if object, ok := after.(map[string]any); ok {
			n := 0
			if err := Members(data, func(name, value []byte) error {
				n++
				if _, known := object[string(name)]; !known || !json.Valid(value) {
					t.Errorf("member %q = %q", name, value)
				}
				return nil
			}); err != nil || n != len(object) {
				t.Errorf("Members gave %d of %d members of %q, %v", n, len(object), data, err)
			}
		}
		if array, ok := after.([]any); ok {
			n := 0
			Elements(bytes.TrimLeft(data, " \t\r\n"), func(value []byte) {
				if !json.Valid(value) {
					t.Errorf("element %d = %q", n, value)
				}
				n++
			})
			if n != len(array) {
				t.Errorf("Elements gave %d of %d elements of %q", n, len(array), data)
			}
		}
	})
}

// One allocation, for names, whatever the body contains.
func TestCheckAllocatesOnce(t *testing.T) {
	body := []byte(`{"method":"add","args":[2,3,{"a":[1,2,3],"b":"text"}],"kwargs":{"x":1},"role":null}`)
	if n := testing.AllocsPerRun(100, func() {
		if err := Check(body); err != nil {
			t.Fatal(err)
		}
	}); n > 1 {
		t.Errorf("%v allocations, want at most 1", n)
	}
}
