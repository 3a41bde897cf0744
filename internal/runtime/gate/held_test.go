package gate

import (
	"go/token"
	"go/types"
	"strings"
	"testing"
)

// cert declares a function that returns a certificate, whose addresses have a type of package net.
const cert = `
func cert() *x509.Certificate { return &x509.Certificate{} }
`

// A program cannot hold values of types that it cannot import, however it obtains them.
func TestHeldTypes(t *testing.T) {
	t.Parallel()
	const imports = "crypto/x509 errors fmt reflect sort slices "
	const ip = "cert().IPAddresses[0]"
	for _, test := range []struct{ name, decls, body, what string }{
		{"raw memory", "", "p := (*[1 << 40]byte)(reflect.ValueOf(1).UnsafePointer()); return p[0], nil",
			"unsafe.Pointer"},
		{"chain", "", "return reflect.ValueOf(1).Elem().Field(0).UnsafePointer() != nil, nil", "unsafe.Pointer"},
		{"method", "", "return " + ip + ".String(), nil", "net.IP"},
		{"method value", "", "f := " + ip + ".String; return f(), nil", "net.IP"},
		{"variable", "", "v := " + ip + "; return v.String(), nil", "net.IP"},
		{"two variables", "", "var a, b = 1, " + ip + "; return b.String() + fmt.Sprint(a), nil", "net.IP"},
		{"address", "", "v := &cert().IPAddresses; return (*v)[0].To4(), nil", "net.IP"},
		{"embedded", "type e struct{ *x509.Certificate }", "return e{cert()}.IPAddresses[0].String(), nil", "net.IP"},
		{"embedded twice", "type e struct{ x509.Certificate }; type f struct{ *e }",
			"return f{&e{*cert()}}.IPAddresses[0].String(), nil", "net.IP"},
		{"converted struct", "type e x509.Certificate", "return (*e)(cert()).IPAddresses[0].String(), nil", "net.IP"},
		{"alias", "type e = x509.Certificate", "var x *e = cert(); return x.IPAddresses[0].String(), nil", "net.IP"},
		{"asserted interface", "", "return any(" + ip + ").(interface{ String() string }).String(), nil", "net.IP"},
		{"parameter of type any", "func at(v any) string { return v.(interface{ String() string }).String() }",
			"return at(" + ip + "), nil", "net.IP"},
		{"variable of type any", "", "var v any = " + ip + "; _, ok := v.(interface{ String() string }); return ok, nil",
			"net.IP"},
		{"implicit interface", "type namer interface{ String() string }", "var s namer = " + ip + "; s.String()",
			"net.IP"},
		{"returned interface", "func get() (interface{ String() string }, error) { return " + ip + ", nil }",
			"v, err := get(); return v.String(), err", "net.IP"},
		{"list", "", "for _, v := range []any{" + ip + "} { return v.(interface{ String() string }).String(), nil }",
			"net.IP"},
		{"map", "", "m := map[string]any{\"v\": " + ip + "}; return m, nil", "net.IP"},
		{"channel", "", "c := make(chan any, 1); c <- " + ip + "; return (<-c).(interface{ String() string }).String(), nil",
			"net.IP"},
		{"type switch", "",
			"switch v := any(" + ip + ").(type) { case interface{ String() string }: return v.String(), nil }", "net.IP"},
		{"inferred", "func same[T any](v T) T { return v }", "return same(" + ip + "), nil", "net.IP"},
		{"inferred by a function", "func get[T any](f func() T) any { return f() }",
			"return get(func() any { return " + ip + " }), nil", "net.IP"},
		{"constraint with its method", "func at[T interface{ String() string }](v T) string { return v.String() }",
			"return at(" + ip + "), nil", "net.IP"},
		{"made list", "func list[T any](v ...T) []T { return v }", "return list(" + ip + ")[0].String(), nil", "net.IP"},
		{"sorted", "",
			"s := []any{1}; slices.SortFunc(s, func(a, b any) int { return len(" + ip + ".String()) })", "net.IP"},
		{"composite", "", "_ = x509.Certificate{IPAddresses: cert().IPAddresses}", "net.IP"},
		{"compared", "", "return " + ip + " == nil, nil", "net.IP"},
		{"panic", "", "defer func() { p := recover().(interface{ String() string }); _ = p }(); panic(" + ip + ")",
			"net.IP"},
		{"scanned", "", "_, err := fmt.Sscan(\"1\", &" + ip + "); return nil, err", "net.IP"},
		{"method within a print", "", "return fmt.Sprint(" + ip + ".String()), nil", "net.IP"},
		{"conversion within a print", "", "return fmt.Sprint(any(" + ip + ")), nil", "net.IP"},
		{"spread into a print", "", "args := []any{" + ip + "}; return fmt.Sprint(args...), nil", "net.IP"},
		{"function within a print", "func keep(v any) any { return v }", "return fmt.Sprint(keep(" + ip + ")), nil",
			"net.IP"},
		{"another print", "type fmt2 struct{}\nfunc (fmt2) Sprint(v any) any { return v }",
			"fmt := fmt2{}; return fmt.Sprint(cert().IPAddresses), nil", "net.IP"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, r := newGate(t).Check(program(imports, cert+test.decls, test.body))
			if r == nil {
				t.Fatal("accepted")
			}
			if want := "a value of type " + test.what + " is not available"; r.Type != dependencyPolicy || !strings.Contains(r.Message, want) || r.Hint == "" {
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
