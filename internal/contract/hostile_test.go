package contract

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func list(n int, element string) string {
	return "[" + strings.Repeat(element+",", n-1) + element + "]"
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"%x",`, i)
	}
	return strings.TrimSuffix(b.String(), ",")
}

// trees returns all nested arrays with that many arrays in total; each is a unique text in preorder.
func trees(n int) (all []string) {
	for _, inner := range forests(n-1, map[int][]string{0: {""}}) {
		all = append(all, "["+inner+"]")
	}
	return all
}

func forests(n int, known map[int][]string) []string {
	if known[n] == nil {
		for first := range n {
			for _, a := range forests(first, known) {
				for _, b := range forests(n-1-first, known) {
					known[n] = append(known[n], strings.TrimSuffix("["+a+"],"+b, ","))
				}
			}
		}
	}
	return known[n]
}

// Contracts that are made to be expensive are refused, or their checks are refused for values that would take too long,
// or they are cheap. Without the bounds each took seconds to minutes.
func TestHostileContracts(t *testing.T) {
	t.Parallel()
	chain := `{"$ref":"#/$defs/d0","$defs":{`
	for i := range 300 {
		chain += fmt.Sprintf(`"d%d":{"$ref":"#/$defs/d%d"},`, i, i+1)
	}
	tests := []struct {
		name, deliverable, value string
		refused                  string // by Compile: part of the reason
		mismatch                 string // of the check
		message                  string
	}{
		{"a tiny minimum", `{"items":{"minimum":1e-999999}}`, ``, "must be a number", "", ""},
		{"a minimum beyond big numbers", `{"minimum":1e-999999999}`, ``, "must be a number", "", ""},
		{"a zero of many digits", `{"minimum":0e999999999}`, ``, "must be a number", "", ""},
		{"a tiny multipleOf", `{"multipleOf":1e-999999}`, ``, "must be a number", "", ""},
		{"a tiny enumerated value", `{"enum":[1e-999999]}`, ``, "out of range", "", ""},
		{"a tiny number deep in a const", `{"const":{"a":[1e-401]}}`, ``, "out of range", "", ""},
		{"a small multipleOf and a huge value", `{"multipleOf":1e-299}`, `1e999999999`, "", "", ""},
		{"numbers beyond reckoning in a value", `{"items":{"minimum":1}}`, `[1,1e-999999999]`, "", MismatchSchema,
			"breaks minimum"},
		{"a repeat of repeats", `{"pattern":"(((x{100}){10}){10})"}`, ``, "must be a regular expression", "", ""},
		{"many counted repeats", `{"pattern":"` + strings.Repeat(`.{1000}`, 500) + `"}`, ``, "patterns too large", "",
			""},
		{"many large patterns", `{"items":{"allOf":[{"pattern":"a{900}"},{"pattern":"b{900}.{900}"},` +
			strings.Repeat(`{"pattern":"c{900}d{900}e{900}"},{"pattern":"f{900}g{900}h{900}"},`, 50) +
			`{"pattern":".{900}i{900}j{900}k{900}"}]}}`, ``, "patterns too large", "", ""},
		{"the same pattern often", `{"items":{"allOf":[` + strings.Repeat(`{"pattern":"^[a-z]{1,100}$"},`, 100) +
			`{}]}}`, `["abc"]`, "", "", ""},
		{"many classes", `{"pattern":"` + strings.Repeat(`\\pL`, 1000) + `"}`, ``, "patterns too large", "", ""},
		{"patterns as keys", `{"patternProperties":{"` + strings.Repeat(`.{1000}`, 20) + `":{}}}`, ``,
			"patterns too large", "", ""},
		{"a slow pattern over much text", `{"pattern":"(.*a){300}b.*c"}`, `"` + strings.Repeat("a", 4<<20) + `"`, "",
			MismatchSchema, "too large"},
		{"a slow pattern over many keys", `{"propertyNames":{"pattern":"(.*a){900}b"}}`,
			`{"` + strings.Repeat("a", 4<<20) + `":1}`, "", MismatchSchema, "too large"},
		{"many schemas over many values", `{"items":{"allOf":[` + strings.Repeat(`{"const":`+list(90, "1")+`},`, 100) +
			`{}]}}`, list(2000, "1"), "", MismatchSchema, "too large"},
		{"long lists over many values", `{"items":{"allOf":[` + strings.Repeat(`{"enum":`+list(90, "1")+`},`, 100) +
			`{}]}}`, list(2000, "1"), "", "", ""},
		{"many required keys over many values", `{"items":{"anyOf":[{"required":[` + manyKeys(20_000) + `]},true]}}`,
			list(1000, "{}"), "", MismatchSchema, "too large"},
		{"many dependent keys over many values", `{"items":{"anyOf":[{"dependentRequired":{"a":[` + manyKeys(20_000) +
			`]}},true]}}`, list(1000, `{"a":1}`), "", MismatchSchema, "too large"},
		{"many enumerated values over many values", `{"items":{"anyOf":[{"enum":[` + manyKeys(5000) + `]},true]}}`,
			list(10_000, `"no"`), "", "", ""},
		{"many long enumerated values over many values", `{"items":{"anyOf":[{"enum":["` + strings.Repeat("x", 300) +
			`",` + manyKeys(5000) + `]},true]}}`, list(10_000, `"no"`), "", MismatchSchema, "too large"},
		{"a large const over many values", `{"items":{"anyOf":[{"const":` + list(20_000, "1") + `},true]}}`,
			list(1000, `1`), "", MismatchSchema, "too large"},
		{"many schemas that look at different members", `{"type":"array","items":{"properties":{` +
			strings.ReplaceAll(manyKeys(300), ",", `:{"type":"number"},`) + `:{}}}}`, list(10_000, `{"1":1,"2":2}`), "",
			"", ""},
		{"a tree of few schemas and many values", tree, `{"v":1,"left":` + strings.Repeat(`{"v":1,"right":`, 2000) +
			`{"v":2}` + strings.Repeat(`}`, 2001), "", "", ""},
		{"unique items", `{"uniqueItems":true}`, list(2, `[1,{"a":2}]`), "", MismatchSchema, "uniqueItems"},
		{"unique items that a hash takes for alike", `{"uniqueItems":true}`,
			"[" + strings.Join(trees(13)[:200_000], ",") + "]", "", "", ""},
		{"unique items in unique items", `{"uniqueItems":true,"items":{"$ref":"#"}}`,
			strings.Repeat("[", 128) + list(100_000, `"x"`) + strings.Repeat("]", 128), "", MismatchSchema,
			"too large"},
		{"many values below a long key", `{"additionalProperties":{"items":{"type":"number"}}}`,
			`{"` + strings.Repeat("k", 1<<20) + `":` + list(100_000, "1") + "}", "", MismatchSchema, "too large"},
		{"many values below long keys",
			`{"$defs":{"o":{"additionalProperties":{"$ref":"#/$defs/o"}}},"$ref":"#/$defs/o"}`,
			strings.Repeat(`{"`+strings.Repeat("k", 30_000)+`":`, 100) + `{` + strings.ReplaceAll(manyKeys(50_000), ",",
				":1,") + ":1}" + strings.Repeat("}", 100), "", MismatchSchema, "too large"},
		{"a chain of references", chain + `"d300":{"type":"number"}}}`, `"x"`, "", MismatchType, "must be number"},
		{"a chain in a circle", strings.Replace(chain, `"d5":{"$ref":"#/$defs/d6"}`, `"d5":{"$ref":"#/$defs/d0"}`, 1) +
			`"d300":{}}}`, ``, "", "", ""},
		{"an array as deep as JSON goes", `{"type":"array","items":{"$ref":"#"}}`,
			strings.Repeat("[", 3000) + strings.Repeat("]", 3000), "", "", ""},
		{"a const as deep as JSON goes", `{"const":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}`,
			`[]`, "", MismatchSchema, "breaks const"},
		{"unevaluated, in disguise",
			`{"properties":{"a":true},"additionalProperties":{"type":"number"},"unevalu\u0061tedProperties":false}`,
			`{"b":1}`, "", "", ""},
		{"a dynamic reference that leaves", `{"$dynamicRef":"https://example.com/s#node"}`, ``, "leaves the document",
			"", ""},
		{"a relative reference", `{"$ref":"other.json#/a"}`, ``, "leaves the document", "", ""},
		{"an id to be referred to", `{"properties":{"a":{"$id":"https://example.com/s","type":"string"}}}`, ``,
			"not supported below the top", "", ""},
		{"the same key twice", `{"type":"object","type":"array"}`, `[]`, "", "", ""},
		{"keys that are not UTF-8", "{\"required\":[\"\xff\"]}", `{}`, "", MismatchRequired, "lacks required keys"},
		{"a lone surrogate", `{"required":["\ud800"]}`, `{"\ud800":1}`, "", "", ""},
		{"a key of a megabyte's tenth", `{"required":["` + strings.Repeat("k", 100_000) + `"]}`, `{}`, "",
			MismatchRequired, "lacks required keys"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := Compile(json.RawMessage(tt.deliverable))
			var invalid *InvalidError
			if tt.refused != "" {
				if !errors.As(err, &invalid) || !strings.Contains(invalid.Reason, tt.refused) {
					t.Fatalf("got %v, want an InvalidError with %q", err, tt.refused)
				}
				// compileTolerant leaves invalid parts out, and refuses references: neither costs more
				if s, reports, err := compileTolerant(json.RawMessage(
					tt.deliverable)); err == nil && len(reports) == 0 {
					t.Errorf("a program's contract: nothing is reported of %v", s.root)
				}
				return
			}
			if tt.value == "" {
				if err == nil {
					t.Fatal("it should be refused")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			v := s.Check(json.RawMessage(tt.value))
			switch {
			case v == nil && tt.mismatch != "":
				t.Fatalf("it fits, want %s", tt.mismatch)
			case v != nil && (v.Mismatch != tt.mismatch || !strings.Contains(v.Message, tt.message)):
				t.Fatalf("got %s: %.300s, want %q: %q", v.Mismatch, v.Message, tt.mismatch, tt.message)
			case v != nil:
				if text, err := json.Marshal(v); err != nil || len(text) > 40_000 {
					t.Errorf("a violation of %d bytes, %v", len(text), err)
				}
			}
		})
	}
}

// A check with many steps ends with its context. Another check with the same schema does not. A check with few steps
// ignores the context.
func TestChecksEnd(t *testing.T) {
	t.Parallel()
	s, err := Compile(json.RawMessage(`{"items":{"properties":{"a":{"minimum":0}}},"contains":{"required":["a"]}}`))
	if err != nil {
		t.Fatal(err)
	}
	long, short := json.RawMessage(list(30_000, `{"a":1}`)), json.RawMessage(`[{"a":1}]`)
	over, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the call is over")
	cancel(why)
	for range 3 {
		if v, err := s.CheckUntil(over, long); v != nil || !errors.Is(err, why) {
			t.Errorf("a check that should have ended: %v, %v", v, err)
		}
		if v, err := s.CheckUntil(t.Context(), long); v != nil || err != nil {
			t.Errorf("a check beside it: %v, %v", v, err)
		}
		if v, err := s.CheckUntil(over, short); v != nil || err != nil {
			t.Errorf("a short check: %v, %v", v, err)
		}
	}
	broken := json.RawMessage(strings.Replace(string(long), "1", "-1", 1))
	if v, err := s.CheckUntil(t.Context(), broken); err != nil || v == nil || v.Metadata["value_path"] != "/0/a" {
		t.Errorf("a broken value: %+v, %v", v, err)
	}
}

// Values have the same identity if and only if JSON Schema considers them equal.
func TestIdentities(t *testing.T) {
	t.Parallel()
	classes := [][]string{{`null`}, {`true`}, {`false`}, {`0`, `-0`, `0.000`, `0e9`},
		{`1`, `1.0`, `10e-1`, `0.1e1`, `100e-2`}, {`-1`, `-1.00`}, {`10`, `1e1`, `1E+1`}, {`0.1`, `1e-1`}, {`1e400`},
		{`12345678901234567890`}, {`12345678901234567891`},
		{`""`}, {`"1"`}, {`"a"`, `"\u0061"`}, {`[]`}, {`{}`}, {`[[]]`}, {`[[],[]]`}, {`[[[]]]`}, {`[[],[[]]]`},
		{`[[[]],[]]`}, {`["a","b"]`}, {`["ab"]`}, {`["a\"1:b"]`}, {`{"a":1,"b":[2]}`, `{"b":[2.0],"a":1e0}`},
		{`{"a":{"b":1}}`}, {`[["a"],"b"]`}}
	seen := map[string]int{}
	for i, class := range classes {
		for _, text := range class {
			v, err := Decode(json.RawMessage(text))
			if err != nil {
				t.Fatal(err)
			}
			id, _ := identity(nil, v, 1000)
			if j, there := seen[string(id)]; there && j != i {
				t.Errorf("%s and %s are one: %s", text, classes[j], id)
			}
			seen[string(id)] = i
			for most := range len(id) {
				if cut, fits := identity(nil, v, most); fits || len(cut) > most+30 {
					t.Errorf("%s fits %d bytes as %s", text, most, cut)
				}
			}
		}
	}
	if len(seen) != len(classes) {
		t.Errorf("%d identities of %d values", len(seen), len(classes))
	}
}

// The walk that counts the steps of a check agrees with the check: it never counts less than the parts of the value,
// and a schema without nested schemas costs nothing below.
func TestWalker(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		deliverable, value string
		steps              int
	}{
		{`{"type":"object"}`, `{"a":[1,2,3]}`, 1},
		{`{"items":{"type":"number"}}`, `[1,2,3]`, 4},
		{`{"prefixItems":[true,{"type":"number"}],"items":{"type":"number"}}`, `[1,2,3]`, 4},
		{`{"properties":{"a":{"items":{"required":["x","y"]}}}}`, `{"a":[1,2],"b":[1,2]}`, 9},
		{`{"allOf":[{"type":"number"},{"anyOf":[{"minimum":1},{"enum":[1,2,3]}]}]}`, `5`, 8},
		{`{"additionalProperties":{"type":"number"},"properties":{"a":true}}`, `{"a":1,"b":2,"c":3}`, 5},
		{`{"patternProperties":{"^a":{}}}`, `{"a":1,"b":2}`, 3},
		{`{"$defs":{"n":{"items":{"$ref":"#/$defs/n"}}},"$ref":"#/$defs/n"}`, `[[],[[]]]`, 8},
	} {
		s, err := Compile(json.RawMessage(tt.deliverable))
		if err != nil {
			t.Fatal(err)
		}
		v, err := Decode(json.RawMessage(tt.value))
		if err != nil {
			t.Fatal(err)
		}
		const budget = 1000
		w := walker{schema: s, left: budget}
		w.defs, _ = s.root["$defs"].(map[string]any)
		if !w.visit(s.root, v, 0) || budget-w.left != tt.steps {
			t.Errorf("%s of %s: %d steps, want %d", tt.value, tt.deliverable, budget-w.left, tt.steps)
		}
	}
}
