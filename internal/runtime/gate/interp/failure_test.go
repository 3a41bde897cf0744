package interp

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/recurgentd/recurgentd/internal/runtime/gate"
)

// plant makes the program's function of that name fail as the engine fails on what it cannot do. What is planted here exists in tests
// only.
func plant(t *testing.T, c *Compiled, name string, with any) {
	t.Helper()
	plantOp(t, c, name, func(unsafe.Pointer) { panic(with) })
}

// plantOp puts an operation in front of those of the program's function of that name.
func plantOp(t *testing.T, c *Compiled, name string, o op) {
	t.Helper()
	f := functionOf(t, c, name)
	f.entry.ops = append([]op{o}, f.entry.ops...)
	f.entry.link()
}

func functionOf(t *testing.T, c *Compiled, name string) *fn {
	t.Helper()
	for _, f := range c.mc.order {
		if f.ssa.Name() == name {
			return f
		}
	}
	t.Fatalf("no function %s", name)
	return nil
}

const faultTypes = `
type shout string
func (s shout) String() string { fault(); return "!" }
func (s shout) MarshalJSON() ([]byte, error) { fault(); return []byte("1"), nil }
func (s shout) Error() string { fault(); return "e" }
type list []int
func (l list) Len() int { return len(l) }
func (l list) Less(i, j int) bool { fault(); return l[i] < l[j] }
func (l list) Swap(i, j int) { l[i], l[j] = l[j], l[i] }
var after []string
func fault() { after = after[:len(after):len(after)] }
func try(f func()) (got any) { defer func() { got = recover() }(); f(); return nil }
`

// A program cannot recover from a fault of the engine, nor can a host function hide it, wherever it comes up: the run ends with the
// engine's words, and deferred calls do not run.
func TestFailureEndsTheRun(t *testing.T) {
	for _, body := range []string{
		`fault(); return 1, nil`,
		`return try(fault), nil`,
		`defer func() { recover() }(); fault(); return 1, nil`,
		`defer func() { if r := recover(); r != nil { panic("mine") } }(); fault(); return 1, nil`,
		`defer fault(); panic("mine")`,
		`return try(func() { defer fault(); panic("mine") }), nil`,
		`return fmt.Sprint(shout("x")), nil`,
		`return try(func() { fmt.Sprint(shout("x")) }), nil`,
		`s := fmt.Sprintf("%v %s", shout("x"), "y"); return len(s), nil`,
		`_, err := json.Marshal([]any{shout("x")}); return err == nil, nil`,
		`return try(func() { json.Marshal(shout("x")) }), nil`,
		`sort.Sort(list{3, 1, 2}); return 1, nil`,
		`return try(func() { slices.SortFunc([]int{2, 1}, func(a, b int) int { fault(); return a - b }) }), nil`,
		`return strings.Map(func(r rune) rune { fault(); return r }, "abc"), nil`,
		`for i := range func(yield func(int) bool) { defer func() { recover() }(); yield(1) } { fault(); _ = i }; return 1, nil`,
		`next, stop := iter.Pull(func(yield func(int) bool) { defer func() { recover() }(); fault(); yield(1) }); defer stop(); _, ok := next(); return ok, nil`,
		`return nil, shout("e")`,
		`return errors.Is(fmt.Errorf("a: %w", shout("e")), io.EOF), fmt.Errorf("b: %w", shout("e"))`,
	} {
		c := compile(t, faultTypes, body)
		plant(t, c, "fault", &Failure{Why: "no operation x"})
		v, err, p := c.Run(newCall(t))
		if err != nil && p == nil { // its text is asked for when the run is over
			p = &Panic{Class: ClassFailure}
			func() {
				defer func() { p.Message = recover().(*Failure).Why }()
				_ = err.Error()
			}()
		}
		if p == nil || p.Class != ClassFailure || p.Message != "no operation x" || v != nil {
			t.Errorf("%s: got %v, %v, %+v", body, v, err, p)
		}
	}
}

// What the engine cannot compile while the program runs is a failure too, be it for a limit or a fault.
func TestFailureOfLateCompiling(t *testing.T) {
	c := compile(t, faultTypes, `return try(fault), nil`)
	plant(t, c, "fault", limit("too many types"))
	if _, _, p := c.Run(newCall(t)); p == nil || p.Class != ClassFailure || p.Message != "too many types" {
		t.Errorf("got %+v", p)
	}
	for _, body := range []string{`return try(fault), nil`, `return fmt.Sprint(shout("x")), nil`} {
		c = compile(t, faultTypes, body)
		for _, f := range c.mc.order {
			if name := f.ssa.Name(); name == "fault" || name == "String" {
				f.ready, f.ssa = false, nil // as if nobody had needed it so far, and it could not be compiled
			}
		}
		if _, _, p := c.Run(newCall(t)); p == nil || p.Class != ClassFailure || !strings.Contains(p.Message, "compiling: ") {
			t.Errorf("%s: got %+v", body, p)
		}
	}
}

// A fault in a method that encodes the result is no fault of the value.
func TestFailureWhileEncoding(t *testing.T) {
	c := compile(t, faultTypes, `return []any{shout("x")}, nil`)
	plant(t, c, "fault", &Failure{Why: "no operation x"})
	v, err, p := c.Run(newCall(t))
	if err != nil || p != nil {
		t.Fatal(err, p)
	}
	_, err = Encode(v)
	if f, ok := errors.AsType[*Failure](err); !ok || f.Why != "no operation x" {
		t.Errorf("got %v", err)
	}
	if _, err := Encode(func() {}); err == nil || errors.As(err, new(*Failure)) {
		t.Errorf("a value without JSON form: %v", err)
	}
}

// A program that asks for too much gets an error of its own; only a fault of the engine counts as an engine failure.
func TestLimitsAreNoFailures(t *testing.T) {
	for name, c := range map[string]struct{ decls, body, want string }{
		"array":    {"var a [1 << 31]byte", "a[1] = 1\nreturn a[2], nil", "larger than 1 GiB"},
		"struct":   {"type s struct{ a, b [600 << 20]byte }", "p := new(s)\nreturn p.a[1] + p.b[1], nil", "larger than 1 GiB"},
		"value":    {"var a [5 << 20]byte", "b := a\nreturn b == a, nil", "more than 4 MiB"},
		"embedded": {"", "var x struct{ fmt.Stringer }\nreturn x.Stringer == nil, nil", ""},
	} {
		g, err := gate.New(gate.Options{})
		if err != nil {
			t.Fatal(err)
		}
		p, r := g.Check("package tool\n" + c.decls + "\nfunc Run(call *recurgent.Call) (any, error) {\n" + c.body + "\n}\n")
		if r != nil {
			t.Fatalf("%s: refused: %s", name, r.Message)
		}
		compiled, err := Compile(p)
		switch {
		case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		case errors.As(err, new(*Failure)):
			t.Errorf("%s: a failure of the engine: %v", name, err)
		}
		if compiled != nil {
			compiled.Close()
		}
	}
	if err := compileError(&Failure{Why: "x"}); !errors.As(err, new(*Failure)) {
		t.Errorf("got %v", err)
	}
	var raw any = json.RawMessage("1")
	if err := compileError(reflect.ValueOf(raw)); !errors.As(err, new(*Failure)) {
		t.Errorf("got %v", err)
	}
}
