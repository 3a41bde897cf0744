package inputs

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// A read is what is known about one parameter.
type read struct {
	place    int // position; -1 if it is read by name only
	names    []string
	label    string            // name of the variable that receives the position
	kinds    []string          // JSON Schemas of the types that its value is converted to
	anything bool              // its value is also used without a conversion
	seen     map[ast.Node]bool // uses of its value that were examined
	byPlace  bool
	byName   bool
	must     bool   // the program fails without it
	preset   []byte // JSON of the value that replaces a missing one
	unsure   bool   // different places have different presets
	joined   *read  // the read that this one was merged into
}

func newRead(place int) *read { return &read{place: place, seen: map[ast.Node]bool{}} }

// An occurrence is what a place reads on one way to it: a position (-1 if there is none), a name ("" if there is none),
// or both.
type occurrence struct {
	place int
	name  string
	hit   *hit
}

// A landing is the destination of a value: a variable, or, if to is nil, the result of the function that was called at
// site.
type landing struct {
	to   types.Object
	site *ast.CallExpr
}

// found records what an expression reads.
func (s *scan) found(e ast.Expr, o occurrence, w *way) {
	r := s.parameterOf(o)
	if r == nil {
		return
	}
	if o.hit != nil {
		r = s.join(o.hit.read, r)
		o.hit.read = r
	}
	r = s.join(s.fallback[e], r)
	t := s.takes(e)
	places := []landing{{t.value, w.site}, {nil, w.site}}
	for _, v := range s.copies(t.value) {
		places = append(places, landing{v, w.site})
	}
	for _, to := range places {
		if to == (landing{}) || to.to == nil && s.info.Types[lastArgument(e)].Value != nil {
			continue
		}
		// One read is by position and one by name: they are the same parameter.
		if other := s.landed[to].root(); other != nil && (len(other.names) == 0) != (len(r.names) == 0) {
			r = s.join(other, r)
		}
		s.landed[to] = r
	}
	if t.value != nil && r.label == "" && w.site == nil {
		r.label = t.value.Name()
	}
	s.follow(r, e, w)
	s.need(r, t, w)
}

// copies returns the variables that get the value of v as it is.
func (s *scan) copies(v types.Object) (out []types.Object) {
	for _, u := range s.uses[v] {
		e, p := s.up(u)
		to, values := sides(p)
		i := slices.Index(values, e)
		a, ok := p.(*ast.AssignStmt)
		if i < 0 || len(to) != len(values) || ok && a.Tok != token.ASSIGN && a.Tok != token.DEFINE {
			continue
		}
		if other := s.object(to[i]); other != nil && other != v {
			out = append(out, other)
		}
	}
	return out
}

// lastArgument returns the expression of the name or position that e reads.
func lastArgument(e ast.Expr) ast.Expr {
	if x, ok := e.(*ast.IndexExpr); ok {
		return x.Index
	}
	return e.(*ast.CallExpr).Args[1]
}

// parameterOf returns the parameter that is read at a position or by a name. It adds a new one if necessary. It returns
// nil if there is neither a position nor a name, or if there are too many parameters.
func (s *scan) parameterOf(o occurrence) *read {
	if o.name != "" && !isName(o.name) {
		s.open, o.name = true, ""
	}
	if o.place >= maxPlaces {
		s.readRest(maxPlaces)
		o.place = -1
	}
	if o.place < 0 && o.name == "" {
		return nil
	}
	var p, n *read
	for _, r := range s.reads {
		if o.place >= 0 && r.place == o.place {
			p = r
		}
		if o.name != "" && slices.Contains(r.names, o.name) {
			n = r
		}
	}
	var r *read
	switch {
	case p != nil && n != nil:
		r = s.join(n, p)
	case p != nil:
		if r = p; o.name != "" && len(p.names) <= maxAliases {
			p.names = append(p.names, o.name)
		}
	case n != nil && (n.place < 0 || o.place < 0):
		r, n.place = n, max(n.place, o.place)
	case len(s.reads) >= maxParameters:
		s.everything()
		return nil
	default:
		r = newRead(o.place)
		// A name that the program also reads at another position belongs to that position.
		if s.reads = append(s.reads, r); n == nil {
			r.names = append(r.names, o.name)[:min(1, len(o.name))]
		}
	}
	r.byPlace, r.byName = r.byPlace || o.place >= 0, r.byName || o.name != ""
	return r
}

// join merges two reads into one parameter and returns it. If they cannot be merged, for instance because they have
// different positions, it returns b. a may be nil.
func (s *scan) join(a, b *read) *read {
	a, b = a.root(), b.root()
	if a == nil || a == b || a.place >= 0 && b.place >= 0 || len(a.names)+len(b.names) > maxAliases {
		return b
	}
	a.place, a.names = max(a.place, b.place), append(a.names, b.names...)
	for _, kind := range b.kinds {
		a.is(kind)
	}
	if a.label == "" {
		a.label = b.label
	}
	a.anything, a.byPlace, a.byName, a.must = a.anything || b.anything, a.byPlace || b.byPlace, a.byName || b.byName,
		a.must || b.must
	s.reads = slices.DeleteFunc(s.reads, func(r *read) bool { return r == b })
	b.joined = a
	return a
}

// root returns the read that this one is part of now, or nil if r is nil.
func (r *read) root() *read {
	for r != nil && r.joined != nil {
		r = r.joined
	}
	return r
}

// is records a JSON Schema of a type that the value is converted to.
func (r *read) is(kind string) {
	if !slices.Contains(r.kinds, kind) {
		r.kinds = append(r.kinds, kind)
	}
}

// defaults records the value that replaces a missing one.
func (r *read) defaults(value []byte) {
	r.unsure = r.unsure || r.preset != nil && string(r.preset) != string(value)
	r.preset = value
}
