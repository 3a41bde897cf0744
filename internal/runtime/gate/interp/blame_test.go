package interp

//lint:file-ignore SA5000,SA4017 faults on purpose

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

// bugs of the engine that panic as programs do: in what an operation does, and in packages that it works with. None of them is in the code of
// Go's own operations.
var bugs = map[string]struct {
	run  func()
	text string
}{
	"nil map":       {func() { var m map[string]int; m["x"] = 1 }, "assignment to entry in nil map"},
	"nil pointer":   {func() { var f *fn; f.ready = true }, "invalid memory address"},
	"index":         {func() { var s []slot; s[len(s)].off = 1 }, "index out of range [0] with length 0"},
	"bounds":        {func() { var s []slot; _ = s[len(s)+1:] }, "slice bounds out of range"},
	"type":          {func() { var v any = 1; _ = v.(string) }, "interface conversion"},
	"division":      {func() { var n int; _ = 1 / n }, "integer divide by zero"},
	"reflect":       {func() { reflect.TypeFor[int]().Elem() }, "Elem of invalid type int"},
	"reflect.Value": {func() { reflect.ValueOf(1).SetInt(2) }, "unaddressable value"},
	"equality":      {func() { var a, b any = []int{}, []int{}; _ = a == b }, "comparing uncomparable type"},
	"key":           {func() { m := map[any]int{}; m[[]int{}] = 1 }, "unhashable type"},
	"channel":       {func() { var c chan int; close(c) }, "close of nil channel"},
	"library":       {func() { strings.Repeat("x", -1) }, "negative Repeat count"},
	"callback":      {func() { slices.SortFunc([]int{2, 1}, func(a, b int) int { return []int{}[a] }) }, "index out of range"},
}

// A bug of the engine is a failure of ours wherever it comes up, with the place. The program cannot recover from it.
func TestBugsOfTheEngineAreFailures(t *testing.T) {
	for name, bug := range bugs {
		for _, body := range []string{
			`fault(); return 1, nil`,
			`return try(fault), nil`,
			`defer fault(); return 1, nil`,
			`return try(func() { defer fault(); panic("mine") }), nil`,
			`s := fmt.Sprint(shout("x")); return s, nil`,
			`return try(func() { json.Marshal(shout("x")) }), nil`,
			`sort.Sort(list{3, 1, 2}); return 1, nil`,
			`next, stop := iter.Pull(func(yield func(int) bool) { fault(); yield(1) }); defer stop(); _, ok := next(); return ok, nil`,
		} {
			c := compile(t, faultTypes, body)
			plantOp(t, c, "fault", func(unsafe.Pointer) { bug.run() })
			v, err, p := c.Run(newCall(t))
			if p == nil || p.Class != ClassFailure || !strings.Contains(p.Message, bug.text) || !strings.Contains(p.Message, "TestBugs") && !strings.Contains(p.Message, "init") {
				t.Errorf("%s: %s: got %v, %v, %+v", name, body, v, err, p)
			}
		}
	}
}

// So is a bug in the parts of the engine that are no operations: what makes frames, finds methods, calls for the host.
func TestBugsBesideOperationsAreFailures(t *testing.T) {
	decls := faultTypes + "func two(a int) int { return a + len(after) }\nvar s fmt.Stringer = shout(\"x\")\nfunc named() string { return s.String() }"
	body := `return try(func() { defer func() { recover() }(); two(1); fault(); named(); fmt.Sprint(shout("y")) }), nil`
	if _, err, p := compile(t, decls, body).Run(newCall(t)); err != nil || p != nil {
		t.Fatal(err, p)
	}
	for name, spoil := range map[string]func(c *Compiled){
		"frames":     func(c *Compiled) { functionOf(t, c, "fault").frame = nil },
		"templates":  func(c *Compiled) { functionOf(t, c, "two").template = nil },
		"results":    func(c *Compiled) { functionOf(t, c, "String").results = nil },
		"methods":    func(c *Compiled) { c.mc.dyn = nil },
		"operations": func(c *Compiled) { plantOp(t, c, "fault", nil) },
		"receivers":  func(c *Compiled) { functionOf(t, c, "String").params = nil },
		"blocks":     func(c *Compiled) { functionOf(t, c, "fault").entry.run = nil },
		"variables":  func(c *Compiled) { c.mc.own[0].p = nil },
		"start":      func(c *Compiled) { c.run.params = nil },
	} {
		c := compile(t, decls, body)
		spoil(c)
		if v, err, p := c.Run(newCall(t)); p == nil || p.Class != ClassFailure {
			t.Errorf("%s: got %v, %v, %+v", name, v, err, p)
		}
	}
}

// Faults of programs stay theirs, with Go's text: each runtime error that an instruction can raise, and panics of host functions. A program
// recovers from them.
func TestFaultsOfProgramsAreTheirs(t *testing.T) {
	for body, want := range map[string]string{
		`var p *int; return *p, nil`:                                                   "invalid memory address",
		`var p *int; *p = 1`:                                                           "invalid memory address",
		`var p *[4]string; return p[2], nil`:                                           "invalid memory address",
		`var p *struct{ a, b string }; p.b = "x"`:                                      "invalid memory address",
		`var p *[9]*int; x := *p; return x, nil`:                                       "invalid memory address",
		`var f func(); f()`:                                                            "invalid memory address",
		`var f func(); defer f()`:                                                      "invalid memory address",
		`var e error; return e.Error(), nil`:                                           "invalid memory address",
		`var e error; f := e.Error; return f(), nil`:                                   "invalid memory address",
		`var e error; defer e.Error()`:                                                 "invalid memory address",
		`var p *shout; return p.String(), nil`:                                         "invalid memory address",
		`var p *shout; f := fmt.Stringer(p); f.String()`:                               "called using nil *shout pointer",
		`var c *recurgent.Call; c.Arg(0, "x")`:                                         "invalid memory address",
		`var b *strings.Builder; b.Len()`:                                              "invalid memory address",
		`var d *time.Duration; fmt.Stringer(d).String()`:                               "called using nil *Duration pointer",
		`x, y := 1, 0; return x / y, nil`:                                              "divide by zero",
		`x, y := uint8(1), uint8(0); return x % y, nil`:                                "divide by zero",
		`x, n := 1, -1; return x << n, nil`:                                            "negative shift amount",
		`s, i := []int{1}, 5; return s[i], nil`:                                        "index out of range [5] with length 1",
		`s, i := []int{1}, uint64(1<<63); return s[i], nil`:                            "index out of range [9223372036854775808] with length 1",
		`s, i := "abc", -1; return s[i], nil`:                                          "index out of range [-1]",
		`a, i := [2]int{}, 2; return a[i], nil`:                                        "index out of range [2] with length 2",
		`s, i := "abc", 7; return s[i:], nil`:                                          "slice bounds out of range [7:3]",
		`s, i := []int{1}, 7; return s[:0:i], nil`:                                     "slice bounds out of range [::7] with capacity 1",
		`s, i := [3]int{}, 7; return s[:i], nil`:                                       "slice bounds out of range [:7] with length 3",
		`s := []int{1}; return [2]int(s), nil`:                                         "cannot convert slice with length 1",
		`n := -1; return make([]int, n), nil`:                                          "makeslice: len out of range",
		`n := 1 << 45; return make([]string, n), nil`:                                  "makeslice: len out of range",
		`n := -1; return make(chan int, n), nil`:                                       "makechan: size out of range",
		`var m map[string]int; m["a"] = 1`:                                             "assignment to entry in nil map",
		`m := map[any]int{}; m[[]int{}] = 1`:                                           "hash of unhashable type []int",
		`m := map[any]int{1: 1}; return m[[]int{}], nil`:                               "hash of unhashable type []int",
		`m := map[any]int{1: 1}; delete(m, []int{})`:                                   "hash of unhashable type []int",
		`m := map[any]int{1: 1}; defer delete(m, []int{})`:                             "hash of unhashable type []int",
		`m := map[[2]any]int{{1, 2}: 1}; m[[2]any{[]int{}}]++`:                         "hash of unhashable type []int",
		`type k struct{ a any; b int }; m := map[k]int{{1, 2}: 1}; m[k{a: []int{}}]++`: "hash of unhashable type []int",
		`m := map[any]int{}; for i := range 100 { m[i] = i }; for range m { }; for range m { m[[]int{}] = 1 }`: "hash of unhashable type []int",
		`var a, b any = []int{}, []int{}; return a == b, nil`:                                                  "comparing uncomparable type []int",
		`type k struct{ a any }; a, b := k{[]int{}}, k{[]int{}}; return a == b, nil`:                           "comparing uncomparable type []int",
		`a, b := [2]any{[]int{}}, [2]any{[]int{}}; return a == b, nil`:                                         "comparing uncomparable type []int",
		`var v any = 1; return v.(string), nil`:                                                                "interface conversion: interface {} is int, not string",
		`var v any; return v.(fmt.Stringer), nil`:                                                              "interface conversion: interface is nil",
		`c := make(chan int); close(c); close(c)`:                                                              "close of closed channel",
		`var c chan int; close(c)`:                                                                             "close of nil channel",
		`var c chan int; defer close(c)`:                                                                       "close of nil channel",
		`c := make(chan int, 1); close(c); c <- 1`:                                                             "send on closed channel",
		`c := make(chan int, 1); close(c); select { case c <- 1: default: }`:                                   "send on closed channel",
		`return strings.Repeat("x", len(call.Args)-1), nil`:                                                    "negative Repeat count",
		`return regexp.MustCompile("("), nil`:                                                                  "missing closing )",
		`sort.Slice(5, nil)`:                                                                                   "reflect: call of Swapper",
		`return sort.Search(3, nil), nil`:                                                                      "invalid memory address",
		`slices.SortFunc([]int{2, 1}, nil)`:                                                                    "invalid memory address",
		`return slices.Max([]int{}), nil`:                                                                      "slices.Max: empty list",
		`return slices.Insert([]int{}, 5, 1), nil`:                                                             "slice bounds out of range [5:0]",
		`var b strings.Builder; b.Grow(len(call.Args) - 1)`:                                                    "strings.Builder.Grow: negative count",
		`return strings.Map(func(r rune) rune { var p *rune; return *p }, "abc"), nil`:                         "invalid memory address",
		`for range func(yield func() bool) { var p *int; *p = 1; yield() } { }`:                                "invalid memory address",
		`next, stop := iter.Pull(func(yield func(int) bool) { var p *int; *p = 1 }); defer stop(); next()`:     "invalid memory address",
		`var next func() (int, bool); next, _ = iter.Pull(func(yield func(int) bool) { next() }); next()`:      "iter.Pull",
		`return rand.IntN(len(call.Args)), nil`:                                                                "invalid argument to IntN",
		`panic("mine")`:                                                                                        "mine",
		`panic(fmt.Errorf("mine"))`:                                                                            "mine",
		`defer func() { panic(fmt.Sprint("second after ", recover())) }(); panic("first")`:                     "second after first",
	} {
		if !strings.Contains(body, "return") {
			body += "; return nil, nil"
		}
		c := compile(t, faultTypes, body)
		if _, _, p := c.Run(newCall(t)); p == nil || p.Class == ClassFailure || !strings.Contains(p.Message, want) {
			t.Errorf("%s: got %+v, want %q", body, p, want)
		}
		c = compile(t, faultTypes+"func body(call *recurgent.Call) (any, error) { "+body+" }\n", `return fmt.Sprint(try(func() { body(call) })), nil`)
		if v, _, p := c.Run(newCall(t)); p != nil || !strings.Contains(v.(string), want) {
			t.Errorf("%s: recovered %v, %+v, want %q", body, v, p, want)
		}
	}
}

// The functions in which programs' faults come up are known by their names, which nothing but this test holds together.
func TestBlamedFunctionsExist(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	functions := map[string]bool{}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				functions[fn.Name.Name] = true
			}
		}
	}
	for _, name := range slices.Concat(slices.Sorted(maps.Keys(raises)), slices.Sorted(maps.Keys(callers))) {
		if !functions[name] {
			t.Errorf("there is no function %s: its panics end runs as failures of the engine", name)
		}
	}
}
