package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestInterfaceValidate(t *testing.T) {
	t.Parallel()
	number := func(name string, required bool) Parameter {
		return Parameter{Name: name, Type: "number", Required: required}
	}
	for _, c := range []struct {
		name string
		f    Interface
		want string // part of the error; "" means none
	}{
		{"nothing", Interface{}, ""},
		{"two", Interface{Parameters: []Parameter{number("a", true), number("b", false)}}, ""},
		{"duplicate", Interface{Parameters: []Parameter{number("a", true), number("a", false)}},
			`parameters[1]: the name "a" appears twice`},
		{"duplicate alias", Interface{Parameters: []Parameter{number("a", true), {Name: "b", Aliases: []string{"a"}}}},
			`"a" appears twice`},
		{"required after optional", Interface{Parameters: []Parameter{number("a", false), number("b", true)}},
			"b is required but follows a"},
		{"required keyword after optional",
			Interface{Parameters: []Parameter{number("a", false), {Name: "b", Required: true, ReadBy: readByName}}},
			""},
		{"type", Interface{Parameters: []Parameter{{Name: "a", Type: "float"}}},
			`a has the type "float"; it must be one of string, number`},
		{"name", Interface{Parameters: []Parameter{{Name: "a "}}}, `the name "a " is not allowed`},
		{"invisible name", Interface{Parameters: []Parameter{{Name: "a\u200bb"}}}, "is not allowed"},
		{"names as keywords have them", Interface{Parameters: []Parameter{{Name: "l\u00e4nge"}, {Name: "Kunden Nr."},
			{Name: "2024"}, {Name: "Preis (\u20ac)"}}}, ""},
		{"no name", Interface{Parameters: []Parameter{{}}}, `the name "" is not allowed`},
		{"schema", Interface{Parameters: []Parameter{{Name: "a", Schema: json.RawMessage(`"string"`)}}},
			"the schema of a must be a JSON Schema"},
		{"broken schema", Interface{Parameters: []Parameter{{Name: "a", Schema: json.RawMessage(`{`)}}},
			"the schema of a must be a JSON Schema"},
		{"returns", Interface{Returns: json.RawMessage(`[]`)}, "returns: must be a JSON Schema"},
		{"default of a required one",
			Interface{Parameters: []Parameter{{Name: "a", Required: true, Default: json.RawMessage("1")}}},
			"a is required and has a default"},
		{"variadic in the middle", Interface{Parameters: []Parameter{{Name: "a", Variadic: true}, {Name: "b"}}},
			"a is variadic and must be the last"},
		{"summary", Interface{Summary: strings.Repeat("x", MaxSummary+1)}, "summary: more than"},
		{"many", Interface{Parameters: make([]Parameter, MaxParameters+1)}, "at most 64"},
		{"read_by", Interface{Parameters: []Parameter{{Name: "a", ReadBy: "magic"}}}, "unknown read_by"},
	} {
		err := c.f.Validate()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

func TestInterfaceSchemaAndSignature(t *testing.T) {
	t.Parallel()
	f := &Interface{Parameters: []Parameter{
		{Name: "text", Type: "string", Description: "what to cut", Required: true},
		{Name: "size", Schema: json.RawMessage(`{"type":["integer","string"]}`), Default: json.RawMessage("3")},
		{Name: "mode", Schema: json.RawMessage(`{"enum":["a","b"]}`)},
		{Name: "rest", Schema: json.RawMessage(`{"type":"array","items":{"type":"number"}}`), Variadic: true},
	}, Returns: json.RawMessage(`{"type":"object","properties":{"b":{},"a":{}}}`)}
	if err := f.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ got, want string }{
		{f.Signature("cut"), `cut(text: string, size?: integer|string = 3, mode?: "a"|"b", ...rest?: number[]) -> {a, b}`},
		{(&Interface{Parameters: []Parameter{{Name: "l\u00e4nge", Required: true}, {Name: "a.b-c_d"},
			{Name: "Kunden Nr"}, {Name: `a"b`}}}).Signature("m"), `m(länge: any, a.b-c_d?: any, "Kunden Nr"?: any, "a\"b"?: any)`},
		{(&Interface{Open: true}).Signature("any"), "any(...)"},
		{(*Interface)(nil).Signature("any"), "any(...)"},
		{(&Interface{}).Signature("now"), "now()"},
		{string((&Parameter{Schema: json.RawMessage("true"), Description: "x"}).JSONSchema()), "true"},
	} {
		if c.got != c.want {
			t.Errorf("got  %s\nwant %s", c.got, c.want)
		}
	}
}

func TestInterfaceArrange(t *testing.T) {
	t.Parallel()
	either := &Interface{Parameters: []Parameter{{Name: "a"}, {Name: "b"}}}
	position := &Interface{Parameters: []Parameter{{Name: "a", Required: true, ReadBy: readByPosition},
		{Name: "b", Default: json.RawMessage("7"), ReadBy: readByPosition}, {Name: "c", ReadBy: readByPosition}}}
	mixed := &Interface{Parameters: []Parameter{{Name: "text", Required: true, ReadBy: readByPosition},
		{Name: "max", ReadBy: readByName}, {Name: "min", ReadBy: readByName}}}
	all := &Interface{Parameters: []Parameter{{Name: "first", ReadBy: readByPosition},
		{Name: "rest", Variadic: true, ReadBy: readByPosition}}}
	options := &Interface{Parameters: append(slices.Clone(all.Parameters), Parameter{Name: "x", ReadBy: readByName},
		Parameter{Name: "y", ReadBy: readByName})}
	for _, c := range []struct {
		name                 string
		f                    *Interface
		args, kwargs         string
		wantArgs, wantKwargs string
	}{
		{"nothing known", nil, `[1]`, `{"x":2}`, `[1]`, `{"x":2}`},
		{"either way", either, `[1]`, `{"b":2}`, `[1]`, `{"b":2}`},
		{"keywords to positions", position, `[]`, `{"c":3,"a":1}`, `[1,7,3]`, `{}`},
		{"some to positions", position, `[1]`, `{"b":2,"x":0}`, `[1,2]`, `{"x":0}`},
		{"a required one is missing", position, `[]`, `{"c":3}`, `[]`, `{"c":3}`},
		{"given twice", position, `[1]`, `{"a":2}`, `[1]`, `{"a":2}`},
		{"a position to a name", mixed, `["t",5]`, `{}`, `["t"]`, `{"max":5}`},
		{"two positions to names", mixed, `["t",5,6]`, `{}`, `["t"]`, `{"max":5,"min":6}`},
		{"both directions", mixed, `[]`, `{"text":"t","max":5}`, `["t"]`, `{"max":5}`},
		{"more than there are parameters", mixed, `["t",5,6,7]`, `{}`, `["t",5,6,7]`, `{}`},
		{"a name given twice", mixed, `["t",5]`, `{"max":6}`, `["t",5]`, `{"max":6}`},
		{"a list", all, `[]`, `{"first":1,"rest":[2,3]}`, `[1,2,3]`, `{}`},
		{"a list before options", options, `[1,2]`, `{}`, `[1,2]`, `{}`},
		{"a list as long as the parameters", options, `[1,2,3,4]`, `{}`, `[1,2,3,4]`, `{}`},
		{"a list by name before options", options, `[]`, `{"first":1,"rest":[2,3],"x":4}`, `[1,2,3]`, `{"x":4}`},
		{"left out in an open interface", &Interface{Open: true, Parameters: position.Parameters}, `[]`,
			`{"a":1,"c":3}`, `[1,7,3]`, `{}`},
		{"left out without a default in an open interface", &Interface{Open: true,
			Parameters: append(position.Parameters, Parameter{Name: "d", ReadBy: readByPosition})}, `[]`, `{"a":1,"d":4}`, `[1,7]`, `{"d":4}`},
		{"left out at once in an open interface", &Interface{Open: true, Parameters: position.Parameters[2:]}, `[]`,
			`{"x":1}`, `[]`, `{"x":1}`},
		{"a list that is none", all, `[]`, `{"first":1,"rest":2}`, `[]`, `{"first":1,"rest":2}`},
	} {
		var args []json.RawMessage
		_ = json.Unmarshal([]byte(c.args), &args)
		gotArgs, gotKwargs := c.f.Arrange(args, json.RawMessage(c.kwargs))
		if a := string(Encoded(gotArgs)); a != c.wantArgs || string(gotKwargs) != c.wantKwargs {
			t.Errorf("%s: got %s %s, want %s %s", c.name, a, gotKwargs, c.wantArgs, c.wantKwargs)
		}
	}
}

// For any interface and call, each parameter reaches the program where the program looks for it, whichever way the
// caller gave it. Both ways count as the same input, and nothing is lost.
func TestInterfaceFormsAreInterchangeable(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 17))
		f, values := randomInterface(r)
		given := r.IntN(len(values) + 1)
		positional, named := values[:given], map[string]json.RawMessage{}
		for i := range given {
			named[f.Parameters[i].Name] = values[i]
		}
		split := 0
		if given > 0 {
			split = r.IntN(given)
		}
		part := map[string]json.RawMessage{}
		for i := split; i < given; i++ {
			part[f.Parameters[i].Name] = values[i]
		}
		forms := []struct {
			args   []json.RawMessage
			kwargs json.RawMessage
		}{{positional, json.RawMessage("{}")}, {nil, Encoded(named)}, {values[:split], Encoded(part)}}
		for _, form := range forms {
			args, kwargs := f.Arrange(form.args, form.kwargs)
			for i := range given {
				if got := lookedUp(&f.Parameters[i], i, args, kwargs); got != string(values[i]) {
					t.Fatalf("seed %d: parameter %d of %s is %s, want %s; called with %s %s, arranged as %s %s", seed,
						i, Encoded(f), got, values[i], Encoded(form.args), form.kwargs, Encoded(args), kwargs)
				}
			}
			if n := len(args) + len(keywords(kwargs)); n != given {
				t.Fatalf("seed %d: %d arguments of %d", seed, n, given)
			}
			if !f.SameInput(form.args, form.kwargs, positional, nil) {
				t.Fatalf("seed %d: %s %s is another input than %s", seed, Encoded(form.args), form.kwargs,
					Encoded(positional))
			}
		}
		if given > 0 && f.SameInput(positional, nil, append([]json.RawMessage{json.RawMessage(`"other"`)},
			positional[1:]...), nil) {
			t.Fatalf("seed %d: other arguments are the same input", seed)
		}
	}
}

// randomInterface returns positional parameters before those read by name, as the gate infers them.
func randomInterface(r *rand.Rand) (*Interface, []json.RawMessage) {
	f := &Interface{}
	var values []json.RawMessage
	byName := false
	for i := range r.IntN(6) {
		byName = byName || r.IntN(4) == 0
		p := Parameter{Name: fmt.Sprint("p", i), ReadBy: []string{readEither, readByPosition}[r.IntN(2)]}
		if byName {
			p.ReadBy = readByName
		}
		f.Parameters = append(f.Parameters, p)
		values = append(values, json.RawMessage(fmt.Sprint(i*10)))
	}
	return f, values
}

// lookedUp returns what a program finds where it looks for the parameter.
func lookedUp(p *Parameter, i int, args []json.RawMessage, kwargs json.RawMessage) string {
	named := keywords(kwargs)
	if p.ReadBy != readByName && i < len(args) {
		return string(args[i])
	}
	if p.ReadBy != readByPosition && named[p.Name] != nil {
		return string(named[p.Name])
	}
	return "nothing"
}

func TestInterfaceBreaks(t *testing.T) {
	t.Parallel()
	was := &Interface{Origin: OriginDeclared, Parameters: []Parameter{{Name: "a", Required: true}, {Name: "b"}}}
	for _, c := range []struct {
		now  *Interface
		want string
	}{
		{nil, ""},
		{was, ""},
		{&Interface{Parameters: []Parameter{{Name: "x", Aliases: []string{"a"}}, {Name: "b"}, {Name: "c"}}}, ""},
		{&Interface{Parameters: []Parameter{{Name: "a", Required: true}}}, "the parameter b is gone"},
		{&Interface{Open: true, Parameters: []Parameter{{Name: "a", Required: true}}}, ""},
		{&Interface{Parameters: []Parameter{{Name: "b"}, {Name: "a"}}},
			"the parameter a was at place 1 and is now at place 2"},
		{&Interface{Parameters: []Parameter{{Name: "a", Required: true}, {Name: "b", Required: true}}},
			"the parameter b has become required"},
		{&Interface{Parameters: []Parameter{{Name: "a", Required: true}, {Name: "b"},
			{Name: "c", Required: true, ReadBy: readByName}}}, "the parameter c is new and required"},
	} {
		if got := c.now.Breaks(was); got != c.want {
			t.Errorf("%s: got %q, want %q", Encoded(c.now), got, c.want)
		}
	}
	skips := &Interface{Origin: OriginDeclared,
		Parameters: []Parameter{{Name: "question", Description: notRead, ReadBy: readByPosition}, {Name: "sources"},
			{Name: "limit", ReadBy: readByName}}}
	for name, c := range map[string]struct {
		now  *Interface
		want string
	}{
		"what was skipped is read": {&Interface{Parameters: []Parameter{{Name: "question", Required: true},
			{Name: "sources", Required: true}, {Name: "limit"}}}, ""},
		"by name alone it is no place": {&Interface{Parameters: []Parameter{{Name: "question"}, {Name: "sources"},
			{Name: "limit", Required: true}}}, "the parameter limit has become required"},
	} {
		if got := c.now.Breaks(skips); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	if got := was.Breaks(nil); got != "" {
		t.Errorf("got %q", got)
	}
}

func TestInterfaceAdopt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args    int
		kwargs  string
		unknown []string
		want    string // the parameter that gets another name
	}{
		{0, `{"principal":1,"annual_rate_percent":2,"months":3}`, []string{"annual_rate_percent"}, "rate"},
		{1, `{"annual_rate_percent":2,"months":3}`, []string{"annual_rate_percent"}, "rate"},
		{0, `{"principal":1,"interest":2,"months":3}`, []string{"interest"}, ""},
		{0, `{"annual_rate_percent":2,"months":3}`, []string{"annual_rate_percent"}, ""},
		{0, `{"principal":1,"rate":2,"months":3,"rate_kind":4}`, []string{"rate_kind"}, ""},
		{0, `{"principal":1,"annual_rate":2,"months":3,"x":4}`, []string{"annual_rate", "x"}, ""},
		{0, `{"principal":1,"a rate":2,"months":3}`, []string{"a rate"}, ""},
	} {
		f := &Interface{Parameters: []Parameter{{Name: "principal", Required: true, ReadBy: readByPosition},
			{Name: "rate", Required: true}, {Name: "months", Required: true, ReadBy: readByName}, {Name: "rate_limit"}}}
		f.Adopt(c.args, json.RawMessage(c.kwargs), c.unknown)
		for _, p := range f.Parameters {
			if (len(p.Aliases) == 1 && p.Aliases[0] == c.unknown[0]) != (p.Name == c.want) {
				t.Errorf("%s: %s has the names %q", c.kwargs, p.Name, p.Aliases)
			}
		}
	}
	(*Interface)(nil).Adopt(0, nil, []string{"a"})
}

func TestInterfaceNeverNull(t *testing.T) {
	t.Parallel()
	for returns, want := range map[string]bool{`{"type":"array"}`: true, `{"type":["string","object"]}`: true,
		`{"type":["string","null"]}`: false, `{"type":"null"}`: false, `{"type":"text"}`: false, `{}`: false,
		`{"anyOf":[]}`: false, `{"type":"string","nullable":true}`: false, `true`: false, ``: false} {
		if got := (&Interface{Origin: OriginDeclared, Returns: json.RawMessage(returns)}).NeverNull(); got != want {
			t.Errorf("%s: got %t", returns, got)
		}
	}
	if (&Interface{Origin: OriginInferred, Returns: json.RawMessage(`{"type":"array"}`)}).NeverNull() ||
		(*Interface)(nil).NeverNull() {
		t.Error("what nobody declared says nothing of null")
	}
}

func TestInterfaceUnknown(t *testing.T) {
	t.Parallel()
	f := &Interface{Parameters: []Parameter{{Name: "f", Aliases: []string{"degrees"}}}}
	if got := fmt.Sprint(f.Fit(0,
		json.RawMessage(`{"fahrenheit":1,"f":2,"degrees":3,"celsius":4}`)).Unknown); got != "[celsius fahrenheit]" {
		t.Error(got)
	}
	f.Open = true
	if got := f.Fit(0, json.RawMessage(`{"x":1}`)).Unknown; got != nil {
		t.Error(got)
	}
}

func FuzzInterface(f *testing.F) {
	f.Add([]byte(`{"parameters":[{"name":"a","read_by":"position"},{"name":"b","read_by":"name"}]}`), []byte(`[1,2]`),
		[]byte(`{"a":1}`))
	f.Fuzz(func(_ *testing.T, iface, args, kwargs []byte) {
		var i Interface
		var list []json.RawMessage
		if json.Unmarshal(iface, &i) != nil || i.Validate() != nil || json.Unmarshal(args, &list) != nil ||
			!json.Valid(kwargs) {
			return
		}
		i.Arrange(list, kwargs)
		i.Named(list, kwargs)
		i.Fit(len(list), kwargs)
		i.Relax([]string{"a"}, &i)
		i.Signature("m")
		i.Breaks(&i)
	})
}

func TestDeclarationAgainst(t *testing.T) {
	t.Parallel()
	inferred := &Interface{Origin: OriginInferred, Parameters: []Parameter{
		{Name: "title", Type: "string", Required: true, ReadBy: readByPosition},
		{Name: "max_length", Type: "number", Aliases: []string{"max"}, ReadBy: readByName}}}
	for _, c := range []struct {
		name, summary, parameters, returns string
		want                               string // the interface's signature, or part of the error
	}{
		{name: "nothing", want: "m(title: string, max_length?: number)"},
		{name: "other names for positions",
			parameters: `[{"name":"text","type":"string","required":true},{"name":"max_length","type":"integer"}]`,
			want:       "m(text: string, max_length?: integer)"},
		{name: "required is left to the program", parameters: `[{"name":"text"},{"name":"max_length"}]`,
			want: "m(text: any, max_length?: any)"},
		{name: "an alias for the name", parameters: `[{"name":"title"},{"name":"max"}]`,
			want: "m(title: any, max?: any)"},
		{name: "a list of types",
			parameters: `[{"name":"title","type":["string","number"]},{"name":"max_length","type":"any","default":3}]`,
			want:       "m(title: string|number, max_length?: any = 3)"},
		{name: "types in capitals and a list of one",
			parameters: `[{"name":"title","type":["String"]},{"name":"max_length","type":"Integer"}]`,
			want:       "m(title: string, max_length?: integer)"},
		{name: "a summary alone", summary: `"cuts"`, returns: `{"type":"string"}`,
			want: "m(title: string, max_length?: number) -> string"},
		{name: "never read", parameters: `[{"name":"title"},{"name":"max_length"},{"name":"sep"}]`,
			want: "m(title: any, max_length?: any)"},
		{name: "never read before what is read",
			parameters: `[{"name":"lang","type":"string","required":false},{"name":"title","type":"string","required":true},{"name":"max_length"}]`, want: "m(title: string, max_length?: any)"},
		{name: "not declared", parameters: `[{"name":"title"}]`, want: "m(title: any, max_length?: number)"},
		{name: "a position that is not declared", parameters: `[]`, want: "m(title: string, max_length?: number)"},
		{name: "not declared, and one that is not read", parameters: `[{"name":"title"},{"name":"sep"}]`,
			want: "m(title: any, max_length?: number)"},
		{name: "duplicate", parameters: `[{"name":"title"},{"name":"title"}]`, want: `"title" appears twice`},
		{name: "order", parameters: `[{"name":"title","required":false},{"name":"max_length","required":true}]`,
			want: "max_length is required but follows title"},
		{name: "bad type", parameters: `[{"name":"title","type":"text"}]`,
			want: `title has the type "text"; it must be one of`},
		{name: "type of no kind", parameters: `[{"name":"title","type":7}]`,
			want: "the type of title must be a string"},
		{name: "bad schema", parameters: `[{"name":"title","schema":7}]`,
			want: "the schema of title must be a JSON Schema"},
		{name: "an object by name", parameters: `{"title":"string","max_length":{"type":"integer","required":false}}`,
			want: "m(title: string, max_length?: integer)"},
		{name: "a schema", parameters: `{"type":"object","properties":{"title":{"type":"string"},"max_length":{"type":"integer"}},"required":["title"]}`, want: "m(title: string, max_length?: integer)"},
		{name: "no list", parameters: `"title"`, want: "parameters: must be a list such as"},
		{name: "bad summary", summary: `7`, want: "summary: must be a string"},
		{name: "bad returns", returns: `7`, want: "returns: must be a JSON Schema"},
	} {
		got, err := Declaration{Summary: json.RawMessage(c.summary), Parameters: json.RawMessage(c.parameters),
			Returns: json.RawMessage(c.returns)}.Against(inferred)
		text := ""
		if err != nil {
			text = err.Error()
		} else {
			text = got.Signature("m")
		}
		if err == nil && text != c.want || !strings.Contains(text, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, text, c.want)
		}
		if err == nil && got.Parameters[0].ReadBy != readByPosition {
			t.Errorf("%s: the first parameter is read by %q", c.name, got.Parameters[0].ReadBy)
		}
	}
	for _, c := range []struct {
		name, parameters string
		inferred         Interface
		want             string
	}{
		{"nothing is read", `[{"name":"sides","required":true}]`, Interface{}, "m()"},
		{"a position that is skipped",
			`[{"name":"a","required":true},{"name":"b","required":true,"description":"x"},{"name":"c","required":true}]`,
			Interface{Parameters: []Parameter{{Name: "a"}, {Name: "arg2", ReadBy: readByPosition, Description: notRead},
				{Name: "c"}}}, "m(a: any, b?: any, c?: any)"},
		{"a list of all positions", `[{"name":"numbers","type":"array"}]`,
			Interface{Parameters: []Parameter{{Name: "args", Variadic: true, ReadBy: readByPosition}}},
			"m(...numbers?: array)"},
		{"names for what is gone through", `[{"name":"a","required":true},{"name":"b","required":true}]`,
			Interface{Parameters: []Parameter{{Name: "args", Variadic: true, ReadBy: readByPosition}}},
			"m(a: any, b: any)"},
		{"names beside what is gone through", `[{"name":"a"},{"name":"b"}]`,
			Interface{Parameters: []Parameter{{Name: "args", Variadic: true, ReadBy: readByPosition},
				{Name: "a", ReadBy: readByName}, {Name: "b", ReadBy: readByName}}},
			"m(...args?: any, a?: any, b?: any)"},
	} {
		got, err := Declaration{Parameters: json.RawMessage(c.parameters)}.Against(&c.inferred)
		if err != nil || got.Signature("m") != c.want {
			t.Errorf("%s: got %v, %v, want %s", c.name, got.Signature("m"), err, c.want)
		}
	}
}

// Where the declared order differs from the program's, what the program also reads by name is read so.
func TestDeclarationInAnotherOrder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, parameters string
		inferred         []Parameter
		want             string // the signature, or the error
		place            int    // the first place at which both differ
		wantArgs, wantKw string // of three arguments by position
	}{
		{"all by name", `[{"name":"b"},{"name":"a"},{"name":"c"}]`, []Parameter{{Name: "a"}, {Name: "b"}, {Name: "c"}},
			"m(b?: any, a?: any, c?: any)", 0, `[]`, `{"a":2,"b":1,"c":3}`},
		{"the last ones by name", `[{"name":"a"},{"name":"c"},{"name":"b"}]`, []Parameter{{Name: "a"}, {Name: "b"},
			{Name: "c"}}, "m(a?: any, c?: any, b?: any)", 1, `[1]`, `{"b":3,"c":2}`},
		{"behind one that is read by name", `[{"name":"c","required":true},{"name":"a"},{"name":"b"}]`,
			[]Parameter{{Name: "a"}, {Name: "b"}, {Name: "c", ReadBy: readByName}}, "m(c: any, a?: any, b?: any)", 0,
			`[]`, `{"a":2,"b":3,"c":1}`},
		{"by position alone", `[{"name":"b"},{"name":"a"}]`, []Parameter{{Name: "a", ReadBy: readByPosition},
			{Name: "b"}}, "reads b at position 1, but it is declared at position 0", 0, "", ""},
	} {
		got, err := Declaration{Parameters: json.RawMessage(c.parameters)}.Against(&Interface{Parameters: c.inferred})
		var order *OrderError
		if !errors.As(err, &order) {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got %v", c.name, err)
			}
			continue
		}
		args, kwargs := got.Arrange([]json.RawMessage{[]byte("1"), []byte("2"), []byte("3")}, nil)
		if got.Signature("m") != c.want || order.Place != c.place || string(Encoded(args)) != c.wantArgs ||
			string(kwargs) != c.wantKw {
			t.Errorf("%s: got %s, %v at %d, arranged as %s %s", c.name, got.Signature("m"), err, order.Place,
				Encoded(args), kwargs)
		}
	}
}

// A declared parameter that an open interface does not list is read by its name, unless the program may read any
// position.
func TestDeclarationAgainstOpen(t *testing.T) {
	t.Parallel()
	rest := AnyPosition()[0]
	for _, c := range []struct {
		name, parameters string
		inferred         []Parameter
		want             string
		readBy           string // of each parameter
	}{
		{"keywords alone", `[{"name":"b"}]`, nil, "m(b?: any, ...)", "name"},
		{"a place and keywords", `[{"name":"a"},{"name":"b"}]`, []Parameter{{Name: "a"}}, "m(a?: any, b?: any, ...)",
			" name"},
		{"any place", `[{"name":"a"},{"name":"b"}]`, []Parameter{rest}, "m(a?: any, b?: any, ...)", " "},
		{"one for any place", `[{"name":"a","type":"string"}]`, []Parameter{rest}, "m(a?: string, ...)", ""},
		{"any further place", `[{"name":"a"}]`, []Parameter{{Name: "a"}, rest}, "m(a?: any, ...rest?: any, ...)",
			" position"},
		{"nothing", ``, []Parameter{rest}, "m(...)", ""},
	} {
		got, err := Declaration{Summary: json.RawMessage(`"x"`), Parameters: json.RawMessage(c.parameters)}.Against(
			&Interface{Open: true, Parameters: c.inferred})
		var readBy []string
		for _, p := range got.Parameters {
			readBy = append(readBy, p.ReadBy)
		}
		if err != nil || got.Signature("m") != c.want || strings.Join(readBy, " ") != c.readBy {
			t.Errorf("%s: got %s, read by %q, %v", c.name, got.Signature("m"), readBy, err)
		}
	}
}

// A successor that names a position differently still accepts the old name.
func TestInterfaceSucceed(t *testing.T) {
	t.Parallel()
	was := &Interface{Parameters: []Parameter{{Name: "f"}, {Name: "digits"}}}
	now := &Interface{Parameters: []Parameter{{Name: "fahrenheit"}, {Name: "digits"}}}
	now.Succeed(was)
	if got := now.Breaks(was); got != "" {
		t.Error(got)
	}
	args, kwargs := now.Arrange(nil, json.RawMessage(`{"f":100,"digits":2}`))
	if len(args) != 0 || string(kwargs) != `{"digits":2,"fahrenheit":100}` {
		t.Errorf("got %s %s", args, kwargs)
	}
	swapped := &Interface{Parameters: []Parameter{{Name: "digits"}, {Name: "f"}}}
	swapped.Succeed(was)
	if got := swapped.Breaks(was); !strings.Contains(got, "the parameter f was at place 1 and is now at place 2") {
		t.Error(got)
	}
}

// In JSON Schema, a parameter that takes a file is an object with a reference.
func TestFileParameters(t *testing.T) {
	t.Parallel()
	for declared, want := range map[string]string{
		`"file"`: "m(list: file)", `"File"`: "m(list: file)", `["file"]`: "m(list: file)",
		`["file","string"]`: "m(list: any)",
	} {
		f, err := Declaration{Parameters: json.RawMessage(`[{"name":"list","type":` + declared +
			`,"required":true}]`)}.Against(&Interface{Parameters: []Parameter{{Name: "list"}}})
		if err != nil || f.Signature("m") != want {
			t.Errorf("%s: %v, %v", declared, f.Signature("m"), err)
		}
	}
	p := Parameter{Name: "list", Type: typeFile}
	if got, want := string(p.JSONSchema()),
		`{"description":"a file: {\"$file\": \"file_...\"}, the reference that an upload answers with (the tool upload_file, or POST /v1/files)","properties":{"$file":{"type":"string"}},"required":["$file"],"type":"object"}`; got != want {
		t.Errorf("got %s", got)
	}
	p.Description = "of names"
	if got := string(p.JSONSchema()); !strings.Contains(got, `"description":"of names"`) {
		t.Errorf("got %s", got)
	}
}
