package agent

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// fileReference is the schema of a reference to a file.
const fileReference = `{"type":"object","required":["$file"],"properties":{"$file":{"type":"string"}}}`

// ofFile is the default description of a parameter that takes a file.
const ofFile = `a file: {"$file": "file_..."}, the reference that an upload answers with (the tool upload_file, or POST /v1/files)`

// Takes returns the schema of the parameter's value, or nil if it may be anything.
func (p *Parameter) Takes() json.RawMessage {
	switch {
	case p.Schema != nil || p.Type == "":
		return p.Schema
	case p.Type == typeFile:
		return json.RawMessage(fileReference)
	}
	return Encoded(map[string]string{"type": p.Type})
}

// JSONSchema returns the schema of the parameter's value with its description and default.
func (p *Parameter) JSONSchema() json.RawMessage {
	members := map[string]json.RawMessage{}
	if takes := p.Takes(); takes != nil && json.Unmarshal(takes, &members) != nil {
		return p.Schema // a boolean
	}
	put := func(key string, value json.RawMessage) {
		if _, there := members[key]; !there {
			members[key] = value
		}
	}
	switch {
	case p.Description != "":
		put("description", Encoded(p.Description))
	case p.Type == typeFile && p.Schema == nil:
		put("description", Encoded(ofFile))
	}
	if p.Default != nil {
		put("default", p.Default)
	}
	return Encoded(members)
}

// Signature returns the interface in one line: add(a: number, b?: number) -> number. A nil interface gives method(...).
func (f *Interface) Signature(method string) string {
	if f == nil {
		return method + "(...)"
	}
	var b strings.Builder
	b.WriteString(method + "(")
	for i := range f.Parameters {
		p := &f.Parameters[i]
		if i > 0 {
			b.WriteString(", ")
		}
		if p.Variadic {
			b.WriteString("...")
		}
		b.WriteString(p.shownName())
		if !p.Required {
			b.WriteByte('?')
		}
		b.WriteString(": " + typeName(p.Type, p.Schema))
		if p.Default != nil && len(p.Default) <= 40 {
			b.WriteString(" = " + string(p.Default))
		}
	}
	if f.Open {
		if len(f.Parameters) > 0 {
			b.WriteString(", ")
		}
		b.WriteString("...")
	}
	b.WriteByte(')')
	if f.Returns != nil {
		b.WriteString(" -> " + typeName("", f.Returns))
	}
	return b.String()
}

// shownName returns the parameter's name for a signature: quoted if it has other characters than letters, digits and
// _ . -.
func (p *Parameter) shownName() string {
	if Quoted(strings.ReplaceAll(p.Name, ".", "_"))[0] == '"' {
		return strconv.Quote(p.Name)
	}
	return p.Name
}

// typeName returns a short name of the values that a schema accepts.
func typeName(plain string, schema json.RawMessage) string {
	var s struct {
		Type       json.RawMessage            `json:"type"`
		Items      json.RawMessage            `json:"items"`
		Properties map[string]json.RawMessage `json:"properties"`
		Enum       []json.RawMessage          `json:"enum"`
	}
	if json.Unmarshal(schema, &s) != nil || schema == nil {
		if plain == "" {
			return "any"
		}
		return plain
	}
	var one string
	var several []string
	switch {
	case len(s.Enum) > 0 && len(s.Enum) <= 6:
		for _, v := range s.Enum {
			several = append(several, clipped(string(v), 30))
		}
		return strings.Join(several, "|")
	case json.Unmarshal(s.Type, &several) == nil && len(several) > 0:
		return strings.Join(several[:min(len(several), 4)], "|")
	case json.Unmarshal(s.Type, &one) != nil || one == "":
		return "any"
	case one == "array" && len(s.Items) > 0:
		if items := typeName("", s.Items); items != "any" && len(items) <= 80 {
			return items + "[]"
		}
	case one == "object" && len(s.Properties) > 0:
		names := make([]string, 0, len(s.Properties))
		for name := range s.Properties {
			names = append(names, clipped(name, 30))
		}
		slices.Sort(names)
		if len(names) > 6 {
			names = append(names[:6], "...")
		}
		return "{" + strings.Join(names, ", ") + "}"
	}
	return one
}
