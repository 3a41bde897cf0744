package fix

import (
	"go/ast"
	"go/types"
	"strings"
)

// isSequence reports whether t is an iter.Seq.
func isSequence(t types.Type) bool {
	return t != nil && strings.HasPrefix(types.TypeString(t, nil), "iter.Seq[")
}

// sequenceAsList collects what a sequence yields where a list is wanted, as in keys := maps.Keys(m),
// sort.Strings(keys). The keys of a map have no order: they are sorted if the program sorts them.
func (m *fixer) sequenceAsList(x ast.Expr) bool {
	if !isSequence(m.Info.TypeOf(x)) || len(m.edits) > 0 {
		return false
	}
	made := x
	if v := m.variable(x); v != nil {
		def, value := m.definition(v)
		if value == nil || !m.setOnce(v, def) {
			return false
		}
		made = value
	}
	c, ok := ast.Unparen(made).(*ast.CallExpr)
	if !ok {
		return false
	}
	switch name := m.callee(c); {
	case name == "maps.Keys", name == "maps.Values":
		list := m.text(x)
		if p, ok := m.parents[x].(*ast.CallExpr); ok && isName(p.Fun, "append") && p.Ellipsis.IsValid() {
			list = m.text(p.Args[0])
		}
		if !m.sorts(list) {
			return false
		}
	case !strings.HasPrefix(name, "strings.") && !strings.HasPrefix(name, "slices."):
		return false
	}
	return m.fix("a sequence is collected into a list", m.before(c, "slices.Collect("), m.after(c, ")"))
}

// oneVariable drops the _ of for _, k := range maps.Keys(m).
func (m *fixer) oneVariable(_ types.Error, path []ast.Node, _ []string) bool {
	r, ok := nearest[*ast.RangeStmt](path, nil)
	if ok && m.variable(r.X) != nil && m.sorts(m.text(r.X)) {
		return m.sequenceAsList(r.X) // the list is meant, whose elements are the second variable
	}
	return ok && r.Value != nil && isName(r.Key, "_") && m.fix("a sequence yields one value",
		edit{m.offset(r.Key.Pos()), m.offset(r.Value.Pos()), ""})
}

// uninferred converts JSON values that are passed where a function wants a list or a map of any type.
func (m *fixer) uninferred(_ types.Error, path []ast.Node, _ []string) bool {
	c, ok := nearest[*ast.CallExpr](path, nil)
	if !ok {
		return false
	}
	sig, ok := m.Info.TypeOf(c.Fun).(*types.Signature)
	if !ok {
		if id, named := c.Fun.(*ast.Ident); named {
			sig, ok = signatureOf(m.Info.Uses[id])
		} else if s, selected := c.Fun.(*ast.SelectorExpr); selected {
			sig, ok = signatureOf(m.Info.Uses[s.Sel])
		}
	}
	done := false
	for i, a := range c.Args {
		if !ok || i >= sig.Params().Len() || !isEmptyInterface(m.Info.TypeOf(a)) {
			continue
		}
		t := sig.Params().At(i).Type()
		if p, param := types.Unalias(t).(*types.TypeParam); param {
			t = coreOf(p)
		}
		switch t.Underlying().(type) {
		case *types.Slice:
			done = m.convert(a, anyList) || done
		case *types.Map:
			done = m.convert(a, anyObject) || done
		}
	}
	return done
}

func signatureOf(obj types.Object) (*types.Signature, bool) {
	if obj == nil {
		return nil, false
	}
	sig, ok := obj.Type().(*types.Signature)
	return sig, ok
}

// coreOf returns the type that a constraint such as ~[]E has, or the constraint itself.
func coreOf(p *types.TypeParam) types.Type {
	i, ok := p.Constraint().Underlying().(*types.Interface)
	if !ok || i.NumEmbeddeds() != 1 {
		return p.Constraint()
	}
	if u, ok := i.EmbeddedType(0).(*types.Union); ok && u.Len() == 1 {
		return u.Term(0).Type()
	}
	return i.EmbeddedType(0)
}

// sliced collects a sequence if the program takes a part or an element of it.
func (m *fixer) sliced(_ types.Error, path []ast.Node, _ []string) bool {
	s, ok := nearest[*ast.SliceExpr](path, nil)
	return ok && (m.sequenceAsList(s.X) || m.behindPointer(s.X) ||
		isEmptyInterface(m.Info.TypeOf(s.X)) && m.slicedJSON(s))
}

// slicedJSON takes a part of a JSON value that other uses show as a text or a list.
func (m *fixer) slicedJSON(s *ast.SliceExpr) bool {
	to := m.shown(s.X)
	if to == nil {
		if p, ok := m.parents[s].(*ast.CallExpr); ok {
			to = m.parameterType(p, s)
		}
	}
	return to != nil && !isEmptyInterface(to) && m.convert(s.X, to)
}
