package generate

import (
	"go/types"
	"slices"
)

// jsonUse writes uses of encoding/json. It writes none for types that hold a pointer to itself, which natively the
// package follows for ever.
func jsonUse(g *gen, t types.Type) string {
	endless := false
	reach(t, func(t types.Type) bool {
		endless = endless || pointsToItself(t) || types.IsInterface(t) && slices.ContainsFunc(g.pool, pointsToItself)
		return !endless
	})
	if endless {
		return ""
	}
	return jsonText
}

// pointsToItself reports whether t is a pointer that leads only to pointers.
func pointsToItself(t types.Type) bool {
	for range 20 {
		p, ok := t.Underlying().(*types.Pointer)
		if !ok {
			return false
		}
		t = p.Elem()
	}
	return true
}

// xmlUse writes uses of encoding/xml. It writes none for programs with a type that embeds itself, on which natively the
// package runs out of stack.
func xmlUse(g *gen, _ types.Type) string {
	for _, t := range g.pool {
		embedsItself := false
		reach(t, func(t types.Type) bool {
			embedsItself = embedsItself || embeds(t, t, nil)
			return !embedsItself
		})
		if embedsItself || pointsToItself(t) {
			return ""
		}
	}
	return xmlText
}

// embeds reports whether in embeds t, by value or by pointer, at any depth.
func embeds(in, t types.Type, seen []types.Type) bool {
	st, ok := in.Underlying().(*types.Struct)
	if !ok || slices.ContainsFunc(seen, func(s types.Type) bool { return types.Identical(s, in) }) {
		return false
	}
	seen = append(seen, in)
	for f := range st.Fields() {
		inner := f.Type()
		if p, ok := inner.Underlying().(*types.Pointer); ok {
			inner = p.Elem()
		}
		if f.Embedded() && (types.Identical(inner, t) || embeds(inner, t, seen)) {
			return true
		}
	}
	return false
}
