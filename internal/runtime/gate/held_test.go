package gate

import (
	"go/token"
	"go/types"
	"strings"
	"testing"
)

// cycle declares a function that returns the error of encoding/json for a cycle, whose Value is a reflect.Value.
const cycle = `
type ring struct{ Next *ring }

func cycle() *json.UnsupportedValueError {
	r := &ring{}
	r.Next = r
	_, err := json.Marshal(r)
	var uve *json.UnsupportedValueError
	errors.As(err, &uve)
	return uve
}
`

// A program cannot hold values of reflect that the allowed packages expose, however it obtains them.
func TestHeldTypes(t *testing.T) {
	t.Parallel()
	const imports = "encoding/json encoding/xml errors fmt sort slices "
	for _, test := range []struct{ name, decls, body, what string }{
		{"raw memory", "", "p := (*[1 << 40]byte)(cycle().Value.UnsafePointer()); return p[0], nil", "reflect.Value"},
		{"method", "", "return cycle().Value.Pointer(), nil", "reflect.Value"},
		{"chain", "", "return cycle().Value.Elem().Field(0).UnsafePointer() != nil, nil", "reflect.Value"},
		{"method value", "", "f := cycle().Value.Pointer; return f(), nil", "reflect.Value"},
		{"variable", "", "v := cycle().Value; return v.Int(), nil", "reflect.Value"},
		{"two variables", "", "var a, b = 1, cycle().Value; return b.Int() + int64(a), nil", "reflect.Value"},
		{"address", "", "v := &cycle().Value; return v.CanSet(), nil", "reflect.Value"},
		{"embedded", "type e struct{ *json.UnsupportedValueError }", "return e{cycle()}.Value.Int(), nil",
			"reflect.Value"},
		{"embedded twice", "type e struct{ json.UnsupportedValueError }; type f struct{ *e }",
			"return f{&e{*cycle()}}.Value.Int(), nil", "reflect.Value"},
		{"converted struct", "type e json.UnsupportedValueError", "return (*e)(cycle()).Value.Int(), nil",
			"reflect.Value"},
		{"alias", "type e = json.UnsupportedValueError", "var x *e = cycle(); return x.Value.Int(), nil",
			"reflect.Value"},
		{"asserted interface", "", "return any(cycle().Value).(interface{ Pointer() uintptr }).Pointer(), nil",
			"reflect.Value"},
		{"parameter of type any", "func at(v any) uintptr { return v.(interface{ Pointer() uintptr }).Pointer() }",
			"return at(cycle().Value), nil", "reflect.Value"},
		{"variable of type any", "",
			"var v any = cycle().Value; _, ok := v.(interface{ SetString(string) }); return ok, nil", "reflect.Value"},
		{"implicit interface", "type setter interface{ SetInt(int64) }", "var s setter = cycle().Value; s.SetInt(5)",
			"reflect.Value"},
		{"returned interface", "func get() (interface{ Pointer() uintptr }, error) { return cycle().Value, nil }",
			"v, err := get(); return v.Pointer(), err", "reflect.Value"},
		{"list", "", "for _, v := range []any{cycle().Value} { return v.(interface{ Pointer() uintptr }).Pointer(), nil }", "reflect.Value"},
		{"map", "", "m := map[string]any{\"v\": cycle().Value}; return m, nil", "reflect.Value"},
		{"channel", "", "c := make(chan any, 1); c <- cycle().Value; return (<-c).(interface{ Pointer() uintptr }).Pointer(), nil", "reflect.Value"},
		{"type switch", "", "switch v := any(cycle().Value).(type) { case interface{ Pointer() uintptr }: return v.Pointer(), nil }", "reflect.Value"},
		{"inferred", "func same[T any](v T) T { return v }", "return same(cycle().Value), nil", "reflect.Value"},
		{"inferred by a function", "func get[T any](f func() T) any { return f() }",
			"return get(func() any { return cycle().Value }), nil", "reflect.Value"},
		{"constraint with its method", "func at[T interface{ Pointer() uintptr }](v T) uintptr { return v.Pointer() }",
			"return at(cycle().Value), nil", "reflect.Value"},
		{"made list", "func list[T any](v ...T) []T { return v }", "return list(cycle().Value)[0].Int(), nil",
			"reflect.Value"},
		{"sorted", "", "s := []any{1}; slices.SortFunc(s, func(a, b any) int { return len(fmt.Sprint(cycle().Value.Kind())) })", "reflect.Value"},
		{"composite", "", "_ = json.UnsupportedValueError{Value: cycle().Value}", "reflect.Value"},
		{"compared", "", "return cycle().Value == cycle().Value, nil", "reflect.Value"},
		{"panic", "", "defer func() { p := recover().(interface{ Pointer() uintptr }); _ = p }(); panic(cycle().Value)",
			"reflect.Value"},
		{"error text", "", "return cycle().Value.String(), nil", "reflect.Value"},
		{"type of a wrong kind", "",
			"var e *json.UnmarshalTypeError; errors.As(json.Unmarshal([]byte(`\"x\"`), new(int)), &e); return e.Type.Elem().Name(), nil", "reflect.Type"},
		{"method of a type", "", "var e *json.UnsupportedTypeError; m, ok := e.Type.MethodByName(\"F\"); m.Func.Call(nil); return ok, nil", "reflect.Type"},
		{"invalid target", "", "var e json.InvalidUnmarshalError; return e.Type.Size(), nil", "reflect.Type"},
		{"marshaler", "", "var e json.MarshalerError; return e.Type.Align(), nil", "reflect.Type"},
		{"xml", "", "var e xml.UnsupportedTypeError; return e.Type.NumMethod(), nil", "reflect.Type"},
		{"type as an interface", "type named interface{ Name() string }",
			"var e json.MarshalerError; var n named = e.Type; return n.Name(), nil", "reflect.Type"},
		{"type as a Stringer", "", "var e json.MarshalerError; var n fmt.Stringer = e.Type; return n.String(), nil",
			"reflect.Type"},
		{"scanned", "", "var e json.MarshalerError; _, err := fmt.Sscan(\"1\", e.Type); return nil, err",
			"reflect.Type"},
		{"method within a print", "", "return fmt.Sprint(cycle().Value.UnsafePointer()), nil", "reflect.Value"},
		{"conversion within a print", "", "return fmt.Sprint(any(cycle().Value)), nil", "reflect.Value"},
		{"spread into a print", "", "args := []any{cycle().Value}; return fmt.Sprint(args...), nil", "reflect.Value"},
		{"function within a print", "func keep(v any) any { return v }", "return fmt.Sprint(keep(cycle().Value)), nil",
			"reflect.Value"},
		{"another print", "type fmt2 struct{}\nfunc (fmt2) Sprint(v any) any { return v }",
			"fmt := fmt2{}; return fmt.Sprint(cycle().Value), nil", "reflect.Value"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, r := newGate(t).Check(program(imports, cycle+test.decls, test.body))
			if r == nil {
				t.Fatal("accepted")
			}
			if want := "a value of type " + test.what +
				" is not available"; r.Type != dependencyPolicy || !strings.Contains(r.Message, want) || r.Hint == "" {
				t.Errorf("got %s %q (%s), want %s %q", r.Type, r.Message, r.Hint, dependencyPolicy, want)
			}
		})
	}
}

// Errors of encoding/json remain useful: their text, their other fields, and the type in a message.
func TestErrorsWithHeldFields(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		"var e *json.UnmarshalTypeError; if errors.As(err, &e) { return fmt.Sprintf(\"%s: %v, not %s at %d\", e.Field, e.Type, e.Value, e.Offset), nil }",
		"return nil, fmt.Errorf(\"%s: %w\", (&json.UnsupportedTypeError{}).Type, err)",
		"var b strings.Builder; var e json.MarshalerError; fmt.Fprintln(&b, (e.Type), e.Err)",
		"var e *json.UnsupportedValueError; ok := errors.As(err, &e); return []any{ok, e.Str, e.Error(), *e}, nil",
		"var e *json.UnmarshalTypeError; copied := *e; return copied.Field, nil",
		"return reflect.DeepEqual(err, io.EOF), nil",
		"f := reflect.DeepEqual; return f(1, 2), nil",
		"var raw json.RawMessage; raw = append(raw, 1); return slices.Clone(raw), nil",
		"return binary.LittleEndian.Uint16([]byte{1, 2}), nil",
	} {
		source := program("encoding/json encoding/binary errors fmt io reflect slices strings", "",
			"err := error(nil)\n"+body)
		if _, r := newGate(t).Check(source); r != nil {
			t.Errorf("%s: %s", body, r.Message)
		}
	}
}

// An unavailable type is found in every part of another type, also after available parts.
func TestHeldParts(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	mine := types.NewPackage("tool", "tool")
	name := types.NewTypeName(token.NoPos, types.NewPackage("os/exec", "exec"), "Cmd", nil)
	bad := types.NewNamed(name, types.NewStruct(nil, nil), nil)
	vars := func(all []types.Type) (out []*types.Var) {
		for i, x := range all {
			out = append(out, types.NewField(token.NoPos, mine, string(rune('A'+i)), x, false))
		}
		return out
	}
	tuple := func(all []types.Type) *types.Tuple { return types.NewTuple(vars(all)...) }
	method := func(name string, results []types.Type) *types.Func {
		return types.NewFunc(token.NoPos, mine, name, types.NewSignatureType(nil, nil, nil, nil, tuple(results), false))
	}
	params := []*types.TypeParam{}
	for _, n := range []string{"A", "B", "C"} {
		params = append(params, types.NewTypeParam(types.NewTypeName(token.NoPos, mine, n, nil),
			types.Universe.Lookup("any").Type()))
	}
	generic := types.NewNamed(types.NewTypeName(token.NoPos, mine, "G", nil), types.NewStruct(nil, nil), nil)
	generic.SetTypeParams(params)
	for form, of := range map[string]func([]types.Type) types.Type{
		"tuple": func(x []types.Type) types.Type { return tuple(x) },
		"parameters": func(x []types.Type) types.Type {
			return types.NewSignatureType(nil, nil, nil, tuple(x), nil,
				false)
		},
		"results": func(x []types.Type) types.Type {
			return types.NewSignatureType(nil, nil, nil, nil, tuple(x),
				false)
		},
		"struct": func(x []types.Type) types.Type { return types.NewStruct(vars(x), nil) },
		"interface": func(x []types.Type) types.Type {
			return types.NewInterfaceType([]*types.Func{method("A", x[:1]), method("B", x[1:2]), method("C", x[2:])},
				nil).Complete()
		},
		"map":     func(x []types.Type) types.Type { return types.NewMap(x[0], types.NewMap(x[1], x[2])) },
		"pointer": func(x []types.Type) types.Type { return types.NewPointer(types.NewSlice(tuple(x))) },
		"channel": func(x []types.Type) types.Type {
			return types.NewChan(types.SendRecv,
				types.NewArray(tuple(x), 2))
		},
		"instance": func(x []types.Type) types.Type {
			made, err := types.Instantiate(nil, generic, x, false)
			if err != nil {
				t.Fatal(err)
			}
			return made
		},
	} {
		for at := range 4 { // 3: none is bad
			parts := []types.Type{types.Typ[types.Int], types.Typ[types.Int], types.Typ[types.Int]}
			want := name
			if at < 3 {
				parts[at] = bad
			} else {
				want = nil
			}
			h := holder{check: &check{gate: g, pkg: mine}, known: map[types.Type]*types.TypeName{}}
			if got := h.mentioned(of(parts)); got != want {
				t.Errorf("%s, bad at %d: got %v, want %v", form, at, got, want)
			}
		}
	}
}
