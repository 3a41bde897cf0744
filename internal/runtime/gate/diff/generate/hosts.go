package generate

import (
	"go/types"
	"slices"
	"sync"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/diff/std"
)

// A host type is a struct of the standard library whose fields programs cannot access.
type host struct {
	typ        types.Type
	make, show string // expressions: a new value, made with r; the text of the value v
}

// hosts lists the host types that programs hold and embed.
var hosts = sync.OnceValue(func() []host {
	find := func(path, name string) types.Type {
		imp, err := std.Importer()
		if err != nil {
			panic("generate: " + err.Error())
		}
		pkg, err := imp.Import(path)
		if err != nil {
			panic("generate: " + err.Error())
		}
		return pkg.Scope().Lookup(name).Type()
	}
	return []host{
		{find("time", "Time"), "time.Unix(r.int()%4e9, int64(r.n(2))*5e8).UTC()",
			"time.Time(v).Format(time.RFC3339Nano)"},
		{find("net/netip", "Addr"), "netip.AddrFrom4([4]byte{10, 0, byte(r.n(2)), byte(r.n(4))})",
			"netip.Addr(v).String()"},
	}
})

// hostOf returns the host type that t is or is derived from.
func hostOf(t types.Type) (host, bool) {
	for _, h := range hosts() {
		if types.Identical(h.typ.Underlying(), t.Underlying()) {
			return h, true
		}
	}
	return host{}, false
}

// isStruct reports whether t is a struct whose fields programs can access.
func isStruct(t types.Type) bool {
	_, hidden := hostOf(t)
	return kind[*types.Struct](t) && !hidden
}

var (
	// heldHosts are types that programs use for fields and elements, embeddedHosts those that they embed.
	heldHosts = []string{"time.Time", "time.Duration", "netip.Addr", "json.Number", "json.RawMessage", "xml.Name",
		"fmt.Stringer", "sort.StringSlice", "error", "any"}
	embeddedHosts = []string{"time.Time", "*time.Time", "time.Duration", "netip.Addr", "json.RawMessage",
		"fmt.Stringer", "sort.StringSlice", "error", "sort.Interface"}
)

// callable reports whether generated programs call a method: one of their own, or one of the standard library with
// parameters and results whose types they have.
func callable(m types.Object) bool {
	return m.Pkg() == nil || m.Pkg().Path() == "tool" && !ofLibrary(m) ||
		slices.Contains([]string{"Unix", "IsZero", "Year", "Add", "Equal", "After", "Sub", "Compare", "Weekday",
			"String",
			"MarshalJSON", "MarshalText", "Seconds", "Round", "Abs", "Is4", "Next", "IsValid", "Less", "Int64", "Len",
			"Swap", "Sort"}, m.Name())
}

// reach visits t and every type that a value of t leads to, until visit returns false.
func reach(t types.Type, visit func(types.Type) bool) {
	var seen []types.Type
	var walk func(types.Type) bool
	walk = func(t types.Type) bool {
		t = types.Unalias(t)
		if slices.ContainsFunc(seen, func(s types.Type) bool { return types.Identical(s, t) }) {
			return true
		}
		seen = append(seen, t)
		if !visit(t) {
			return false
		}
		switch u := t.Underlying().(type) {
		case *types.Struct:
			for f := range u.Fields() {
				if !walk(f.Type()) {
					return false
				}
			}
		case *types.Map:
			return walk(u.Key()) && walk(u.Elem())
		case interface{ Elem() types.Type }:
			return walk(u.Elem())
		}
		return true
	}
	walk(t)
}
