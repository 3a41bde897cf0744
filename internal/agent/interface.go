package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Origins of an interface.
const (
	OriginDeclared = "declared" // by the model or the person who wrote the program
	OriginInferred = "inferred" // by the gate, from the program
)

// Bounds of an interface.
const (
	MaxParameters     = 64
	MaxParameterName  = 64 // bytes
	MaxSummary        = 400
	MaxDescription    = 400
	MaxInterfaceBytes = 32 << 10 // of the whole interface as JSON
	maxAliases        = 16
)

// Values of Parameter.ReadBy: how a program reads a parameter.
const (
	readEither     = ""         // by position or by name
	readByPosition = "position" // from Args only
	readByName     = "name"     // from Kwargs only
)

// Interface describes the arguments that a method takes and the value that it returns. A shared value must not be
// changed.
type Interface struct {
	Summary    string      `json:"summary"`    // one line; may be empty
	Parameters []Parameter `json:"parameters"` // in positional order; never nil in a stored interface
	// Returns is the JSON Schema of the value; nil if nothing is known.
	Returns json.RawMessage `json:"returns,omitempty"`
	Origin  string          `json:"origin"` // declared or inferred
	// Open means that the program may read keywords that are not listed.
	Open bool `json:"open,omitempty"`
}

// Parameter is one argument of a method.
type Parameter struct {
	Name string `json:"name"`
	// Type is string, number, integer, boolean, array, object, null or typeFile; empty means any.
	Type        string          `json:"type,omitempty"`
	Description string          `json:"description,omitempty"`
	Required    bool            `json:"required"`
	Default     json.RawMessage `json:"default,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"`  // JSON Schema; it takes precedence over Type
	Aliases     []string        `json:"aliases,omitempty"` // other keywords that the program accepts for it
	// Variadic means that it takes all positional arguments from its place on, as a list. It must be the last
	// positional parameter.
	Variadic bool   `json:"variadic,omitempty"`
	ReadBy   string `json:"read_by,omitempty"` // position or name; empty means either
}

// jsonTypes are the type names of JSON Schema.
var jsonTypes = []string{"string", "number", "integer", "boolean", "array", "object", "null"}

// typeFile is the type of a parameter that takes a reference to a file: {"$file": "file_..."}.
const typeFile = "file"

// parameterTypes are the allowed values of Parameter.Type.
var parameterTypes = append(slices.Clone(jsonTypes), typeFile)

// isParameterName reports whether a parameter or an alias can have the name: any keyword of visible characters.
func isParameterName(name string) bool {
	return name != "" && len(name) <= MaxParameterName && utf8.ValidString(name) && strings.TrimSpace(name) == name &&
		!strings.ContainsFunc(name, func(r rune) bool { return !Seen(r) })
}

// Validate returns the first fault of the interface, in words that its author can act on. It checks only that schemas
// are objects or booleans.
func (f *Interface) Validate() error {
	if len(f.Parameters) > MaxParameters {
		return fmt.Errorf("parameters: %d, at most %d are allowed", len(f.Parameters), MaxParameters)
	}
	if len(f.Summary) > MaxSummary {
		return fmt.Errorf("summary: more than %d bytes", MaxSummary)
	}
	if f.Returns != nil && !isSchema(f.Returns) {
		return fmt.Errorf("returns: must be a JSON Schema, an object or a boolean")
	}
	seen, optional := map[string]bool{}, ""
	for i := range f.Parameters {
		p := &f.Parameters[i]
		if err := p.validate(); err != nil {
			return fmt.Errorf("parameters[%d]: %w", i, err)
		}
		for _, name := range append([]string{p.Name}, p.Aliases...) {
			if seen[name] {
				return fmt.Errorf("parameters[%d]: the name %q appears twice", i, name)
			}
			seen[name] = true
		}
		switch {
		case p.Variadic && i < len(f.Parameters)-1 && f.Parameters[i+1].ReadBy != readByName:
			return fmt.Errorf("parameters[%d]: %s is variadic and must be the last positional one", i, p.Name)
		case f.Origin != OriginInferred && p.Required && optional != "" && p.ReadBy != readByName:
			return fmt.Errorf("parameters[%d]: %s is required but follows %s, which is optional: order is positional",
				i, p.Name, optional)
		case !p.Required && optional == "":
			optional = p.Name
		}
	}
	if n := len(Encoded(f)); n > MaxInterfaceBytes {
		return fmt.Errorf("the interface has %d bytes; at most %d are allowed", n, MaxInterfaceBytes)
	}
	return nil
}

// validate returns the first fault of the parameter.
func (p *Parameter) validate() error {
	for _, name := range append([]string{p.Name}, p.Aliases...) {
		if !isParameterName(name) {
			return fmt.Errorf("the name %q is not allowed: 1 to %d bytes of visible characters, no space at either end",
				clipped(name, MaxParameterName), MaxParameterName)
		}
	}
	switch {
	case len(p.Aliases) > maxAliases:
		return fmt.Errorf("%s has more than %d aliases", p.Name, maxAliases)
	case p.Type != "" && !slices.Contains(parameterTypes, p.Type):
		return fmt.Errorf("%s has the type %q; it must be one of %s", p.Name, clipped(p.Type, 40),
			strings.Join(parameterTypes, ", "))
	case len(p.Description) > MaxDescription:
		return fmt.Errorf("the description of %s has more than %d bytes", p.Name, MaxDescription)
	case p.Schema != nil && !isSchema(p.Schema):
		return fmt.Errorf("the schema of %s must be a JSON Schema, an object or a boolean", p.Name)
	case p.Default != nil && !json.Valid(p.Default):
		return fmt.Errorf("the default of %s is not JSON", p.Name)
	case p.Default != nil && p.Required:
		return fmt.Errorf("%s is required and has a default; it can have one of them", p.Name)
	case p.ReadBy != readEither && p.ReadBy != readByPosition && p.ReadBy != readByName:
		return fmt.Errorf("%s has an unknown read_by", p.Name)
	}
	return nil
}

// isSchema reports whether raw has the kind of a JSON Schema. It does not compile the schema.
func isSchema(raw json.RawMessage) bool {
	if !json.Valid(raw) {
		return false
	}
	kind := Kind(raw)
	return kind == "object" || kind == "boolean"
}

// clipped shortens text to about n bytes, at a character boundary.
func clipped(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + "..."
}

// Parameter returns the parameter with that name or alias and its index, or nil and -1.
func (f *Interface) Parameter(name string) (*Parameter, int) {
	if f == nil {
		return nil, -1
	}
	for i := range f.Parameters {
		if p := &f.Parameters[i]; p.Name == name || slices.Contains(p.Aliases, name) {
			return p, i
		}
	}
	return nil, -1
}

// Breaks describes how the interface breaks callers of the earlier one: a parameter that is gone, has moved or is newly
// required. It returns "" if every earlier call still fits, or if either interface is nil.
func (f *Interface) Breaks(earlier *Interface) string {
	if f == nil || earlier == nil {
		return ""
	}
	skipped := false // the earlier program skips a position, so the parameters after it are optional
	for i := range earlier.Parameters {
		was := &earlier.Parameters[i]
		now, at := f.Parameter(was.Name)
		skipped = skipped || was.Description == notRead
		switch {
		case now == nil && !f.Open && was.Description != notRead:
			return fmt.Sprintf("the parameter %s is gone", was.Name)
		case now != nil && at != i && was.ReadBy != readByName:
			return fmt.Sprintf("the parameter %s was at place %d and is now at place %d", was.Name, i+1, at+1)
		case now != nil && now.Required && !was.Required && earlier.Origin == OriginDeclared &&
			(!skipped || was.ReadBy == readByName):
			return fmt.Sprintf("the parameter %s has become required", was.Name)
		}
	}
	for i := range f.Parameters {
		if now := &f.Parameters[i]; now.Required && !earlier.knows(now) {
			return fmt.Sprintf("the parameter %s is new and required", now.Name)
		}
	}
	return ""
}

// knows reports whether f has a parameter with the name, or an alias, of p.
func (f *Interface) knows(p *Parameter) bool {
	if was, _ := f.Parameter(p.Name); was != nil {
		return true
	}
	return slices.ContainsFunc(p.Aliases, func(name string) bool {
		was, _ := f.Parameter(name)
		return was != nil
	})
}

// Adopt adds a keyword of the call as an alias of a required parameter. It does so only if the call lacks exactly one
// required parameter and has exactly one unknown keyword, and one of the two names has all words of the other, as in
// rate and annual_rate_percent: the program was written for that call. args is the number of positional arguments,
// unknown lists the keywords that no parameter takes.
func (f *Interface) Adopt(args int, kwargs json.RawMessage, unknown []string) {
	if f == nil || len(unknown) != 1 || !isParameterName(unknown[0]) {
		return
	}
	given := keywords(kwargs)
	var lacks []*Parameter
	for i := range f.Parameters {
		p := &f.Parameters[i]
		named := slices.ContainsFunc(append([]string{p.Name}, p.Aliases...),
			func(name string) bool { return given[name] != nil })
		if p.Required && !p.Variadic && !named && (p.ReadBy == readByName || i >= args) {
			lacks = append(lacks, p)
		}
	}
	if len(lacks) == 1 && len(lacks[0].Aliases) < maxAliases && sameWords(lacks[0].Name, unknown[0]) {
		lacks[0].Aliases = append(slices.Clip(lacks[0].Aliases), unknown[0])
	}
}

// sameWords reports whether one name contains all words of the other.
func sameWords(a, b string) bool {
	x, y := strings.Split(strings.ToLower(a), "_"), strings.Split(strings.ToLower(b), "_")
	within := func(x, y []string) bool {
		return !slices.ContainsFunc(x, func(w string) bool { return !slices.Contains(y, w) })
	}
	return within(x, y) || within(y, x)
}

// NeverNull reports whether the author declared a schema for the value whose types are all known and do not include
// null.
func (f *Interface) NeverNull() bool {
	if f == nil || f.Origin != OriginDeclared {
		return false
	}
	var schema struct {
		Type     json.RawMessage `json:"type"`
		Nullable bool            `json:"nullable"`
	}
	var one string
	var several []string
	if json.Unmarshal(f.Returns, &schema) != nil || schema.Nullable {
		return false
	}
	if json.Unmarshal(schema.Type, &one) == nil {
		several = []string{one}
	} else if json.Unmarshal(schema.Type, &several) != nil {
		return false
	}
	return len(several) > 0 && !slices.ContainsFunc(several, func(word string) bool {
		word = plainType(word)
		return word == "null" || !slices.Contains(jsonTypes, word)
	})
}

// Takes returns the interface of the current program, or nil if it is not known. a may be nil.
func (a *Artifact) Takes() *Interface {
	if a == nil {
		return nil
	}
	if g := a.Current(); g != nil {
		return g.Interface
	}
	return nil
}

// SameInput compares arguments by their JSON values, whether given by position or by name.
func (a *Artifact) SameInput(aArgs []json.RawMessage, aKwargs json.RawMessage, bArgs []json.RawMessage,
	bKwargs json.RawMessage) bool {
	return a.Takes().SameInput(aArgs, aKwargs, bArgs, bKwargs)
}
