package inputs

import (
	"encoding/json"
	"strings"
)

// Interface is what the daemon reads as its own type of that name; runners have nothing of the daemon. The JSON is the same.
type Interface struct {
	Summary    string          `json:"summary"`
	Parameters []Parameter     `json:"parameters"`
	Returns    json.RawMessage `json:"returns,omitempty"`
	Origin     string          `json:"origin"`
	Open       bool            `json:"open,omitempty"`
}

// Parameter is one parameter of an Interface.
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

// Bounds and words of the daemon's type.
const (
	maxParameters  = 64
	maxNameBytes   = 64
	maxAliases     = 16
	maxBytes       = 32 << 10
	originInferred = "inferred"
	readByPosition = "position"
	readByName     = "name"
	notRead        = "not read by the program"
)

// named reports whether the text is a letter or an underscore, and then letters, digits and other characters. It is no regular expression, which each
// process would have to compile.
func named(s, others string) bool {
	for i, c := range []byte(s) {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		switch {
		case letter, i == 0 && c == '_':
		case i > 0 && ('0' <= c && c <= '9' || strings.IndexByte(others, c) >= 0):
		default:
			return false
		}
	}
	return s != ""
}

// unknown is the interface of a program of which nothing is known.
func unknown() *Interface {
	return &Interface{Parameters: []Parameter{}, Origin: originInferred, Open: true}
}

// JSON returns the interface as it travels; that of an unknown program where it is too large.
func (f *Interface) JSON() json.RawMessage {
	if raw := encoded(f); len(raw) <= maxBytes {
		return raw
	}
	return encoded(unknown())
}

// valid reports whether the daemon would take the parameters.
func valid(list []Parameter) bool {
	seen := map[string]bool{}
	for _, p := range list {
		for _, name := range append([]string{p.Name}, p.Aliases...) {
			if seen[name] || len(name) > maxNameBytes || !named(name, "_.-") {
				return false
			}
			seen[name] = true
		}
		if len(p.Aliases) > maxAliases {
			return false
		}
	}
	return len(list) <= maxParameters && len(encoded(list)) < maxBytes/2
}

// encoded is the JSON of plain data of ours, which always has one.
func encoded(v any) json.RawMessage {
	raw, _ := json.Marshal(v)
	return raw
}
