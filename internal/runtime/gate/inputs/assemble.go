package inputs

import (
	"encoding/json"
	"fmt"
	"slices"
)

// assemble makes the interface of what was read.
func (f *finder) assemble() *Interface {
	f.joinByName()
	out := &Interface{Parameters: []Parameter{}, Origin: originInferred, Open: f.open}
	last := -1
	for place := range f.positions {
		last = max(last, place)
	}
	taken := map[string]bool{}
	for _, r := range f.ordered {
		if r.joined == nil && len(r.names) > 0 {
			taken[r.names[0]] = true
		}
	}
	for place := range last + 1 {
		if len(out.Parameters) >= maxParameters {
			out.Open = true
			return out
		}
		p := Parameter{ReadBy: readByPosition, Description: notRead}
		if r := f.positions[place]; r != nil {
			p = f.parameter(r.root(), place)
		}
		if p.Name == "" || taken[p.Name] && (f.positions[place] == nil || len(f.positions[place].root().names) == 0) {
			p.Name = unused(fmt.Sprintf("arg%d", place+1), taken)
		}
		taken[p.Name] = true
		out.Parameters = append(out.Parameters, p)
	}
	if f.rest != nil && len(out.Parameters) < maxParameters {
		p := Parameter{Name: unused("args", taken), Variadic: true, ReadBy: readByPosition, Required: f.minimum > last+1}
		p.Type, p.Schema = listType(f.rest)
		out.Parameters = append(out.Parameters, p)
	}
	for _, r := range f.ordered {
		if r.joined != nil || r.place >= 0 {
			continue
		}
		if len(out.Parameters) >= maxParameters {
			out.Open = true
			break
		}
		out.Parameters = append(out.Parameters, f.parameter(r, -1))
	}
	return f.checked(out)
}

// joinByName joins a position whose variable is called as a keyword is with that keyword: the program looks for one parameter in two places.
func (f *finder) joinByName() {
	for _, r := range f.ordered {
		if r.joined != nil || r.place < 0 || len(r.names) > 0 || r.label == "" {
			continue
		}
		if n := f.names[r.label]; n != nil && n.root().place < 0 {
			f.merge(r, n)
		}
	}
}

func unused(name string, taken map[string]bool) string {
	for taken[name] {
		name += "_"
	}
	taken[name] = true
	return name
}

// plainName reports whether the text can be a parameter's name as it is.
func plainName(s string) bool { return len(s) <= 41 && named(s, "_") && s[0] != '_' }

func (f *finder) parameter(r *read, place int) Parameter {
	p := Parameter{Required: r.must && !r.optional}
	switch {
	case len(r.names) > 0:
		p.Name = r.names[0]
		p.Aliases = slices.Clone(r.names[1:])
	case plainName(r.label):
		p.Name = r.label
	}
	if len(p.Aliases) == 0 {
		p.Aliases = nil
	}
	switch {
	case place >= 0 && place < f.minimum:
		p.ReadBy, p.Required = readByPosition, true
	case !r.byName:
		p.ReadBy = readByPosition
	case !r.byPlace:
		p.ReadBy = readByName
	}
	p.Type, p.Schema = typeOfRead(r)
	if r.optional && r.preset != nil && !p.Required {
		p.Default = r.preset
	}
	return p
}

// typeOfRead says what values the program takes; nothing where it may be any.
func typeOfRead(r *read) (string, json.RawMessage) {
	switch {
	case r.anything:
		return "", nil
	case r.schema != nil:
		var s map[string]json.RawMessage
		var plain string
		if json.Unmarshal(r.schema, &s) == nil && len(s) == 1 && json.Unmarshal(s["type"], &plain) == nil {
			return plain, nil
		}
		return "", r.schema
	case len(r.types) == 1 && r.types[0] == "array" && r.items != nil:
		return listType(r.items)
	case len(r.types) == 1:
		return r.types[0], nil
	case len(r.types) > 1:
		return "", encoded(map[string]any{"type": r.types})
	}
	return "", nil
}

// listType is a list of what the element's reads say.
func listType(element *read) (string, json.RawMessage) {
	plain, schema := typeOfRead(element.root())
	if plain == "array" || plain == "" && schema == nil {
		return "array", nil // deeper nesting says little
	}
	if plain != "" {
		schema = encoded(map[string]string{"type": plain})
	}
	return "", encoded(map[string]json.RawMessage{"type": json.RawMessage(`"array"`), "items": schema})
}

// checked drops what an interface may not have: names that are no parameter names make it open.
func (f *finder) checked(out *Interface) *Interface {
	if valid(out.Parameters) {
		return out
	}
	var kept []Parameter
	for _, p := range out.Parameters {
		if !valid(append(slices.Clone(kept), p)) {
			out.Open = true
			if p.ReadBy == readByName {
				continue
			}
			p = Parameter{Name: fmt.Sprintf("arg%d", len(kept)+1), ReadBy: readByPosition}
		}
		kept = append(kept, p)
	}
	out.Parameters = kept
	if !valid(kept) || kept == nil {
		return unknown()
	}
	return out
}
