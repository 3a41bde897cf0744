package contract

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Each constraint accepts valid values, and its violations have exact texts.
func TestCheck(t *testing.T) {
	t.Parallel()
	movies := `{"type":"object","required":["status","movies"],"constraints":{"properties":{"movies":{"type":"array","min_items":1}}}}`
	tests := []struct {
		name, deliverable, value string
		want                     string // metadata, "" when the value fits
	}{
		{"no deliverable", ``, `5`, ``},
		{"null deliverable", `null`, `5`, ``},
		{"empty deliverable", `{}`, `5`, ``},
		{"object fits", `{"type":"object"}`, `{}`, ``},
		{"object with no required keys", `{"type":"object","required":[]}`, `[]`,
			`{"actual_keys":[],"actual_shape":"array","constraint_path":"deliverable.type","expected_keys":[],"expected_shape":"object","mismatch":"type_mismatch","value_path":""}`},
		{"type in any letter case", `{"type":" Object "}`, `{}`, ``},
		{"array for object", `{"type":"object","required":["a"]}`, `[1]`,
			`{"actual_keys":[],"actual_shape":"array","constraint_path":"deliverable.type","expected_keys":["a"],"expected_shape":"object","mismatch":"type_mismatch","value_path":""}`},
		{"null for object", `{"type":"object"}`, `null`,
			`{"actual_keys":[],"actual_shape":"null","constraint_path":"deliverable.type","expected_keys":[],"expected_shape":"object","mismatch":"type_mismatch","value_path":""}`},
		{"string", `{"type":"string"}`, `"x"`, ``},
		{"integer takes 2.0", `{"type":"integer"}`, `2.0`, ``},
		{"integer refuses 2.5", `{"type":"integer"}`, `2.5`,
			`{"actual_keys":[],"actual_shape":"number","constraint_path":"deliverable.type","expected_keys":[],"expected_shape":"integer","mismatch":"type_mismatch","value_path":""}`},
		{"two types", `{"type":["string","null"]}`, `5`,
			`{"actual_keys":[],"actual_shape":"number","constraint_path":"deliverable.type","expected_keys":[],"expected_shape":"string or null","mismatch":"type_mismatch","value_path":""}`},
		{"missing key", `{"type":"object","required":["b","a"]}`, `{"a":1,"z":2}`,
			`{"actual_keys":["a","z"],"actual_shape":"object","constraint_path":"deliverable.required","expected_keys":["b","a"],"expected_shape":"object","mismatch":"missing_required_key","missing_keys":["b"],"value_path":""}`},
		{"a null member is there", `{"type":"object","required":["a"]}`, `{"a":null}`, ``},
		{"min_items 0", `{"type":"array","min_items":0}`, `[]`, ``},
		{"min_items met", `{"type":"array","min_items":2}`, `[1,2]`, ``},
		{"min_items short", `{"type":"array","min_items":2}`, `[1]`,
			`{"actual_items":1,"actual_keys":[],"actual_shape":"array","constraint_path":"deliverable.min_items","expected_keys":[],"expected_min_items":2,"expected_shape":"array","mismatch":"min_items_violation","value_path":""}`},
		{"min_items without a type", `{"min_items":1}`, `{}`,
			`{"actual_items":null,"actual_keys":[],"actual_shape":"object","constraint_path":"deliverable.min_items","expected_keys":[],"expected_min_items":1,"expected_shape":"array","mismatch":"min_items_violation","value_path":""}`},
		{"constraints.min_items", `{"type":"array","constraints":{"min_items":1}}`, `[]`,
			`{"actual_items":0,"actual_keys":[],"actual_shape":"array","constraint_path":"deliverable.constraints.min_items","expected_keys":[],"expected_min_items":1,"expected_shape":"array","mismatch":"min_items_violation","value_path":""}`},
		{"property fits", movies, `{"status":"ok","movies":["A"]}`, ``},
		{"property short", movies, `{"status":"success_no_parse","movies":[]}`,
			`{"actual_items":0,"actual_keys":[],"actual_shape":"array","constraint_path":"deliverable.constraints.properties.movies.min_items","expected_keys":["movies"],"expected_min_items":1,"expected_shape":"array","mismatch":"min_items_violation","value_path":"/movies"}`},
		{"property of another type", movies, `{"status":"ok","movies":"none"}`,
			`{"actual_keys":[],"actual_shape":"string","constraint_path":"deliverable.constraints.properties.movies.type","expected_keys":["movies"],"expected_shape":"array","mismatch":"property_type_mismatch","value_path":"/movies"}`},
		{"property absent and not required",
			`{"type":"object","constraints":{"properties":{"movies":{"min_items":1}}}}`, `{}`, ``},
		{"property without a type", `{"type":"object","constraints":{"properties":{"movies":{"min_items":1}}}}`,
			`{"movies":"A"}`,
			`{"actual_items":null,"actual_keys":[],"actual_shape":"string","constraint_path":"deliverable.constraints.properties.movies.min_items","expected_keys":["movies"],"expected_min_items":1,"expected_shape":"array","mismatch":"min_items_violation","value_path":"/movies"}`},
		{"required comes before constraints", movies, `{"movies":[]}`,
			`{"actual_keys":["movies"],"actual_shape":"object","constraint_path":"deliverable.required","expected_keys":["status","movies"],"expected_shape":"object","mismatch":"missing_required_key","missing_keys":["status"],"value_path":""}`},
		{"both forms at once", `{"type":"object","properties":{"movies":{"type":"array","items":{"type":"string"}}},"constraints":{"properties":{"movies":{"min_items":1}}}}`, `{"movies":["a",2]}`,
			`{"actual_keys":[],"actual_shape":"number","constraint_path":"deliverable.properties.movies.items.type","expected_keys":["1"],"expected_shape":"string","mismatch":"property_type_mismatch","value_path":"/movies/1"}`},
		{"schema: minimum", `{"type":"object","properties":{"n":{"type":"number","minimum":0}}}`, `{"n":-1}`,
			`{"actual":"-1","actual_keys":[],"actual_shape":"number","constraint_path":"deliverable.properties.n.minimum","expected":"minimum 0","expected_keys":[],"expected_shape":"number","mismatch":"schema_violation","value_path":"/n"}`},
		{"schema: big integers are exact", `{"properties":{"n":{"const":9007199254740993}}}`, `{"n":9007199254740992}`,
			`{"actual":"9007199254740992","actual_keys":[],"actual_shape":"number","constraint_path":"deliverable.properties.n.const","expected":"const 9007199254740993","expected_keys":[],"expected_shape":"any","mismatch":"schema_violation","value_path":"/n"}`},
		{"schema: enum", `{"properties":{"k":{"enum":["a","b"]}}}`, `{"k":"c"}`,
			`{"actual":"\"c\"","actual_keys":[],"actual_shape":"string","constraint_path":"deliverable.properties.k.enum","expected":"enum [\"a\",\"b\"]","expected_keys":[],"expected_shape":"any","mismatch":"schema_violation","value_path":"/k"}`},
		{"schema: anyOf", `{"anyOf":[{"type":"string"},{"type":"number"}]}`, `[]`,
			`{"actual":"[]","actual_keys":[],"actual_shape":"array","constraint_path":"deliverable.anyOf","expected_keys":[],"expected_shape":"any","mismatch":"schema_violation","value_path":""}`},
		{"schema: additional property", `{"properties":{"a":true},"additionalProperties":false}`, `{"a":1,"c":2,"b":2}`,
			`{"actual_keys":["a","b","c"],"actual_shape":"object","constraint_path":"deliverable.additionalProperties","expected":"additionalProperties false","expected_keys":[],"expected_shape":"any","mismatch":"schema_violation","value_path":""}`},
		{"schema: additional properties by schema",
			`{"properties":{"a":true},"additionalProperties":{"type":"string"}}`, `{"a":1,"z":2,"c":3}`,
			`{"actual_keys":[],"actual_shape":"number","constraint_path":"deliverable.additionalProperties.type","expected_keys":["c"],"expected_shape":"string","mismatch":"property_type_mismatch","value_path":"/c"}`},
		{"schema: a forbidden member", `{"properties":{"a":false}}`, `{"a":1}`,
			`{"actual":"1","actual_keys":[],"actual_shape":"number","constraint_path":"deliverable.properties.a","expected":"a false","expected_keys":[],"expected_shape":"any","mismatch":"schema_violation","value_path":"/a"}`},
		{"schema: prefixItems", `{"prefixItems":[{"type":"string"}],"items":{"type":"number"}}`, `["a",1,"b"]`,
			`{"actual_keys":[],"actual_shape":"string","constraint_path":"deliverable.items.type","expected_keys":["2"],"expected_shape":"number","mismatch":"property_type_mismatch","value_path":"/2"}`},
		{"schema: unevaluated", `{"allOf":[{"properties":{"a":true}}],"unevaluatedProperties":false}`, `{"a":1}`, ``},
		{"schema: min_items at depth", `{"properties":{"a":{"properties":{"b":{"type":"array","min_items":1}}}}}`,
			`{"a":{"b":[]}}`,
			`{"actual_items":0,"actual_keys":[],"actual_shape":"array","constraint_path":"deliverable.properties.a.properties.b.min_items","expected_keys":["b"],"expected_min_items":1,"expected_shape":"array","mismatch":"min_items_violation","value_path":"/a/b"}`},
		{"schema: $ref", `{"$defs":{"s/1":{"type":"string"}},"items":{"$ref":"#/$defs/s~11"}}`, `["a",1]`,
			`{"actual_keys":[],"actual_shape":"number","constraint_path":"deliverable.$defs.s/1.type","expected_keys":["1"],"expected_shape":"string","mismatch":"property_type_mismatch","value_path":"/1"}`},
		{"schema: $anchor", `{"$defs":{"s":{"$anchor":"str","type":"string"}},"items":{"$ref":"#str"}}`, `["a"]`, ``},
		{"schema: a tree fits", tree, `{"v":1,"left":{"v":2},"right":{"v":3,"left":{"v":4}}}`, ``},
		{"schema: a tree's leaf", tree, `{"v":1,"left":{"v":2},"right":{"v":3,"left":{"v":"x"}}}`,
			`{"actual_keys":[],"actual_shape":"string","constraint_path":"deliverable.properties.v.type","expected_keys":["v"],"expected_shape":"number","mismatch":"property_type_mismatch","value_path":"/right/left/v"}`},
		{"schema: odd keys", `{"properties":{"a/b~c %":{"type":"string"}}}`, `{"a/b~c %":1}`,
			`{"actual_keys":[],"actual_shape":"number","constraint_path":"deliverable.properties.a/b~c %.type","expected_keys":["a/b~c %"],"expected_shape":"string","mismatch":"property_type_mismatch","value_path":"/a~1b~0c %"}`},
		{"a number beyond reckoning", `{"type":"number","maximum":10}`, `1e999999999`,
			`{"actual":"1e400","actual_keys":[],"actual_shape":"number","constraint_path":"deliverable.maximum","expected":"maximum 10","expected_keys":[],"expected_shape":"number","mismatch":"schema_violation","value_path":""}`},
		{"annotations and acceptance do not bite",
			`{"type":"object","format":"email","description":"x","acceptance":[{"assert":"moon is cheese"}]}`, `{}`,
			``},
		// No word decides.
		{"a status is only a word", `{"type":"object","required":["status"]}`,
			`{"status":"success_no_parse","movies":[]}`, ``},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := Compile(json.RawMessage(tt.deliverable))
			if err != nil {
				t.Fatal(err)
			}
			for range 20 { // the same bytes each time
				got := ""
				if v := s.Check(json.RawMessage(tt.value)); v != nil {
					if v.Message == "" || v.Metadata["mismatch"] != v.Mismatch {
						t.Fatalf("violation without a message, or of two minds: %+v", v)
					}
					b, err := json.Marshal(v.Metadata)
					if err != nil {
						t.Fatal(err)
					}
					got = string(b)
				}
				if got != tt.want {
					t.Fatalf("got  %s\nwant %s", got, tt.want)
				}
			}
		})
	}
}

const tree = `{"type":"object","required":["v"],"properties":{"v":{"type":"number"},"left":{"$ref":"#"},"right":{"$ref":"#"}}}`

func TestMessages(t *testing.T) {
	t.Parallel()
	tests := []struct{ deliverable, value, want string }{
		{`{"type":"object"}`, `[]`, `the value must be object, got array (deliverable.type)`},
		{`{"required":["a","b"]}`, `{}`, `the value lacks required keys: a, b (deliverable.required)`},
		{`{"constraints":{"properties":{"movies":{"type":"array","min_items":1}}}}`, `{"movies":[]}`,
			`/movies must have at least 1 items, has 0 (deliverable.constraints.properties.movies.min_items)`},
		{`{"properties":{"n":{"minimum":0}}}`, `{"n":-1}`,
			`/n breaks minimum 0, got -1 (deliverable.properties.n.minimum)`},
		{`{"not":{"type":"string"}}`, `"x"`, `the value fits what it must not fit, got "x" (deliverable.not)`},
	}
	for _, tt := range tests {
		s, err := Compile(json.RawMessage(tt.deliverable))
		if err != nil {
			t.Fatal(err)
		}
		if v := s.Check(json.RawMessage(tt.value)); v == nil || v.Message != tt.want {
			t.Errorf("%s of %s:\ngot  %+v\nwant %s", tt.value, tt.deliverable, v, tt.want)
		}
	}
}

// Compile refuses an invalid constraint with its pointer. compileTolerant leaves it out.
func TestSenselessContracts(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, deliverable, pointer string
		fatal                      bool // refused by compileTolerant, too
		fits, fails                string
	}{
		{"negative min_items", `{"type":"array","min_items":-1}`, "/min_items", false, `[]`, `{}`},
		{"min_items that is no number", `{"type":"array","min_items":"many"}`, "/min_items", false, `[]`, `{}`},
		{"min_items in text", `{"type":"array","min_items":"2"}`, "/min_items", false, `[1,2]`, `[1]`},
		{"fractional min_items", `{"constraints":{"properties":{"m":{"type":"array","min_items":1.5}}}}`,
			"/constraints/properties/m/min_items", false, `{"m":[]}`, `{"m":1}`},
		{"min_items of an object", `{"type":"object","min_items":1}`, "/min_items", false, `{}`, `[]`},
		{"constraints.min_items of an object", `{"type":"object","constraints":{"min_items":1}}`,
			"/constraints/min_items", false, `{}`, `[]`},
		{"unknown type", `{"type":"hash","required":["a"]}`, "/type", false, `{"a":1}`, `{}`},
		{"type that is no text", `{"type":5}`, "/type", false, `5`, ``},
		{"required that is no list", `{"type":"object","required":"a"}`, "/required", false, `{}`, `[]`},
		{"required with a number", `{"type":"object","required":["a",5]}`, "/required", false, `{"a":1}`, `{}`},
		{"required twice", `{"required":["a","a"]}`, "/required", false, `{"a":1}`, `{}`},
		{"prose", `"a list of movies"`, "", false, `5`, ``},
		{"constraints that are prose", `{"type":"object","constraints":"at least one"}`, "/constraints", false, `{}`,
			`[]`},
		{"bounds that cross", `{"type":"array","minItems":3,"maxItems":2}`, "/minItems", false, `[]`, `[1,2,3]`},
		{"bad pattern", `{"type":"string","pattern":"("}`, "/pattern", false, `"x"`, `5`},
		{"empty enum", `{"enum":[]}`, "/enum", false, `5`, ``},
		{"multiple of nothing", `{"multipleOf":0}`, "/multipleOf", false, `5`, ``},
		{"property that is no schema", `{"type":"object","properties":{"a":5}}`, "/properties/a", false, `{"a":1}`,
			`[]`},
		{"another draft", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}`, "/$schema", false,
			`{}`, `[]`},
		{"number out of range", `{"maximum":1e9999}`, "/maximum", false, `5`, ``},
		{"file", `{"$ref":"file:///etc/passwd"}`, "/$ref", true, ``, ``},
		{"http", `{"properties":{"a":{"$ref":"https://example.com/s.json"}}}`, "/properties/a/$ref", true, ``, ``},
		{"not JSON", `{`, "", true, ``, ``},
		{"too deep", strings.Repeat(`{"not":`, 200) + `{}` + strings.Repeat(`}`, 200), strings.Repeat("/not", 129),
			true, ``, ``},
		{"too many schemas", `{"allOf":[` + strings.Repeat(`{},`, maxNodes) + `{}]}`, "/allOf/9999", true, ``, ``},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Compile(json.RawMessage(tt.deliverable))
			var invalid *InvalidError
			if !errors.As(err, &invalid) || invalid.Pointer != tt.pointer || invalid.Reason == "" {
				t.Fatalf("Compile: got %v, want an InvalidError at %q", err, tt.pointer)
			}
			s, reports, err := compileTolerant(json.RawMessage(tt.deliverable))
			if tt.fatal {
				if !errors.As(err, &invalid) {
					t.Fatalf("CompileTolerant: got %v, want an InvalidError", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if tt.name != "min_items in text" && !strings.HasPrefix(tt.name, "required ") && len(reports) == 0 {
				t.Error("what was left out is not reported")
			}
			if v := s.Check(json.RawMessage(tt.fits)); v != nil {
				t.Errorf("%s should fit: %s", tt.fits, v.Message)
			}
			if tt.fails != "" && s.Check(json.RawMessage(tt.fails)) == nil {
				t.Errorf("%s should fail: what makes sense must still hold", tt.fails)
			}
		})
	}
}

func TestReferences(t *testing.T) {
	t.Parallel()
	doubling := `{"$defs":{"d0":{"type":"string"}`
	for i := 1; i <= 20; i++ {
		doubling += fmt.Sprintf(`,"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i, i-1, i-1)
	}
	doubling += `},"$ref":"#/$defs/d20"}`
	tests := []struct{ name, deliverable, reason string }{
		{"doubling", doubling, "expands to more than 10000"},
		{"loop in place", `{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"}`, "loop"},
		{"points nowhere", `{"$ref":"#/$defs/none"}`, "points at no schema"},
		{"points at no schema", `{"required":["a"],"items":{"$ref":"#/required"}}`, "points at no schema"},
		{"two ways into one value", `{"properties":{"x":{"allOf":[{"$ref":"#"},{"$ref":"#"}]}}}`,
			"recurses in two ways"},
		{"alternatives with the same keys",
			`{"anyOf":[{"properties":{"op":{"const":"+"},"l":{"$ref":"#"}}},{"properties":{"op":{"const":"*"},"l":{"$ref":"#"}}}]}`, "recurses in two ways"},
		{"recursion of two strides", `{"properties":{"x":{"$ref":"#","properties":{"x":{"$ref":"#"}}}}}`,
			"recurses in two ways"},
		{"list", `{"type":"object","properties":{"next":{"anyOf":[{"type":"null"},{"$ref":"#"}]}}}`, ""},
		{"nested lists", `{"$defs":{"n":{"anyOf":[{"type":"number"},{"type":"array","items":{"$ref":"#/$defs/n"}}]}},"$ref":"#/$defs/n"}`, ""},
		{"dynamic", `{"$dynamicAnchor":"node","type":"object","properties":{"kids":{"type":"array","items":{"$dynamicRef":"#node"}}}}`, ""},
	}
	for _, tt := range tests {
		_, err := Compile(json.RawMessage(tt.deliverable))
		if tt.reason == "" && err != nil || tt.reason != "" && (err == nil ||
			!strings.Contains(err.Error(), tt.reason)) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.reason)
		}
		if _, _, err := compileTolerant(json.RawMessage(
			tt.deliverable)); err == nil || !strings.Contains(err.Error(),
			"not allowed in a contract that a program writes") {
			t.Errorf("%s: a program's $ref must be refused, got %v", tt.name, err)
		}
	}
	deep := `{"kids":[` + strings.Repeat(`{"kids":[`, 2000) + strings.Repeat(`]}`, 2000) + `]}`
	s, err := Compile(json.RawMessage(tests[len(tests)-1].deliverable))
	if err != nil {
		t.Fatal(err)
	}
	if v := s.Check(json.RawMessage(deep)); v != nil {
		t.Errorf("a deep tree should fit: %s", v.Message)
	}
}

// A check of a huge value that violates the contract in every element stops at the first one.
func TestLargeValues(t *testing.T) {
	t.Parallel()
	list := json.RawMessage("[" + strings.Repeat("1,", 300_000) + "1]")
	s, err := Compile(json.RawMessage(`{"type":"array","items":{"type":"string"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if v := s.Check(list); v == nil || v.Metadata["value_path"] != "/0" {
		t.Errorf("got %+v, want a violation at /0", v)
	}
	s, err = Compile(json.RawMessage(`{"contains":{"type":"string"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if v := s.Check(list); v == nil || !strings.Contains(v.Message, "at most") {
		t.Errorf("got %+v, want a refusal to look at so many values", v)
	}
}

func TestCheckCall(t *testing.T) {
	t.Parallel()
	s, err := Compile(json.RawMessage(`{"type":"object"}`))
	if err != nil {
		t.Fatal(err)
	}
	null, five := []json.RawMessage{json.RawMessage("null")}, []json.RawMessage{json.RawMessage("5")}
	tests := []struct {
		name, value string
		args        []json.RawMessage
		kwargs      string
		want        string
	}{
		{"null in, nothing out", `{}`, null, `{}`, MismatchNilInput},
		{"null in, empty list out", ` [ ] `, null, ``, MismatchNilInput},
		{"null in, something out", `{"a":1}`, null, `{}`, ""},
		{"keyword arguments", `{}`, null, `{"a":1}`, ""},
		{"something in", `{}`, five, `{}`, ""},
		{"no arguments", `{}`, nil, `{}`, ""},
		{"an ordinary violation", `5`, null, `{}`, MismatchType},
	}
	for _, tt := range tests {
		got := ""
		if v, _ := s.CheckCall(t.Context(), json.RawMessage(tt.value), tt.args, json.RawMessage(tt.kwargs)); v != nil {
			got = v.Mismatch
		}
		if got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
	if v, _ := (*Schema)(nil).CheckCall(t.Context(), json.RawMessage(`{}`), null, nil); v != nil {
		t.Errorf("without a deliverable nothing is checked, got %+v", v)
	}
}

// Key order and white space do not matter; every other difference does.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	k := func(purpose, deliverable string) *agent.Contract {
		return &agent.Contract{Purpose: purpose, Deliverable: json.RawMessage(deliverable)}
	}
	same := [][2]*agent.Contract{
		{nil, {}},
		{k("", "null"), {}},
		{k("p", `{"type":"object","required":["a"]}`), k("p", " { \"required\" : [\"a\"],\n\"type\":\"object\"} ")},
		{k("p", `{"n":1.0}`), k("p", `{"n":1}`)},
	}
	for i, pair := range same {
		if a, b := Fingerprint(pair[0]), Fingerprint(pair[1]); a != b {
			t.Errorf("pair %d: %s and %s should be equal", i, a, b)
		}
	}
	different := []*agent.Contract{nil, k("p", ``), k("q", ``), k("", `{"type":"object"}`), k("", `{"type":"array"}`),
		k("", `{"required":["a","b"]}`), k("", `{"required":["b","a"]}`),
		k("", `{"n":9007199254740993}`), k("", `{"n":9007199254740992}`), k("", `{"n":"1"}`), k("", `{"s":"\ud800"}`),
		k("", `{"n":1e999}`), k("", `{broken`),
		{Acceptance: json.RawMessage(`[{"assert":"x"}]`)}, {FailurePolicy: json.RawMessage(`[{"assert":"x"}]`)},
		{Signature: json.RawMessage(`{}`)}}
	seen := map[string]int{}
	for i, c := range different {
		f := Fingerprint(c)
		if j, ok := seen[f]; ok {
			t.Errorf("contracts %d and %d share %s", i, j, f)
		}
		seen[f] = i
	}
	if Fingerprint(nil) != "none" || !strings.HasPrefix(Fingerprint(different[1]), "sha256:") {
		t.Error("fingerprints must be none or sha256:...")
	}
}

func TestCheckedFingerprint(t *testing.T) {
	t.Parallel()
	k := func(purpose, deliverable, signature string) *agent.Contract {
		return &agent.Contract{Purpose: purpose, Deliverable: json.RawMessage(deliverable),
			Signature: json.RawMessage(signature)}
	}
	base := CheckedFingerprint(k("p", `{"type":"object","properties":{"title":{"type":"string"}}}`, ``))
	for _, c := range []*agent.Contract{
		k("reworded", `{"type":"object","properties":{"title":{"type":"string"}}}`, ``),
		k("p", `{"description":"reworded","properties":{"title":{"description":"x","type":"string"}},"type":"object"}`,
			``),
		{Deliverable: json.RawMessage(`{"type":"object","properties":{"title":{"type":"string"}}}`),
			Acceptance: json.RawMessage(`["x"]`), FailurePolicy: json.RawMessage(`{}`)},
	} {
		if got := CheckedFingerprint(c); got != base {
			t.Errorf("%+v: prose must not count", c)
		}
	}
	same := func(a, b string) {
		if CheckedFingerprint(k("", a, "")) != CheckedFingerprint(k("", b, "")) {
			t.Errorf("%s and %s check the same", a, b)
		}
		if WrittenFingerprint(k("", a, "")) == WrittenFingerprint(k("", b, "")) {
			t.Errorf("%s and %s were the same to earlier versions", a, b)
		}
	}
	same(`{"type":"Object"}`, `{"type":"object"}`)
	same(`{"type":["object"]}`, `{"type":"object"}`)
	same(`{"items":{"type":[" NULL","string","string"]}}`, `{"items":{"type":["string","null"]}}`)
	same(`{"required":["b","a","b"]}`, `{"required":["a","b"]}`)
	same(`{"constraints":{"properties":{"a":{"type":"Array"}}}}`,
		`{"constraints":{"properties":{"a":{"type":"array"}}}}`)
	same(`{"properties":{"required":{"required":["b","a"]}}}`, `{"properties":{"required":{"required":["a","b"]}}}`)
	same(`{"dependentRequired":{"a":["c","b"]}}`, `{"dependentRequired":{"a":["b","c"]}}`)
	for _, c := range []string{`{"enum":["b","a"]}`, `{"const":{"required":["b","a"],"type":"Object"}}`,
		`{"type":"thing"}`, `{"required":["b",1]}`, `{"default":["b","a"],"type":"string"}`} {
		if checked := k("", c, ""); strings.Contains(c,
			"default") != (CheckedFingerprint(checked) != Fingerprint(checked)) {
			t.Errorf("%s is written in another way", c)
		}
	}
	for _, c := range []*agent.Contract{
		k("p", `{"type":"object","properties":{}}`, ``),
		k("p", `{"type":"object","properties":{"title":{"type":"string"}}}`, `{"inputs":[]}`),
		nil,
	} {
		if got := CheckedFingerprint(c); got == base {
			t.Errorf("%+v: a checked part changed", c)
		}
	}
	for _, c := range []*agent.Contract{nil, {}, k("p", ``, ``), k("p", `{}`, ``),
		k("p", `{"description":"x"}`, `null`)} {
		if got := CheckedFingerprint(c); got != "none" {
			t.Errorf("%+v: got %s, want none", c, got)
		}
	}
}

func TestMerge(t *testing.T) {
	t.Parallel()
	p := func(s string) *agent.Contract { return &agent.Contract{Purpose: s} }
	d := func(s string) *agent.Contract { return &agent.Contract{Deliverable: json.RawMessage(s)} }
	tests := []struct {
		name                        string
		role, method, session, call *agent.Contract
		want                        *agent.Contract
		source                      string
	}{
		{"nothing", nil, nil, nil, nil, nil, "none"},
		{"empty layers", p(""), nil, d("null"), d(""), nil, "none"},
		{"registry's role", p("a"), nil, nil, nil, p("a"), "fields"},
		{"registry's method over its role", p("a"), p("b"), nil, nil, p("b"), "fields"},
		{"session alone", nil, nil, p("c"), nil, p("c"), "hash"},
		{"call alone", nil, nil, nil, d("{}"), d("{}"), "hash"},
		{"call hides the registry wholly", p("a"), p("b"), p("c"), p("d"), p("d"), "hash"},
		{"keys of call and registry", p("a"), nil, nil, d(`{"type":"object"}`),
			&agent.Contract{Purpose: "a", Deliverable: json.RawMessage(`{"type":"object"}`)}, "merged"},
		{"keys of call and session", nil, nil, p("c"), d(`{}`), &agent.Contract{Purpose: "c",
			Deliverable: json.RawMessage(`{}`)}, "merged"},
		{"null leaves the layer below in force", d(`{"a":1}`), nil, nil, d(`null`), d(`{"a":1}`), "fields"},
	}
	for _, tt := range tests {
		got, source := Merge(Layers{Role: tt.role, Method: tt.method, Session: tt.session, Call: tt.call})
		if diff := cmp.Diff(tt.want, got); diff != "" || source != tt.source {
			t.Errorf("%s: source %s, want %s; difference %s", tt.name, source, tt.source, diff)
		}
	}
}

func TestParseSignature(t *testing.T) {
	t.Parallel()
	good := `{"instructions":"Answer.","inputs":[{"name":"question"},{"name":"history","type":"history"}],"outputs":[{"name":"answer"},{"name":"score","type":"number"}]}`
	s, err := ParseSignature(json.RawMessage(good))
	want := Signature{"Answer.", []Field{{Name: "question", Type: "any"}, {Name: "history", Type: "history"}},
		[]Field{{Name: "answer", Type: "string"}, {Name: "score", Type: "number"}}}
	if diff := cmp.Diff(want, s); err != nil || diff != "" || s.HistoryField() != "history" {
		t.Errorf("got error %v, difference %s", err, diff)
	}
	nested, err := ParseSignature(json.RawMessage(
		`{"inputs":[{"name":"q","schema":null}],"outputs":[{"name":"mood","schema":{"enum":["good", "bad"]}},{"name":"n","schema":{"type":"integer","minimum":1}},{"name":"m","type":"string","schema":{"enum":["a"]}}]}`))
	if got := nested.Outputs; err != nil || nested.Inputs[0].Schema != nil || got[0].Type != TypeAny ||
		string(got[0].Schema) != `{"enum":["good","bad"]}` || got[1].Type != TypeInteger || got[2].Type != TypeString {
		t.Errorf("schemas: %v, %+v", err, nested)
	}
	for value, holds := range map[string]bool{`"good"`: true, `"ugly"`: false, `5`: false} {
		if broken := nested.Outputs[0].Check(json.RawMessage(value)); (broken == nil) != holds {
			t.Errorf("%s: %+v, want it to hold: %v", value, broken, holds)
		}
	}
	for bad, pointer := range map[string]string{
		`{"inputs":[{"name":"q"}],"outputs":[{"name":"a","schema":5}]}`:                                               "/outputs/0/schema",
		`{"inputs":[{"name":"q"}],"outputs":[{"name":"a","schema":{"properties":{"x":{"type":"text"}}}}]}`:            "/outputs/0/schema/properties/x/type",
		`{"inputs":[{"name":"q"},{"name":"h","type":"history","schema":{"type":"object"}}],"outputs":[{"name":"a"}]}`: "/inputs/1/schema",
		`{"inputs":[{"name":"q"}],"outputs":[{"name":"a","schema":{"description":"` + strings.Repeat("x",
			maxFieldSchema) + `"}}]}`: "",
		`5`: "", `{"x":1}`: "", `{} {}`: "",
		`{"inputs":[],"outputs":[{"name":"a"}]}`:                                                                         "/inputs",
		`{"inputs":[{"name":"h","type":"history"}],"outputs":[{"name":"a"}]}`:                                            "/inputs",
		`{"inputs":[{"name":"q"},{"name":"h","type":"history"},{"name":"i","type":"history"}],"outputs":[{"name":"a"}]}`: "/inputs",
		`{"inputs":[{"name":"q"}]}`:                                           "/outputs",
		`{"inputs":[{"name":"q"}],"outputs":[{"name":"Q"}]}`:                  "/outputs/0/name",
		`{"inputs":[{"name":"q"}],"outputs":[{"name":"a","type":"history"}]}`: "/outputs/0/type",
		`{"inputs":[{"name":"q: r"}],"outputs":[{"name":"a"}]}`:               "/inputs/0/name",
		`{"inputs":[{"name":" "}],"outputs":[{"name":"a"}]}`:                  "/inputs/0/name",
		`{"inputs":[` + strings.Repeat(`{"name":"q"},`, maxFields) +
			`{"name":"q"}],"outputs":[{"name":"a"}]}`: "/inputs",
	} {
		_, err := ParseSignature(json.RawMessage(bad))
		var e *SignatureError
		if !errors.As(err, &e) || e.Pointer != pointer {
			t.Errorf("%.80s: got %v, want a SignatureError at %q", bad, err, pointer)
		}
	}
}

func TestCache(t *testing.T) {
	c := NewCache(4)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 200 {
				call := &agent.Contract{Deliverable: json.RawMessage(fmt.Sprintf(`{"type":"array","min_items":%d}`,
					i%10))}
				if r := c.Resolve(Layers{Call: call}); r.Source != "hash" || r.Schema.Empty() {
					t.Errorf("got %+v", r)
				}
			}
		})
	}
	wg.Wait()
	if n := len(c.young) + len(c.old); n > 4 {
		t.Errorf("%d contracts kept, want at most 4", n)
	}
	k := &agent.Contract{Purpose: "p", Deliverable: json.RawMessage(`{"type":"hash"}`)}
	r := c.Resolve(Layers{Role: k})
	if len(r.Ignored) != 1 || r.Fingerprint != Fingerprint(k) || r.Checked != CheckedFingerprint(k) {
		t.Errorf("got %+v", r)
	}
	if c.Resolve(Layers{Role: k}) != r {
		t.Error("the same contract must be compiled once")
	}
	if n := testing.AllocsPerRun(100, func() { c.Resolve(Layers{Role: k}) }); n != 0 {
		t.Errorf("a hit allocates %v times", n)
	}
	reworded := &agent.Contract{Purpose: "q", Deliverable: json.RawMessage(` {"type": "hash"} `)}
	if other := c.Resolve(Layers{Session: reworded}); other.Schema != r.Schema || other.Fingerprint == r.Fingerprint ||
		other.Checked != r.Checked {
		t.Error("the same deliverable in another contract must not be compiled again")
	}
	if none := c.Resolve(Layers{}); none.Fingerprint != "none" || !none.Schema.Empty() || none.Source != "none" {
		t.Errorf("got %+v", none)
	}
	for _, unusable := range []string{`{`, `{"$ref":"https://example.com/s"}`, strings.Repeat(`[`, 300)} {
		r := c.Resolve(Layers{Role: &agent.Contract{Deliverable: json.RawMessage(unusable)}})
		if !r.Schema.Empty() || len(r.Ignored) != 1 || r.Checked == "none" {
			t.Errorf("%.40s: got %+v, want nothing checked and a report", unusable, r)
		}
	}
}

func FuzzCompile(f *testing.F) {
	for _, s := range []string{tree,
		`{"type":"array","min_items":1,"constraints":{"properties":{"a":{"min_items":2}}}}`,
		`{"$defs":{"a":{"$anchor":"x"}},"$ref":"#x"}`,
		`{"patternProperties":{"^a":{}},"additionalProperties":{"type":"string"},"unevaluatedItems":false}`,
		`{"dependentSchemas":{"a":{"not":true}},"dependentRequired":{"a":["b"]}}`} {
		f.Add(s, `{"a":[1,{"b":null}]}`)
	}
	f.Fuzz(func(t *testing.T, deliverable, value string) {
		compileAndCheck(t, Compile, deliverable, value)
		compileAndCheck(t, func(r json.RawMessage) (*Schema, error) { s, _, err := compileTolerant(r); return s, err },
			deliverable, value)
		Fingerprint(&agent.Contract{Deliverable: json.RawMessage(deliverable)})
		CheckedFingerprint(&agent.Contract{Deliverable: json.RawMessage(deliverable)})
	})
}

func compileAndCheck(t *testing.T, compile func(json.RawMessage) (*Schema, error), deliverable, value string) {
	s, err := compile(json.RawMessage(deliverable))
	if err != nil {
		var invalid *InvalidError
		if !errors.As(err, &invalid) {
			t.Fatalf("not an InvalidError: %v", err)
		}
		return
	}
	a, b := s.Check(json.RawMessage(value)), s.Check(json.RawMessage(value))
	x, errA := json.Marshal(a)
	y, errB := json.Marshal(b)
	if errA != nil || errB != nil || string(x) != string(y) {
		t.Fatalf("two checks differ:\n%s\n%s", x, y)
	}
}

func BenchmarkCheck(b *testing.B) {
	s, err := Compile(json.RawMessage(
		`{"type":"object","required":["status","movies"],"properties":{"movies":{"type":"array","items":{"type":"object","required":["title"]}}},"constraints":{"properties":{"movies":{"type":"array","min_items":1}}}}`))
	if err != nil {
		b.Fatal(err)
	}
	value := json.RawMessage(
		`{"status":"ok","movies":[{"title":"A","year":1999},{"title":"B","year":2001},{"title":"C","year":2003}]}`)
	b.ReportAllocs()
	for b.Loop() {
		if v := s.Check(value); v != nil {
			b.Fatal(v.Message)
		}
	}
}

func BenchmarkResolveHit(b *testing.B) {
	c := NewCache(0)
	k := &agent.Contract{Purpose: "find movies",
		Deliverable: json.RawMessage(`{"type":"object","required":["status","movies"]}`)}
	b.ReportAllocs()
	for b.Loop() {
		c.Resolve(Layers{Role: k})
	}
}
