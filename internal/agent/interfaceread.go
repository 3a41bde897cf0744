package agent

import "slices"

// read returns the declared interface without the parameters that the program does not read. A position that the
// program skips to read a later one stays, as optional. Parameters also stay if the program reads all keywords, or all
// positions from a place on.
func (f *Interface) read(inferred *Interface, required []bool) (*Interface, []bool) {
	out, known := *f, []bool{}
	out.Parameters = []Parameter{}
	for i := range f.Parameters {
		place := len(out.Parameters)
		of, _ := inferred.Parameter(f.Parameters[i].Name)
		if of == nil && !inferred.Open && !f.takesPlace(inferred, place) {
			continue
		}
		out.Parameters, known = append(out.Parameters, f.Parameters[i]), append(known, required[i])
	}
	return &out, known
}

// takesPlace reports whether the program reads a place only by its position, and no declared parameter has the name
// inferred for it.
func (f *Interface) takesPlace(inferred *Interface, place int) bool {
	rest := inferred.rest()
	if rest >= 0 && place > rest {
		return true
	}
	if place >= len(inferred.Parameters) || inferred.Parameters[place].ReadBy != readByPosition {
		return false
	}
	return !slices.ContainsFunc(f.Parameters, func(p Parameter) bool {
		_, at := inferred.Parameter(p.Name)
		return at == place
	})
}

// rest returns the index of the variadic parameter, or -1.
func (f *Interface) rest() int {
	return slices.IndexFunc(f.Parameters, func(p Parameter) bool { return p.Variadic })
}

// readsUnlisted returns how the program reads a declared parameter at that place that the inferred interface does not
// list. A program that may read any keyword and no further position gets it by name. One that may also read any
// position gets it as the caller gave it.
func (f *Interface) readsUnlisted(place int) string {
	switch rest := f.rest(); {
	case f.Open && rest < 0:
		return readByName
	case !f.Open && rest >= 0 && place > rest:
		return readByPosition
	}
	return readEither
}

// AnyPosition returns the parameters of a program about which nothing is known.
func AnyPosition() []Parameter {
	return []Parameter{{Name: "rest", Variadic: true, ReadBy: readByPosition}}
}

// Undeclared returns the inferred interface as it is used without a declaration: an open one takes further positions
// without listing them.
func (f *Interface) Undeclared() *Interface {
	rest := f.rest()
	if !f.Open || rest < 0 {
		return f
	}
	out := *f
	out.Parameters = slices.Delete(slices.Clone(f.Parameters), rest, rest+1)
	return &out
}

// Unread returns the names of declared parameters that the program does not read and its interface therefore lacks.
func (d Declaration) Unread(takes *Interface) (out []string) {
	for _, p := range d.Listed() {
		if of, _ := takes.Parameter(p.Name); of == nil && takes.Binds() {
			out = append(out, p.Name)
		}
	}
	return out
}

// alsoNamed adds the other names by which the program reads the parameter as aliases.
func (p *Parameter) alsoNamed(of *Parameter) {
	for _, name := range append([]string{of.Name}, of.Aliases...) {
		if name != p.Name && (of.ReadBy != readByPosition || name != of.Name) {
			p.Aliases = append(p.Aliases, name)
		}
	}
}
