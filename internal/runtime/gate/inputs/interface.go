package inputs

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Interface mirrors the daemon's type of that name, because runners contain nothing of the daemon. Their JSON must stay
// the same.
type Interface struct {
	Summary    string          `json:"summary"`
	Parameters []Parameter     `json:"parameters"`
	Returns    json.RawMessage `json:"returns,omitempty"`
	Origin     string          `json:"origin"`
	Open       bool            `json:"open,omitempty"`
}

// Parameter mirrors the daemon's type of that name.
type Parameter struct {
	Name        string          `json:"name"`
	Type        string          `json:"type,omitempty"`
	Description string          `json:"description,omitempty"`
	Required    bool            `json:"required"`
	Default     json.RawMessage `json:"default,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"`
	Aliases     []string        `json:"aliases,omitempty"`
	Variadic    bool            `json:"variadic,omitempty"`
	ReadBy      string          `json:"read_by,omitempty"`
}

// These limits and words match those of the daemon's type.
const (
	maxNameBytes   = 64
	maxAliases     = 16
	maxBytes       = 32 << 10
	originInferred = "inferred"
	readByPosition = "position"
	readByName     = "name"
	notRead        = "not read by the program"
	typeFile       = "file"
)

// isName reports whether s can be the name of a parameter: any keyword of visible characters, as the daemon has it.
func isName(s string) bool {
	return s != "" && len(s) <= maxNameBytes && utf8.ValidString(s) && strings.TrimSpace(s) == s &&
		!strings.ContainsFunc(s, func(r rune) bool {
			return !unicode.IsGraphic(r) || r == '\u2800' || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp,
				unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
		})
}

// unknown returns the interface of a program about which nothing is known: it may read any keyword and any position.
func unknown() *Interface {
	return &Interface{Parameters: []Parameter{{Name: "rest", Variadic: true, ReadBy: readByPosition}},
		Origin: originInferred, Open: true}
}

// JSON encodes the interface. If the result is too large, it returns the interface of an unknown program.
func (f *Interface) JSON() json.RawMessage {
	if raw := encoded(f); len(raw) <= maxBytes {
		return raw
	}
	return encoded(unknown())
}

// assemble returns the interface: the positional parameters in order, then the parameters that are read by name only.
func (s *scan) assemble() *Interface {
	s.joinByLabel()
	out := &Interface{Parameters: []Parameter{}, Origin: originInferred, Open: s.open}
	taken, last := map[string]bool{}, -1
	for _, r := range s.reads {
		last = max(last, r.place)
		for _, name := range r.names {
			taken[name] = true
		}
	}
	if s.rest != nil {
		last = max(last, s.restFrom-1)
	}
	for place := range last + 1 {
		p := Parameter{ReadBy: readByPosition, Description: notRead}
		at := slices.IndexFunc(s.reads, func(r *read) bool { return r.place == place })
		if at >= 0 {
			p = s.described(s.reads[at])
		}
		if p.Name == "" {
			p.Name = unused(fmt.Sprintf("arg%d", place+1), taken)
			if at >= 0 && isName(s.reads[at].label) && !taken[s.reads[at].label] {
				p.Name = s.reads[at].label
			}
		}
		taken[p.Name] = true
		out.Parameters = append(out.Parameters, p)
	}
	if s.rest != nil {
		name := "args"
		if s.open { // agents may give an open interface {"args": [...], "kwargs": {...}}
			name = "rest"
		}
		p := Parameter{Name: unused(name, taken), Variadic: true, ReadBy: readByPosition,
			Required: s.minimum > last+1}
		p.Type, p.Schema = listSchema(s.rest)
		out.Parameters = append(out.Parameters, p)
	}
	for _, r := range s.reads {
		if r.place < 0 {
			p := s.described(r)
			if s.open && s.rest != nil { // then arguments that came by position stay there
				p.ReadBy = ""
			}
			out.Parameters = append(out.Parameters, p)
		}
	}
	if len(out.Parameters) > maxParameters {
		out.Parameters, out.Open = out.Parameters[:maxParameters], true
	}
	return out
}

// joinByLabel merges a position whose variable has the name of a keyword with that keyword: the program looks for one
// parameter in two places.
func (s *scan) joinByLabel() {
	for _, r := range slices.Clone(s.reads) {
		if r.place < 0 || len(r.names) > 0 {
			continue
		}
		if at := slices.IndexFunc(s.reads, func(o *read) bool {
			return o.place < 0 &&
				slices.Contains(o.names, r.label)
		}); at >= 0 {
			s.join(r, s.reads[at])
		}
	}
}

// unused returns the name, with underscores appended until it is not taken.
func unused(name string, taken map[string]bool) string {
	for taken[name] {
		name += "_"
	}
	return name
}

// described returns a read as callers see it.
func (s *scan) described(r *read) Parameter {
	p := Parameter{Required: r.must}
	if len(r.names) > 0 {
		p.Name = r.names[0]
		p.Aliases = append(p.Aliases, r.names[1:]...)
	}
	switch {
	case r.place >= 0 && r.place < s.minimum:
		p.ReadBy, p.Required = readByPosition, true
	case !r.byName:
		p.ReadBy = readByPosition
	case !r.byPlace:
		p.ReadBy = readByName
	}
	p.Type, p.Schema = r.schema()
	if !p.Required && !r.unsure {
		p.Default = r.preset
	}
	return p
}

// schema returns the type or the schema of the values that the program accepts, or neither if it accepts any.
func (r *read) schema() (string, json.RawMessage) {
	if r.anything || len(r.kinds) == 0 {
		return "", nil
	}
	var plain []string
	for _, kind := range r.kinds {
		var members map[string]json.RawMessage
		var name string
		if json.Unmarshal([]byte(kind), &members) == nil && len(members) == 1 &&
			json.Unmarshal(members["type"], &name) == nil {
			plain = append(plain, name)
		}
	}
	switch {
	case len(r.kinds) == 1 && len(plain) == 1:
		return plain[0], nil
	case len(r.kinds) == 1:
		return "", json.RawMessage(r.kinds[0])
	case len(plain) == len(r.kinds) && !slices.Contains(plain, typeFile): // JSON Schema has no type for files
		return "", encoded(map[string]any{"type": plain})
	}
	return "", nil
}

// listSchema returns the type or the schema of a list of such elements.
func listSchema(element *read) (string, json.RawMessage) {
	plain, schema := element.schema()
	if plain == typeFile {
		return "array", nil
	}
	if plain != "" {
		schema = encoded(map[string]string{"type": plain})
	}
	if schema == nil {
		return "array", nil
	}
	return "", encoded(map[string]json.RawMessage{"type": json.RawMessage(`"array"`), "items": schema})
}
