package agent

import "slices"

// read is the declared interface without the parameters that the program does not read, as a text is kept without unused imports. A position that the program
// skips to read a later one stays, as optional. What reads all keywords, or all positions from a place on, may read what it does not name.
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

// takesPlace reports whether the program reads a place by its position alone, and no parameter is declared under the name that it has there.
func (f *Interface) takesPlace(inferred *Interface, place int) bool {
	rest := inferred.rest()
	if rest >= 0 && place > rest {
		return true
	}
	if place >= len(inferred.Parameters) || inferred.Parameters[place].ReadBy != ReadByPosition {
		return false
	}
	return !slices.ContainsFunc(f.Parameters, func(p Parameter) bool {
		_, at := inferred.Parameter(p.Name)
		return at == place
	})
}

// rest is the place from which on all positional arguments are one parameter, -1 for none.
func (f *Interface) rest() int {
	return slices.IndexFunc(f.Parameters, func(p Parameter) bool { return p.Variadic })
}

// Unread names the declared parameters that the program's interface lacks, because the program does not read them.
func (d Declaration) Unread(takes *Interface) (out []string) {
	for _, p := range d.Listed() {
		if of, _ := takes.Parameter(p.Name); of == nil && takes.Binds() {
			out = append(out, p.Name)
		}
	}
	return out
}

// alsoNamed gives the parameter the other names by which the program reads it.
func (p *Parameter) alsoNamed(of *Parameter) {
	for _, name := range append([]string{of.Name}, of.Aliases...) {
		if name != p.Name && (of.ReadBy != ReadByPosition || name != of.Name) {
			p.Aliases = append(p.Aliases, name)
		}
	}
}
