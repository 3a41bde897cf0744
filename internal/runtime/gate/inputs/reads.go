package inputs

import (
	"go/ast"
	"go/types"
	"slices"
)

// A read is a parameter as far as it is known.
type read struct {
	place    int // position, -1 for none
	names    []string
	label    string            // the variable that a position is put into
	kinds    []string          // JSON Schemas of what its value is converted to
	anything bool              // its value is used as it is
	seen     map[ast.Node]bool // uses of its value that were looked at
	byPlace  bool
	byName   bool
	must     bool   // the program fails without it
	preset   []byte // what stands for a missing one,
	unsure   bool   // unless another place has something else
	joined   *read  // the read that this one became part of
}

func newRead(place int) *read { return &read{place: place, seen: map[ast.Node]bool{}} }

// An occurrence is what a place reads in one way to get there: a position (-1 for none), a name ("" for none), or what has either.
type occurrence struct {
	place int
	name  string
	hit   *hit
}

// A landing is where a value goes: into a variable, or (nil) out of a function that was called for it.
type landing struct {
	to   types.Object
	site *ast.CallExpr
}

// found notes what an expression reads.
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
	for _, to := range []landing{{t.value, w.site}, {nil, w.site}} {
		if to == (landing{}) || to.to == nil && s.info.Types[lastArgument(e)].Value != nil {
			continue
		}
		// the same thing, by position and by name
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

// lastArgument is the name or the position of what an expression reads.
func lastArgument(e ast.Expr) ast.Expr {
	if x, ok := e.(*ast.IndexExpr); ok {
		return x.Index
	}
	return e.(*ast.CallExpr).Args[1]
}

// parameterOf returns the parameter that is read at a place or by a name. It returns nil if there is none, or if there are too many.
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
		s.open = true
		return nil
	default:
		r = newRead(o.place)
		if s.reads = append(s.reads, r); n == nil { // a name that is read at another place, too, is that place's
			r.names = append(r.names, o.name)[:min(1, len(o.name))]
		}
	}
	r.byPlace, r.byName = r.byPlace || o.place >= 0, r.byName || o.name != ""
	return r
}

// join makes two reads one parameter and returns it: b, where they are at different places. a may be nil.
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

// root is the read that this one is part of now; nil for nil.
func (r *read) root() *read {
	for r != nil && r.joined != nil {
		r = r.joined
	}
	return r
}

// is notes a JSON Schema of what the value is converted to.
func (r *read) is(kind string) {
	if !slices.Contains(r.kinds, kind) {
		r.kinds = append(r.kinds, kind)
	}
}

// defaults notes what stands for a missing value.
func (r *read) defaults(value []byte) {
	r.unsure = r.unsure || r.preset != nil && string(r.preset) != string(value)
	r.preset = value
}
