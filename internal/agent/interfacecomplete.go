package agent

import "slices"

// completed is the declared interface with the parameters that the program reads and its author did not declare, each in the place where it is read. What
// stands behind an optional one by position is optional then.
func (f *Interface) completed(inferred *Interface, required []bool) (*Interface, []bool) {
	out := *f
	out.Parameters, required = slices.Clone(f.Parameters), slices.Clone(required)
	for at := range inferred.Parameters {
		of := inferred.Parameters[at]
		if of.Description == notRead || out.declares(inferred, at) {
			continue
		}
		place := min(at, len(out.Parameters))
		if of.ReadBy == ReadByName {
			place = len(out.Parameters)
		}
		of.Aliases = nil // they are added with those of the others
		out.Parameters, required = slices.Insert(out.Parameters, place, of), slices.Insert(required, place, true)
	}
	if len(out.Parameters) > len(f.Parameters) {
		out.loosen()
	}
	return &out, required
}

// declares reports whether a parameter is the one that the program reads at that place.
func (f *Interface) declares(inferred *Interface, place int) bool {
	for i := range f.Parameters {
		switch _, at := inferred.Parameter(f.Parameters[i].Name); {
		case at == place, at < 0 && i == place && inferred.Parameters[place].ReadBy == ReadByPosition:
			return true
		}
	}
	return false
}

// Relax makes optional what the call that the program was written for lacks, where the program does without it, as was inferred. Missing are the
// names of parameters.
func (f *Interface) Relax(missing []string, inferred *Interface) {
	for _, name := range missing {
		p, _ := f.Parameter(name)
		if read, at := inferred.Parameter(name); read != nil && !read.Required && at >= 0 {
			p.Required = false
		}
	}
	f.loosen()
}

// loosen makes optional what follows an optional parameter by position: a caller who leaves out the one gives no other in its place.
func (f *Interface) loosen() {
	optional := false
	for i := range f.Parameters {
		if p := &f.Parameters[i]; p.ReadBy != ReadByName {
			optional = optional || !p.Required
			p.Required = p.Required && !optional
		}
	}
}
