package local

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Parameter describes how a program reads one argument. Callers may give any argument by position or by name.
type Parameter struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Required    bool            `json:"required"`
	Default     json.RawMessage `json:"default"`
	Aliases     []string        `json:"aliases"`
	Variadic    bool            `json:"variadic"` // takes all positional arguments from its place on
	ReadBy      string          `json:"read_by"`  // position or name; empty means either
}

// notRead is the description of a position that a program skips while it reads later ones.
const notRead = "not read by the program"

// arrange returns the arguments in the form in which the program reads them. Arguments that do not fit stay as they
// are.
func (p *Program) arrange(args []json.RawMessage,
	kwargs map[string]json.RawMessage) ([]json.RawMessage, map[string]json.RawMessage, error) {
	if p.Parameters == "" {
		return args, kwargs, nil
	}
	var all []Parameter
	if err := json.Unmarshal([]byte(p.Parameters), &all); err != nil {
		return nil, nil, fmt.Errorf("the parameters of %s.%s: %w", p.Role, p.Method, err)
	}
	named := maps.Clone(kwargs)
	if named == nil {
		named = map[string]json.RawMessage{}
	}
	for i := range all {
		if name, given := all[i].given(named); given && name != all[i].Name {
			named[all[i].Name] = named[name]
			delete(named, name)
		}
	}
	args = p.toPositions(all, args, named)
	return toNames(all, args, named), named, nil
}

// toPositions moves keywords to positions, up to the last parameter that needs it, or in an open interface up to the
// first one that has neither an argument nor a default. It modifies named.
func (p *Program) toPositions(all []Parameter, args []json.RawMessage,
	named map[string]json.RawMessage) []json.RawMessage {
	last := -1
	for i := range all {
		if _, given := all[i].given(named); given && all[i].ReadBy == "position" {
			last = i
		}
	}
	if last < len(args) {
		return args
	}
	out := slices.Clone(args)
	var used []string
	for i := len(args); i <= last; i++ {
		one := &all[i]
		name, given := one.given(named)
		switch {
		case given && one.Variadic:
			var list []json.RawMessage
			if json.Unmarshal(named[name], &list) != nil {
				return args
			}
			out, used = append(out, list...), append(used, name)
		case given:
			out, used = append(out, named[name]), append(used, name)
		case one.Required:
			return args
		case one.Default != nil:
			out = append(out, one.Default)
		case p.Open && one.Description != notRead:
			last = i // a null would be another argument, and the program may read the others by name
		default:
			out = append(out, json.RawMessage("null"))
		}
	}
	if len(used) == 0 {
		return args
	}
	for _, name := range used {
		delete(named, name)
	}
	return out
}

// toNames moves trailing positional arguments that are read only by name to keywords. It modifies named. A variadic
// parameter takes all arguments from its place on, so these stay.
func toNames(all []Parameter, args []json.RawMessage, named map[string]json.RawMessage) []json.RawMessage {
	first, places := len(args), slices.IndexFunc(all, func(p Parameter) bool { return p.Variadic })
	if places < 0 {
		places = len(all)
	}
	for first > 0 && first <= places && all[first-1].ReadBy == "name" {
		if _, given := all[first-1].given(named); given {
			return args
		}
		first--
	}
	for i := first; i < len(args); i++ {
		named[all[i].Name] = args[i]
	}
	return args[:first:first]
}

// given returns the keyword by which the parameter is given. Its name takes precedence over its aliases.
func (p *Parameter) given(named map[string]json.RawMessage) (string, bool) {
	for _, name := range append([]string{p.Name}, p.Aliases...) {
		if _, ok := named[name]; ok {
			return name, true
		}
	}
	return "", false
}
