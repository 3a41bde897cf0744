package contract

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Every limit of a document: the largest accepted value, and one more.
func TestLimits(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		of   func(n int) string // a deliverable of size n
		most int
		why  string
	}{
		{"bytes", func(n int) string { return `{"const":"` + strings.Repeat("x", n-len(`{"const":""}`)) + `"}` },
			maxBytes, "at most 262144 are read"},
		{"enumerated values", func(n int) string { return `{"enum":` + list(n-1, "1") + `}` }, maxNodes,
			"schemas and enumerated values together are at most 10000"},
		{"digits of a number", func(n int) string { return `{"maximum":` + strings.Repeat("9", n) + `}` }, 64,
			"must be a number"},
		{"min_items", func(n int) string { return fmt.Sprintf(`{"type":"array","min_items":%d}`, n) }, 1e9, ""},
		{"digits of min_items", func(n int) string {
			return `{"type":"array","min_items":1.` + strings.Repeat("0",
				n-2) + `}`
		}, 32, ""},
		{"patterns", func(n int) string { return fmt.Sprintf(`{"pattern":"a{%d}"}`, n) }, 1000, ""},
	}
	for _, tt := range tests {
		if _, err := Compile(json.RawMessage(tt.of(tt.most))); err != nil {
			t.Errorf("%s: %d are refused: %.200v", tt.name, tt.most, err)
		}
		var invalid *InvalidError
		if _, err := Compile(json.RawMessage(tt.of(tt.most +
			1))); !errors.As(err, &invalid) || !strings.Contains(err.Error(), tt.why) {
			t.Errorf("%s: %d are taken: %.200v", tt.name, tt.most+1, err)
		}
	}
	for small, taken := range map[string]bool{"1e-300": true, "1e-301": false, "-1e-300": true, "-1e-301": false,
		"0": true, "1e300": true, "1e400": false, "-1": true} {
		if _, err := Compile(json.RawMessage(`{"maximum":` + small + `}`)); (err == nil) != taken {
			t.Errorf("maximum %s: %v", small, err)
		}
		if _, err := Compile(json.RawMessage(`{"const":[` + small +
			`]}`)); (err == nil) != (taken && !strings.HasSuffix(small, "1e-300")) {
			t.Errorf("const %s: %v", small, err)
		}
	}
	for _, pair := range []string{`"minimum":2,"maximum":2`, `"minLength":0,"maxLength":0`} {
		if _, err := Compile(json.RawMessage(`{` + pair + `}`)); err != nil {
			t.Errorf("%s: %v", pair, err)
		}
	}
	e := expansion{nodes: maxNodes - 1, back: make([][]string, maxBackEdges-1), active: map[string]bool{"loop": true}}
	if err := e.schema(true, nil); err != nil || e.weight != 1 {
		t.Errorf("the last schema: %v, weight %d", err, e.weight)
	}
	if err := e.schema(true, nil); err == nil {
		t.Error("a schema too many is taken")
	}
	if err := e.follow("loop", nil); err != nil {
		t.Errorf("the last recursive reference: %v", err)
	}
	if err := e.follow("loop", nil); err == nil {
		t.Error("a recursive reference too many is taken")
	}
	if _, err := Compile(json.RawMessage(`{"minimum":3,"maximum":2}`)); err == nil {
		t.Error("a range that nothing fits is taken")
	}
}

// Messages contain some keys, some characters, and short lists. Longer ones are cut.
func TestShown(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 60) // 120 bytes
	for in, want := range map[string]string{"": "", "abc": "abc", strings.Repeat("x", 100): strings.Repeat("x", 100),
		strings.Repeat("x", 101): strings.Repeat("x", 100) + "...",
		long:                     long[:100] + "...", "x" + long: "x" + long[:98] + "...", "a\xffb": "a?b",
		strings.Repeat("\xff", 101): "..."} {
		if got := cut(in, 100); got != want {
			t.Errorf("cut(%q) = %q, want %q", in, got, want)
		}
	}
	var names, shown []any
	object := map[string]any{}
	for i := range maxShownKeys + 1 {
		names = append(names, strconv.Itoa(i))
		object[fmt.Sprintf("k%02d", i)] = true
	}
	shown = names[:maxShownKeys]
	if got := keyList(names); len(got) != len(shown) || got[maxShownKeys-1] != shown[maxShownKeys-1] {
		t.Errorf("%d names are shown", len(got))
	}
	if got := keysOf(object); len(got) != maxShownKeys || got[0] != "k00" {
		t.Errorf("%d keys are shown, %v first", len(got), got[0])
	}
	if got := keysOf("text"); got == nil || len(got) != 0 {
		t.Errorf("keys of a text: %v", got)
	}
	ones := func(n int) []any { return slices.Repeat([]any{1}, n) }
	text := []any{strings.Repeat("x", maxShownValue-len(`[""]`))}
	for want, v := range map[string]any{"[1]": ones(1), `["` + text[0].(string) + `"]`: text,
		"[" + strings.Repeat("1,", 19) + "1]": ones(20)} {
		if got := brief(v); got != want {
			t.Errorf("brief: %s, want %s", got, want)
		}
	}
	for _, v := range []any{ones(21), []any{text[0].(string) + "x"}} {
		if got := brief(v); strings.Contains(got, "1,1") || strings.Contains(got, "xx") {
			t.Errorf("brief of what is too long: %s", got)
		}
	}
	list := []any{"a", "b"}
	for token, want := range map[string]any{"0": "a", "1": "b", "2": nil, "-1": nil, "x": nil} {
		if got := valueAt(list, []string{token}); got != want {
			t.Errorf("element %s: %v, want %v", token, got, want)
		}
	}
}

// The failure nearest to the root is reported; among equals, the first by path. At one value, a wrong type comes before
// missing members.
func TestFirstFailure(t *testing.T) {
	t.Parallel()
	l := func(at, keyword string) leaf { return leaf{at: pathOf(at), keyword: pathOf(keyword)} }
	ordered := []leaf{l("", "/type"), l("", "/required"), l("", "/minItems"), l("", "/enum"), l("", "/pattern"),
		l("/2", "/type"), l("/10", "/type"), l("/a", "/type"), l("/b", "/required"),
		l("/2/a", "/type")}
	for i, a := range ordered {
		for j, b := range ordered {
			if got := a.before(b); got != (i < j) {
				t.Errorf("%v before %v: %v", a, b, got)
			}
		}
	}
	if (leaf{}).last() != "" || l("", "/a/b").last() != "b" {
		t.Error("the last keyword of a path")
	}
	if compareTokens("2", "10") >= 0 || compareTokens("10", "2") <= 0 || compareTokens("7", "7") != 0 ||
		compareTokens("10", "a") >= 0 || compareTokens("b", "a") <= 0 {
		t.Error("indexes are not in the order of numbers, or keys not in that of letters")
	}
}

// Numbers that are too expensive for exact arithmetic are rounded, and still compare.
func TestOddNumbers(t *testing.T) {
	t.Parallel()
	for n, odd := range map[string]bool{"1": false, strings.Repeat("1", maxDigits): false,
		strings.Repeat("1", maxDigits+1): true, "1e400": false, "1e401": true,
		"1E-400": false, "1e-401": true, "1e99999999999999999999": true} {
		if got := oddNumber(json.Number(n)); got != odd {
			t.Errorf("%.20s is odd: %v, want %v", n, got, odd)
		}
	}
	for n, want := range map[string]string{"-1e999": "-1e400", "1e999": "1e400", "1e-999": "0", "-12.5e1": "-125",
		"0.1": "0.1"} {
		if got := tameNumber(json.Number(n)); string(got) != want {
			t.Errorf("%s is rounded to %s, want %s", n, got, want)
		}
	}
	s, err := Compile(json.RawMessage(
		`{"type":"object","properties":{"n":{"type":"array","items":{"minimum":-5,"maximum":5}}},"required":["n"]}`))
	if err != nil {
		t.Fatal(err)
	}
	for value, fits := range map[string]bool{`{"n":[1e-999]}`: true, `{"n":[1e999]}`: false, `{"n":[-1e999]}`: false,
		`{"n":[0.` + strings.Repeat("1", 900) + `]}`: true} {
		if got := s.Check(json.RawMessage(value)); (got == nil) != fits {
			t.Errorf("%.30s: %+v", value, got)
		}
	}
	for n, exact := range map[string]bool{"123456789012345": true, "1234567890123456": false, "1.5e300": true,
		"0.123456789012345": false, "1e1234567890123456": true} {
		if got := exactDouble(json.Number(n)); got != exact {
			t.Errorf("%s is exact: %v, want %v", n, got, exact)
		}
	}
}

// Clients' contracts that are accepted, and the pointers of refusals.
func TestCheckTerms(t *testing.T) {
	t.Parallel()
	text := func(n int) string { return strings.Repeat("x", n) }
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	tests := []struct {
		name    string
		k       *agent.Contract
		pointer string // "" if it is accepted
	}{
		{"none", nil, ""},
		{"empty", &agent.Contract{}, ""},
		{"all of it", &agent.Contract{Purpose: "p", Deliverable: raw(`{"type":"number"}`),
			Signature: raw(`{"inputs":[{"name":"q"}],"outputs":[{"name":"a"}]}`)}, ""},
		{"the most", &agent.Contract{Purpose: text(MaxTermsBytes)}, ""},
		{"too much", &agent.Contract{Purpose: text(MaxTermsBytes + 1)}, "/contract"},
		{"too much in all", &agent.Contract{Purpose: text(MaxTermsBytes - 4), Deliverable: raw("1"),
			Acceptance: raw("2"), FailurePolicy: raw("3"), Signature: raw("45")}, "/contract"},
		{"a type that is none", &agent.Contract{Deliverable: raw(`{"properties":{"a":{"type":7}}}`)},
			"/contract/deliverable/properties/a/type"},
		{"a signature that is none", &agent.Contract{Signature: raw(`{"inputs":[]}`)}, "/contract/signature"},
		{"a signature that is none, beside a deliverable", &agent.Contract{Deliverable: raw(`{"type":"number"}`),
			Signature: raw(`[]`)}, "/contract/signature"},
	}
	for _, tt := range tests {
		err := CheckTerms(tt.k, "/contract")
		var in *agent.InputError
		if tt.pointer == "" && err != nil || tt.pointer != "" && (!errors.As(err, &in) || in.Pointer != tt.pointer) {
			t.Errorf("%s: %.200v", tt.name, err)
		}
	}
}

// Signatures at their limits.
func TestSignatureLimits(t *testing.T) {
	t.Parallel()
	field := func(name string) string { return fmt.Sprintf(`{"name":%q}`, name) }
	fields := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, field(fmt.Sprint("f", i)))
		}
		return strings.Join(all, ",")
	}
	schema := func(n int) string {
		return `{"name":"q","schema":{"const":"` + strings.Repeat("x", n-len(`{"const":""}`)) + `"}}`
	}
	for name, tt := range map[string]struct {
		inputs string
		taken  bool
	}{
		"fields":             {fields(maxFields), true},
		"a field too many":   {fields(maxFields + 1), false},
		"a long name":        {field(strings.Repeat("ä", 100)), true},
		"too long a name":    {field(strings.Repeat("ä", 101)), false},
		"a blank name":       {field(" "), false},
		"white space":        {field(" a"), false},
		"a colon":            {field("a:b"), false},
		"a schema":           {schema(maxFieldSchema), true},
		"too large a schema": {schema(maxFieldSchema + 1), false},
	} {
		_, err := ParseSignature(json.RawMessage(`{"inputs":[` + tt.inputs + `],"outputs":[{"name":"a"}]}`))
		if (err == nil) != tt.taken {
			t.Errorf("%s: %v", name, err)
		}
		var se *SignatureError
		if err != nil && (!errors.As(err, &se) || se.Error() == "") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A cache returns what it has compiled, and drops what was not requested while its young generation filled up.
func TestCacheGenerations(t *testing.T) {
	t.Parallel()
	layer := func(s string) Layers { return Layers{Call: &agent.Contract{Purpose: s}} }
	c := NewCache(4)
	first := c.Resolve(layer("1"))
	if c.Resolve(layer("1")) != first {
		t.Error("the same contract was compiled twice")
	}
	c.Resolve(layer("2"))
	c.Resolve(layer("3")) // a new generation
	if len(c.young) != 1 || len(c.old) != 2 || c.size == 0 {
		t.Errorf("%d young, %d old", len(c.young), len(c.old))
	}
	if c.Resolve(layer("1")) != first || len(c.young) != 2 {
		t.Errorf("what is in use did not move on: %d young", len(c.young))
	}
	c.Resolve(layer("4"))
	if c.Resolve(layer("1")) != first {
		t.Error("what is in use is forgotten")
	}
	if _, kept := c.old[""]; kept || len(c.young)+len(c.old) > 4 {
		t.Errorf("%d young, %d old", len(c.young), len(c.old))
	}
	k := &agent.Contract{Purpose: "p", Deliverable: json.RawMessage(`{"type":"number"}`)}
	for name, l := range map[string]Layers{"role": {Role: k}, "method": {Method: k}, "delegated": {Delegated: k},
		"session": {Session: k}, "call": {Call: k}} {
		if r := c.Resolve(l); r.Contract == nil || r.Contract.Purpose != "p" ||
			string(r.Contract.Deliverable) != string(k.Deliverable) || r.Schema.Empty() {
			t.Errorf("%s: resolved to %+v", name, r.Contract)
		}
	}
	if r := c.Resolve(Layers{}); r.Contract != nil || r.Source != sourceNone || r.Fingerprint != agent.FingerprintNone {
		t.Errorf("nothing resolves to %+v", r)
	}
	if NewCache(0).half != 512 || NewCache(1).half != 1 || NewCache(-1).half != 512 || NewCache(10).half != 5 {
		t.Error("the size of a generation")
	}
}

// Keys are bounded in bytes, too: a key that takes a quarter of the space is not kept.
func TestCacheBytes(t *testing.T) {
	t.Parallel()
	c := NewCache(100)
	of := func(n int) string { return strings.Repeat("k", n) }
	r := func() *Resolved { return &Resolved{} }
	big := r()
	if c.keep(of(maxCachedBytes/4+1), big) != big || len(c.young) != 0 {
		t.Error("too long a key is kept")
	}
	for i := range 4 {
		c.keep(of(maxCachedBytes/4-1)+strconv.Itoa(i), r())
	}
	if len(c.young) != 4 || c.size != maxCachedBytes {
		t.Fatalf("%d keys of %d bytes", len(c.young), c.size)
	}
	c.keep("one more", r())
	if len(c.young) != 1 || len(c.old) != 4 || c.size != len("one more") {
		t.Errorf("%d young keys of %d bytes, %d old", len(c.young), c.size, len(c.old))
	}
	mine, theirs := r(), r()
	if c.keep("same", mine) != mine || c.keep("same", theirs) != mine {
		t.Error("the second of two that compiled the same does not get the first's")
	}
}

// A walk through a document visits every schema below a node, and reports the value that it looks at.
func TestChildren(t *testing.T) {
	t.Parallel()
	node := map[string]any{"type": "object", "properties": map[string]any{"b": true, "a/b": true},
		"prefixItems": []any{true, true}, "items": true, "allOf": []any{true, true},
		"patternProperties": map[string]any{"^x": true}, extItems: true, extAdditional: map[string]any{},
		"x-other": true}
	var steps []string
	if err := children(node, func(step string, _ any) error { steps = append(steps, step); return nil }); err != nil {
		t.Fatal(err)
	}
	want := []string{"", "", anyStep, anyStep, "/0", "/1", "/a~1b", "/b", anyStep, anyStep}
	if !slices.Equal(steps, want) {
		t.Errorf("steps %q, want %q", steps, want)
	}
	stop := errors.New("stop")
	for name, sub := range node {
		met := 0
		err := children(map[string]any{name: sub, "zz": true, "then": true},
			func(string, any) error { met++; return stop })
		if err != stop || met != 1 {
			t.Errorf("%s: %v after %d schemas", name, err, met)
		}
	}
	many, list := map[string]any{}, make([]any, maxNodes)
	for i := range list {
		many[strconv.Itoa(i)], list[i] = true, true
	}
	for name, sub := range map[string]any{"properties": many, "allOf": list} {
		if err := (&expansion{}).schema(map[string]any{name: sub}, nil); err == nil {
			t.Errorf("%s: one schema too many is taken", name)
		}
	}
	o := origins{hoisted: map[string]string{"d1": "/items"}}
	if got := o.pointer([]string{"$defs", "d1"}); got != "/items" {
		t.Errorf("the origin of a definition is %q", got)
	}
	if got := o.pointer([]string{"$defs"}); got != "/$defs" {
		t.Errorf("the origin of all definitions is %q", got)
	}
}

// Contracts with the same meaning have the same fingerprint, even with members and numbers that RFC 8785 cannot
// express.
func TestSameFingerprint(t *testing.T) {
	t.Parallel()
	of := func(deliverable string) *agent.Contract {
		return &agent.Contract{Deliverable: json.RawMessage(deliverable)}
	}
	for _, tt := range []struct {
		a, b string
		same bool
	}{
		{`{"const":{"b":1e999,"a":1}}`, `{"const":{"a":1,"b":1e999}}`, true},
		{`{"const":1e999}`, `{"const":2e999}`, false},
	} {
		if same := Fingerprint(of(tt.a)) == Fingerprint(of(tt.b)); same != tt.same {
			t.Errorf("%s and %s have the same fingerprint: %v", tt.a, tt.b, same)
		}
	}
	a, b := of(`{"items":{"description":"an item","type":"number"},"properties":{"k":{"title":"K"}}}`),
		of(`{"items":{"type":"number"},"properties":{"k":{}}}`)
	if CheckedFingerprint(a) != CheckedFingerprint(b) {
		t.Error("descriptions count among what is checked")
	}
}

// Invalid parts of an older contract are listed, up to a limit.
func TestManyProblems(t *testing.T) {
	t.Parallel()
	var bad []string
	for i := range 40 {
		bad = append(bad, fmt.Sprintf(`"k%d":{"type":7}`, i))
	}
	_, problems, err := compileTolerant(json.RawMessage(`{"properties":{` + strings.Join(bad, ",") + `}}`))
	if err != nil || len(problems) != 32 {
		t.Errorf("%d problems are listed, %v", len(problems), err)
	}
	if _, err := Compile(json.RawMessage(`{"type":[]}`)); err == nil {
		t.Error("a list of no types is taken")
	}
	for want, e := range map[string]*InvalidError{"deliverable /a is odd": {"/a", "is odd"},
		"deliverable is odd": {"", "is odd"}} {
		if e.Error() != want {
			t.Errorf("a problem reads %q, want %q", e.Error(), want)
		}
	}
}
