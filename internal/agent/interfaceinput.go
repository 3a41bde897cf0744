package agent

import (
	"encoding/json"
	"maps"
	"slices"
)

// Arrange returns the arguments in the form in which the program reads them. A keyword that it reads by position only
// becomes positional; a positional argument that it reads by name only becomes a keyword. Other arguments stay as they
// are.
func (f *Interface) Arrange(args []json.RawMessage, kwargs json.RawMessage) ([]json.RawMessage, json.RawMessage) {
	if f == nil || !f.picky() || len(args) == 0 && len(kwargs) <= len("{}") || len(kwargs) <= len("{}") &&
		!f.namesLast(args) {
		return args, kwargs
	}
	named := keywords(kwargs)
	renamed := f.rename(named)
	positional, changed := f.toPositions(args, named)
	changed = changed || renamed
	if rest, moved := f.toNames(positional, named); moved {
		positional, changed = rest, true
	}
	if !changed {
		return args, kwargs
	}
	return positional, Encoded(named)
}

// Arrange returns the arguments as the program reads them: arranged by its interface, under the names used in its
// source.
func (g *Generation) Arrange(args []json.RawMessage, kwargs json.RawMessage) ([]json.RawMessage, json.RawMessage) {
	args, kwargs = g.Interface.Arrange(args, kwargs)
	return args, AsWritten(g.Code, kwargs)
}

// picky reports whether some parameter is read in one way only, or has aliases.
func (f *Interface) picky() bool {
	for i := range f.Parameters {
		if p := &f.Parameters[i]; p.ReadBy != readEither || len(p.Aliases) > 0 {
			return true
		}
	}
	return false
}

// namesLast reports whether the last positional argument belongs to a parameter that is read by name only.
func (f *Interface) namesLast(args []json.RawMessage) bool {
	last := len(args) - 1
	return last < f.places() && f.Parameters[last].ReadBy == readByName
}

// places returns how many parameters can take a single positional argument: those before the variadic one, which takes
// all the others.
func (f *Interface) places() int {
	if rest := f.rest(); rest >= 0 {
		return rest
	}
	return len(f.Parameters)
}

// rename replaces aliases by the parameters' names: a newer program may no longer read the alias.
func (f *Interface) rename(named map[string]json.RawMessage) (changed bool) {
	for i := range f.Parameters {
		p := &f.Parameters[i]
		if name, given := p.given(named); given && name != p.Name {
			named[p.Name] = named[name]
			delete(named, name)
			changed = true
		}
	}
	return changed
}

// toPositions moves keywords to positions, up to the last parameter that needs it, or in an open interface up to the
// first one that has neither an argument nor a default. It modifies named.
func (f *Interface) toPositions(args []json.RawMessage,
	named map[string]json.RawMessage) (out []json.RawMessage, changed bool) {
	last := -1
	for i := range f.Parameters {
		if _, given := f.Parameters[i].given(named); given && f.Parameters[i].ReadBy == readByPosition {
			last = i
		}
	}
	if last < len(args) {
		return args, false // nothing to move, or also given by position: the program should see both
	}
	out = slices.Clone(args)
	var used []string
	for i := len(args); i <= last; i++ {
		p := &f.Parameters[i]
		name, given := p.given(named)
		switch {
		case given && p.Variadic:
			var list []json.RawMessage
			if json.Unmarshal(named[name], &list) != nil {
				return args, false
			}
			out, used = append(out, list...), append(used, name)
		case given:
			out, used = append(out, named[name]), append(used, name)
		case p.Required:
			return args, false // leave the missing argument for the program to report
		case p.Default != nil:
			out = append(out, p.Default)
		case f.Open && p.Description != notRead:
			last = i // a null would be another argument, and the program may read the others by name
		default:
			out = append(out, json.RawMessage("null"))
		}
	}
	if len(used) == 0 {
		return args, false
	}
	for _, name := range used {
		delete(named, name)
	}
	return out, true
}

// toNames moves trailing positional arguments that are read only by name to keywords. It modifies named.
func (f *Interface) toNames(args []json.RawMessage,
	named map[string]json.RawMessage) (rest []json.RawMessage, moved bool) {
	first, places := len(args), f.places()
	for first > 0 && first <= places && f.Parameters[first-1].ReadBy == readByName {
		if _, given := f.Parameters[first-1].given(named); given {
			return args, false
		}
		first--
	}
	if first == len(args) {
		return args, false
	}
	for i := first; i < len(args); i++ {
		named[f.Parameters[i].Name] = args[i]
	}
	return args[:first:first], true
}

// Named returns the arguments in a canonical form: by name, under the parameters' own names. Arguments without a name
// stay positional. Two calls with the same input have equal canonical forms; see SameInput.
func (f *Interface) Named(args []json.RawMessage, kwargs json.RawMessage) ([]json.RawMessage, json.RawMessage) {
	if f == nil || len(f.Parameters) == 0 || len(args) == 0 && len(kwargs) <= len("{}") {
		return args, kwargs
	}
	named := keywords(kwargs)
	f.rename(named)
	for i := range min(len(args), len(f.Parameters)) {
		if _, twice := named[f.Parameters[i].Name]; twice {
			return args, kwargs // given both by position and by name: programs may treat this differently
		}
	}
	for i := range args {
		switch {
		case i >= len(f.Parameters):
			return args[i:], Encoded(named)
		case f.Parameters[i].Variadic:
			named[f.Parameters[i].Name] = Encoded(args[i:])
			return nil, Encoded(named)
		}
		named[f.Parameters[i].Name] = args[i]
	}
	return nil, Encoded(named)
}

// SameInput reports whether two calls have the same arguments, whether given by position or by name.
func (f *Interface) SameInput(aArgs []json.RawMessage, aKwargs json.RawMessage, bArgs []json.RawMessage,
	bKwargs json.RawMessage) bool {
	if SameInput(aArgs, aKwargs, bArgs, bKwargs) {
		return true
	}
	// Purely positional arguments would get the same names on both sides.
	if f == nil || len(aKwargs) <= len("{}") && len(bKwargs) <= len("{}") {
		return false
	}
	aArgs, aKwargs = f.Named(aArgs, aKwargs)
	bArgs, bKwargs = f.Named(bArgs, bKwargs)
	return SameInput(aArgs, aKwargs, bArgs, bKwargs)
}

// given returns the keyword by which the parameter is given. Its name takes precedence over its aliases.
func (p *Parameter) given(named map[string]json.RawMessage) (string, bool) {
	if _, ok := named[p.Name]; ok {
		return p.Name, true
	}
	for _, alias := range p.Aliases {
		if _, ok := named[alias]; ok {
			return alias, true
		}
	}
	return "", false
}

// keywords decodes an object. Anything else gives an empty map.
func keywords(kwargs json.RawMessage) map[string]json.RawMessage {
	named := map[string]json.RawMessage{}
	if len(kwargs) > len("{}") {
		_ = json.Unmarshal(kwargs, &named)
	}
	if named == nil {
		named = map[string]json.RawMessage{}
	}
	return named
}

// Keywords returns the names of an object's members, sorted.
func Keywords(kwargs json.RawMessage) []string {
	return slices.Sorted(maps.Keys(keywords(kwargs)))
}
