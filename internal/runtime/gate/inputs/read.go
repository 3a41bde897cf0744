package inputs

import (
	"slices"
)

// A read is a parameter as far as it is known: places where the program looks for the same thing are joined.
type read struct {
	joined *read // the read that this one became part of
	place  int   // position, -1 for none
	names  []string
	label  string // the variable that it was put in,
	depth  int    // and how deep in calls that was

	types    []string // JSON types, as first seen
	anything bool     // its value is used whatever its type
	schema   []byte   // from a struct's field
	items    *read    // elements of a list: for their types only

	byPlace, byName bool
	must            bool // the program fails without it
	optional        bool // the program goes on without it
	preset          []byte
}

func (r *read) root() *read {
	for r.joined != nil {
		r = r.joined
	}
	return r
}

// at returns the read of a position.
func (f *finder) at(place int) *read {
	if place < 0 || place >= maxPlaces {
		f.readRest(max(0, min(place, maxPlaces)))
		return f.rest
	}
	r := f.positions[place]
	if r == nil {
		r = f.newRead()
		r.place = place
		f.positions[place] = r
	}
	r = r.root()
	r.byPlace = true
	return r
}

// named returns the read of keywords of which any is taken.
func (f *finder) named(names []string) *read {
	var r *read
	for _, name := range names {
		n := f.names[name]
		if n == nil {
			if len(f.ordered) >= maxReads {
				f.open = true
				continue
			}
			n = f.newRead()
			n.names = []string{name}
			f.names[name] = n
		}
		n.root().byName = true
		if r == nil {
			r = n.root()
		} else {
			r = f.merge(r, n)
		}
	}
	return r
}

func (f *finder) newRead() *read {
	r := &read{place: -1}
	f.ordered = append(f.ordered, r)
	return r
}

// either returns the read of a position, or of keywords where there is no such position.
func (f *finder) either(place int, names []string) *read {
	n := f.named(names)
	if place < 0 {
		return n
	}
	p := f.at(place)
	if n == nil {
		return p
	}
	return f.merge(p, n)
}

// merge joins two reads of the same parameter, unless they have different positions.
func (f *finder) merge(a, b *read) *read {
	a, b = a.root(), b.root()
	if a == b || a.place >= 0 && b.place >= 0 || a == f.rest || b == f.rest {
		return a
	}
	if b.place >= 0 {
		a.place = b.place
	}
	for _, n := range b.names {
		if !slices.Contains(a.names, n) {
			a.names = append(a.names, n)
		}
	}
	if a.label == "" || b.label != "" && b.depth < a.depth {
		a.label, a.depth = b.label, b.depth
	}
	for _, t := range b.types {
		a.is(t)
	}
	a.anything = a.anything || b.anything
	a.byPlace, a.byName = a.byPlace || b.byPlace, a.byName || b.byName
	a.must, a.optional = a.must || b.must, a.optional || b.optional
	if a.schema == nil {
		a.schema = b.schema
	}
	if a.preset == nil {
		a.preset = b.preset
	}
	if a.items == nil {
		a.items = b.items
	}
	b.joined = a
	return a
}

// is notes a type that the program takes.
func (r *read) is(jsonType string) {
	if jsonType != "" && !slices.Contains(r.types, jsonType) {
		r.types = append(r.types, jsonType)
	}
}

// element is the read of the elements of a list.
func (r *read) element() *read {
	r = r.root()
	if r.items == nil {
		r.items = &read{place: -1}
	}
	return r.items
}

// readRest notes that the program reads all positional arguments from a place on.
func (f *finder) readRest(from int) {
	if f.rest == nil {
		f.rest, f.restFrom = &read{place: -1}, from
	}
	f.restFrom = min(f.restFrom, from)
}

// call it that: the variable of the outermost function names a parameter best.
func (r *read) called(name string, depth int) {
	r = r.root()
	if name != "_" && (r.label == "" || depth < r.depth) {
		r.label, r.depth = name, depth
	}
}
