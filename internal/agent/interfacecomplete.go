package agent

import "slices"

// completed returns the declared interface with the parameters added that the program reads and its author did not
// declare, each at the place where it is read. Positional parameters after an optional one become optional. required is
// returned with an entry for each parameter.
func (f *Interface) completed(inferred *Interface, required []bool) (*Interface, []bool) {
	out := *f
	out.Parameters, required = slices.Clone(f.Parameters), slices.Clone(required)
	for at := range inferred.Parameters {
		of := inferred.Parameters[at]
		if of.Description == notRead || out.declares(inferred, at) {
			continue
		}
		place := min(at, len(out.Parameters))
		if of.ReadBy == readByName {
			place = len(out.Parameters)
		}
		of.Aliases = nil // reconcile adds them
		out.Parameters, required = slices.Insert(out.Parameters, place, of), slices.Insert(required, place, true)
	}
	if len(out.Parameters) > len(f.Parameters) {
		out.loosen()
	}
	return &out, required
}

// declares reports whether some parameter of f is the one that the program reads at that place.
func (f *Interface) declares(inferred *Interface, place int) bool {
	for i := range f.Parameters {
		switch _, at := inferred.Parameter(f.Parameters[i].Name); {
		case at == place, at < 0 && i == place && inferred.Parameters[place].ReadBy == readByPosition:
			return true
		}
	}
	return false
}

// Relax makes a missing parameter optional if the inferred interface does not require it. missing lists the parameters
// that the call lacks for which the program was written.
func (f *Interface) Relax(missing []string, inferred *Interface) {
	for _, name := range missing {
		p, _ := f.Parameter(name)
		if read, at := inferred.Parameter(name); read != nil && !read.Required && at >= 0 {
			p.Required = false
		}
	}
	f.loosen()
}

// loosen makes positional parameters after an optional one optional: a caller who leaves one out cannot give those
// after it.
func (f *Interface) loosen() {
	optional := false
	for i := range f.Parameters {
		if p := &f.Parameters[i]; p.ReadBy != readByName {
			optional = optional || !p.Required
			p.Required = p.Required && !optional
		}
	}
}
