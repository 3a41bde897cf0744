package agent

import (
	"encoding/json"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFit(t *testing.T) {
	// Not parallel, because it counts allocations.
	two := &Interface{Origin: OriginDeclared,
		Parameters: []Parameter{{Name: "a", Required: true, Aliases: []string{"alpha"}}, {Name: "b"}}}
	rest := &Interface{Origin: OriginDeclared, Parameters: []Parameter{{Name: "list", Variadic: true, Required: true},
		{Name: "key", Required: true, ReadBy: readByName}}}
	open := &Interface{Origin: OriginDeclared, Open: true, Parameters: two.Parameters}
	inferred := &Interface{Origin: OriginInferred, Open: true, Parameters: two.Parameters}
	places := func(open bool) *Interface {
		return &Interface{Origin: OriginDeclared, Open: open, Parameters: []Parameter{
			{Name: "a", Required: true, ReadBy: readByPosition}, {Name: "b", ReadBy: readByPosition},
			{Name: "c", ReadBy: readByPosition, Default: json.RawMessage("7")},
			{Name: "arg4", ReadBy: readByPosition, Description: notRead}, {Name: "e", ReadBy: readByPosition}}}
	}
	for _, c := range []struct {
		name   string
		f      *Interface
		args   int
		kwargs string
		want   string
	}{
		{"nothing is known", nil, 3, `{"x":1}`, ""},
		{"by position", two, 2, `{}`, ""},
		{"no keywords at all", two, 1, ``, ""},
		{"by name", two, 0, `{"b":1,"a":null}`, ""},
		{"by another name", two, 0, `{"alpha":1}`, ""},
		{"twice", two, 1, `{"a":1}`, "given twice: a"},
		{"twice, and the other one is missing", two, 1, `{"a":1,"alpha":2,"b":3}`, "given twice: a"},
		{"twice by two names", two, 0, `{"a":1,"alpha":2}`, "given twice: a"},
		{"twice as a list", rest, 1, `{"key":1,"list":[]}`, "given twice: list"},
		{"left out", places(false), 1, `{"e":2}`, "left out before a parameter that is read by its position: b"},
		{"left out before a default", places(false), 1, `{"c":2}`,
			"left out before a parameter that is read by its position: b"},
		{"left out at the end", places(false), 1, `{"b":2}`, ""},
		{"left out in an open interface", places(true), 1, `{"e":2}`, ""},
		{"missing", two, 0, `{"b":1}`, "missing: a"},
		{"too many", two, 4, `{}`, "positional arguments too many: 2"},
		{"unknown", two, 1, `{"z":1,"y":2,"z":3}`, "unknown keywords: y, z"},
		{"all at once", two, 0, `{"y":2}`, "missing: a; unknown keywords: y"},
		{"any number", rest, 9, `{"key":1}`, ""},
		{"none of any number", rest, 0, `{"key":1}`, "missing: list"},
		{"a list by name", rest, 0, `{"key":1,"list":[]}`, ""},
		{"behind the rest", rest, 2, `{}`, "missing: key"},
		{"open takes all keywords", open, 2, `{"z":1}`, ""},
		{"open for keywords only", open, 5, `{"z":1}`, "positional arguments too many: 3"},
		{"open takes all where nobody declared it", inferred, 9, `{"z":1}`, ""},
		{"open, by a name of its own", open, 0, `{"A":1}`, ""},
		{"open and missing", open, 0, `{}`, "missing: a"},
		{"takes none", &Interface{Origin: OriginDeclared}, 1, `{}`, "positional arguments too many: 1"},
	} {
		got := c.f.Fit(c.args, json.RawMessage(c.kwargs))
		if got.String() != c.want || got.OK() != (c.want == "") {
			t.Errorf("%s: %q, want %q", c.name, got.String(), c.want)
		}
	}
	none := json.RawMessage(`{}`)
	if allocated := testing.AllocsPerRun(100, func() { two.Fit(2, none) }); allocated > 0 {
		t.Errorf("positional arguments that fit cost %v allocations", allocated)
	}
}

// A parameter that the call lacks and the program does not need becomes optional, as do positional ones after it.
func TestRelax(t *testing.T) {
	t.Parallel()
	inferred := &Interface{Parameters: []Parameter{{Name: "a"}, {Name: "b", Required: true},
		{Name: "c", Required: true, ReadBy: readByName}}}
	for missing, want := range map[string]string{"a": "m(a?: any, b?: any, c: any)", "b": "m(a: any, b: any, c: any)",
		"d": "m(a: any, b: any, c: any)"} {
		f := &Interface{Origin: OriginDeclared, Parameters: []Parameter{{Name: "a", Required: true},
			{Name: "b", Required: true}, {Name: "c", Required: true, ReadBy: readByName}}}
		if f.Relax([]string{missing}, inferred); f.Signature("m") != want {
			t.Errorf("%s: %s, want %s", missing, f.Signature("m"), want)
		}
	}
}

// A generation remembers a bounded number of argument shapes that it need not read. Beyond that, all shapes count as
// such.
func TestNeedlessShapes(t *testing.T) {
	t.Parallel()
	a := &Artifact{CurrentID: "gen-1", Generations: []*Generation{{ID: "gen-1"}}}
	kwargs := json.RawMessage(`{"b":1,"a":2}`)
	if a.Current().Ignores(1, kwargs) {
		t.Error("a new generation ignores arguments")
	}
	was := a
	a = a.Apply(ArtifactChange{ResultOf: "gen-1", Needless: ShapeOfArguments(1,
		kwargs)}).Apply(ArtifactChange{Needless: ShapeOfArguments(1, json.RawMessage(`{"a":3,"b":4}`))})
	if g := a.Current(); !g.Ignores(1, kwargs) || g.Ignores(2, kwargs) || g.Ignores(1, nil) || len(g.Needless) != 1 ||
		len(was.Current().Needless) != 0 {
		t.Errorf("shapes: %v", cmp.Diff(was.Current().Needless, g.Needless))
	}
	for i := range 40 {
		a = a.Apply(ArtifactChange{Needless: ShapeOfArguments(0, json.RawMessage(`{"k`+strconv.Itoa(i)+`":1}`))})
	}
	if g := a.Current(); len(g.Needless) != maxNeedless || !g.Ignores(9, nil) {
		t.Errorf("%d shapes", len(g.Needless))
	}
}
