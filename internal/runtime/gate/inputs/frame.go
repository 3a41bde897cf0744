package inputs

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
)

// A frame is one call of a function of the program.
type frame struct {
	f        *finder
	parent   *frame // of a closure: the function around it
	vars     map[types.Object]*value
	numbers  map[types.Object]int // parameters with a constant value
	declared map[types.Object]int // how deep in branches a variable was declared
	typeArgs map[*types.TypeParam]types.Type
	results  []*value
	returns  *types.Tuple // nil in literals of unknown type
	depth    int          // of calls; Run has 1

	branch  int     // nesting of branches
	missing []*read // the code at hand runs when these are missing
	guards  []*read // it runs only when these are there,
	atLeast int     // and so many positional arguments
	failing int     // it ends in an error
}

func (fr *frame) typeOf(e ast.Expr) types.Type { return fr.resolve(fr.f.info.TypeOf(e)) }

func (fr *frame) owner(obj types.Object) *frame {
	for f := fr; f != nil; f = f.parent {
		if _, ok := f.vars[obj]; ok {
			return f
		}
	}
	return fr
}

func (fr *frame) lookup(obj types.Object) *value {
	if obj == nil {
		return nil
	}
	return fr.owner(obj).vars[obj]
}

// constant is the value of a function's parameter that every caller so far, that is this one, gave as a constant.
func (fr *frame) constant(obj types.Object) (int, bool) {
	for f := fr; f != nil; f = f.parent {
		if n, ok := f.numbers[obj]; ok {
			return n, true
		}
	}
	return 0, false
}

// assign puts a value into a variable, a field or an element.
func (fr *frame) assign(to ast.Expr, v *value, from ast.Expr) {
	switch to := ast.Unparen(to).(type) {
	case *ast.Ident:
		fr.set(to, v, from)
	case *ast.SelectorExpr:
		x := fr.eval(to.X)
		if x != nil && x.preset != nil || fr.isStruct(to.X) {
			fr.presetField(to, from)
		}
		fr.escape(v)
	default:
		fr.eval(to)
		fr.escape(v)
	}
}

func (fr *frame) isStruct(e ast.Expr) bool {
	id, ok := ast.Unparen(e).(*ast.Ident)
	if !ok {
		return false
	}
	t := fr.f.info.TypeOf(id)
	if t == nil {
		return false
	}
	_, ok = t.Underlying().(*types.Struct)
	return ok
}

// presetField notes what a field holds before Bind fills the struct; after Bind, that the program goes on without it.
func (fr *frame) presetField(to *ast.SelectorExpr, from ast.Expr) {
	id, ok := ast.Unparen(to.X).(*ast.Ident)
	if !ok {
		return
	}
	obj := fr.f.info.ObjectOf(id)
	v := fr.lookup(obj)
	if v != nil && v.fields != nil {
		if r := v.fields[to.Sel.Name]; r != nil && contains(fr.missing, r) {
			fr.defaulted(r, from)
		}
		return
	}
	c := fr.f.info.Types[from].Value
	if c == nil {
		return
	}
	next := &value{preset: map[string][]byte{}}
	if v != nil {
		maps.Copy(next.preset, v.preset)
	}
	if text := encodedConstant(c); text != nil {
		next.preset[to.Sel.Name] = text
	}
	fr.owner(obj).vars[obj] = next
}

// defaulted notes that the program puts something in the place of a missing argument.
func (fr *frame) defaulted(r *read, from ast.Expr) {
	r = r.root()
	if r.must {
		return
	}
	r.optional = true
	if from == nil {
		return
	}
	if c := fr.f.info.Types[from].Value; c != nil && r.preset == nil {
		r.preset = encodedConstant(c)
	}
}

// set puts a value into a variable. On a condition it may keep what it held before.
func (fr *frame) set(id *ast.Ident, v *value, from ast.Expr) {
	obj := fr.f.info.ObjectOf(id)
	if obj == nil || id.Name == "_" {
		return
	}
	at := fr.owner(obj)
	old := at.vars[obj]
	delete(at.numbers, obj)
	if v != nil && len(v.reads) == 1 {
		v.reads[0].called(id.Name, fr.depth)
	}
	if v == nil || len(v.reads) == 0 {
		if old != nil {
			for _, r := range old.reads {
				if contains(fr.missing, r) {
					fr.defaulted(r, from)
				}
			}
		}
		if v == nil || len(v.present) == 0 {
			v = elsewhere(v, from == nil || !isZero(fr.f.info, from))
		}
	}
	conditional := at != fr || fr.branch > at.declared[obj]
	if !conditional {
		at.vars[obj] = v
		return
	}
	if old != nil && len(old.reads) == 1 && len(v.reads) == 1 {
		fr.sameVariable(old.reads[0], v.reads[0])
	}
	at.vars[obj] = fr.f.join(old, v)
}

// elsewhere is a value that is not an argument's.
func elsewhere(v *value, other bool) *value {
	out := &value{}
	if v != nil {
		*out = *v
	}
	out.other = out.other || other
	return out
}

// sameVariable joins two places where the program looks for one parameter: it puts either into one variable, the second
// on a condition.
func (fr *frame) sameVariable(was, now *read) {
	a, b := was.root(), now.root()
	switch {
	case a == b:
	case contains(fr.missing, a) && b.place < 0, contains(fr.missing, a) && a.place < 0:
		fr.f.merge(a, b)
	case a.place >= 0 && len(a.names) == 0 && b.place < 0 || b.place >= 0 && len(b.names) == 0 && a.place < 0:
		fr.f.merge(a, b)
	}
}

func contains(list []*read, r *read) bool {
	for _, x := range list {
		if x.root() == r.root() {
			return true
		}
	}
	return false
}

// declare visits a declaration.
func (fr *frame) declare(d *ast.GenDecl) {
	if d.Tok != token.VAR {
		return
	}
	for _, s := range d.Specs {
		spec, ok := s.(*ast.ValueSpec)
		if !ok {
			continue
		}
		lhs := make([]ast.Expr, len(spec.Names))
		for i, n := range spec.Names {
			lhs[i] = n
			fr.note(n)
		}
		fr.assignAll(lhs, spec.Values)
	}
}

// note remembers where a variable was declared.
func (fr *frame) note(id *ast.Ident) {
	if obj := fr.f.info.Defs[id]; obj != nil {
		if fr.declared == nil {
			fr.declared = map[types.Object]int{}
		}
		fr.declared[obj] = fr.branch
		if _, known := fr.vars[obj]; !known {
			fr.vars[obj] = nil
		}
	}
}

// assignAll assigns the right sides to the left sides, which may take several results of one expression.
func (fr *frame) assignAll(lhs, rhs []ast.Expr) {
	if len(lhs) == len(rhs) {
		for i := range lhs {
			fr.assign(lhs[i], fr.eval(rhs[i]), rhs[i])
		}
		return
	}
	if len(rhs) != 1 {
		return // variables without values
	}
	for i, v := range fr.several(rhs[0]) {
		if i < len(lhs) {
			fr.assign(lhs[i], v, nil)
		}
	}
}

// several returns the values of an expression that has more than one: v, ok := x.(T), v, ok := m[k], or a call.
func (fr *frame) several(e ast.Expr) []*value {
	switch e := ast.Unparen(e).(type) {
	case *ast.CallExpr:
		return fr.call(e)
	case *ast.TypeAssertExpr:
		v := fr.asserted(e, true)
		return []*value{v, presence(v)}
	case *ast.IndexExpr:
		v := fr.index(e)
		return []*value{v, presence(v)}
	default:
		fr.escape(fr.eval(e))
	}
	return nil
}

func presence(v *value) *value {
	if v == nil || len(v.reads) == 0 {
		return nil
	}
	return &value{present: v.reads}
}
