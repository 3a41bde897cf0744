package reply

import (
	"encoding/json"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// found returns the program of a candidate with the other arguments of its call. These are optional, so one of a wrong
// type is dropped.
func (c *candidate) found() Found {
	f := Found{Form: c.form, Code: c.code, Unchanged: c.rank == rankKeeps}
	if c.args == nil {
		return f
	}
	f.Notes = textOf(c.args.get("notes"))
	if shape, ok := decoded(c.args.get("solver_shape")).(*object); ok {
		if raw := encode(shape); len(raw) <= 16<<10 {
			f.SolverShape = raw
		}
	}
	d := agent.Declaration{Summary: declaredSummary(c.args.get("summary")),
		Parameters: declaredParameters(c.args.get("parameters")), Returns: declaredReturns(c.args.get("returns"))}
	if len(d.Summary)+len(d.Parameters)+len(d.Returns) <= 2*agent.MaxInterfaceBytes {
		f.Declaration = d
	}
	return f
}

// decoded returns v or, if v is a string that contains JSON, the decoded value.
func decoded(v any) any {
	s := strings.TrimSpace(textOf(v))
	if s == "" || !strings.ContainsRune(`{["`, rune(s[0])) {
		return v
	}
	if inner, end, closed, ok := parse(s); ok && closed && end == len(s) {
		return decoded(inner)
	}
	return v
}

func declaredSummary(v any) json.RawMessage {
	if v == nil {
		return nil
	}
	if t, ok := v.(text); ok {
		return quoted(t.value)
	}
	return encode(v)
}

// declaredParameters returns the parameters as a list. They may come as a list, a JSON Schema, or an object of types by
// name.
func declaredParameters(v any) json.RawMessage {
	switch v := decoded(v).(type) {
	case nil:
		return nil
	case []any:
		for i, e := range v {
			v[i] = declaredParameter(e)
		}
		return encode(v)
	case *object:
		return encode(parameterList(v))
	default:
		return encode(v)
	}
}

// declaredParameter normalizes one parameter: a name alone, or an object with its type and required.
func declaredParameter(v any) any {
	if t, ok := v.(text); ok { // only its name
		o := newObject()
		o.put("name", t)
		return o
	}
	o, ok := v.(*object)
	if !ok {
		return v
	}
	if kind := o.get("type"); kind != nil {
		o.values["type"] = declaredType(kind)
	}
	if yes, ok := words[textOf(o.get("required"))]; ok {
		o.values["required"] = yes
	}
	return o
}

// typeNames maps the names of types in other languages to those of JSON.
var typeNames = map[string]string{"str": "string", "text": "string", "int": "integer", "int64": "integer",
	"float": "number", "float64": "number", "double": "number",
	"bool": "boolean", "list": "array", "slice": "array", "dict": "object", "map": "object", "interface{}": "any"}

// declaredType converts the name of a type to that of JSON. It returns unknown names in lower case.
func declaredType(v any) any {
	t, ok := v.(text)
	if !ok {
		return v
	}
	name := strings.ToLower(strings.TrimSpace(t.value))
	switch to, known := typeNames[name]; {
	case known:
		name = to
	case strings.HasPrefix(name, "[]"), strings.HasPrefix(name, "list["):
		name = "array"
	case strings.HasPrefix(name, "map["), strings.HasPrefix(name, "dict["):
		name = "object"
	}
	return text{raw: name, value: name, style: styleRaw}
}

// parameterList converts an object to a list of parameters: its members or, if it is a JSON Schema, its properties.
func parameterList(o *object) []any {
	list := []any{}
	members, isSchema := o.get("properties").(*object)
	if !isSchema {
		members = o
	}
	var required map[string]bool
	if names, ok := o.get("required").([]any); ok && isSchema {
		required = map[string]bool{}
		for _, name := range names {
			required[textOf(name)] = true
		}
	}
	for _, key := range members.keys {
		p := parameterOf(key, members.values[key])
		if _, said := p.values["required"].(bool); required != nil && !said {
			p.put("required", required[key])
		}
		list = append(list, p)
	}
	return list
}

// parameterOf converts a member to a parameter. v is its type or its schema.
func parameterOf(name string, v any) *object {
	p := newObject()
	p.put("name", text{raw: name, value: name, style: styleRaw})
	switch v := v.(type) {
	case text:
		p.put("type", declaredType(v))
	case *object:
		schema := false
		for _, key := range v.keys {
			switch key {
			case "type", "description", "required", "default", "schema", "variadic":
				p.put(key, v.values[key])
			case "name", "title":
			default:
				schema = true
			}
		}
		if _, said := p.values["schema"]; schema && !said {
			p.put("schema", v)
		}
		declaredParameter(p)
		// The list belongs to a schema of an object, not to the parameter.
		if _, isList := p.get("required").([]any); isList {
			delete(p.values, "required")
			p.keys = p.keys[:0]
			for _, key := range []string{"name", "type", "description", "default", "schema", "variadic"} {
				if _, ok := p.values[key]; ok {
					p.keys = append(p.keys, key)
				}
			}
		}
	}
	return p
}

// declaredReturns returns a JSON Schema, or nil if v is neither a schema nor the name of a type.
func declaredReturns(v any) json.RawMessage {
	switch v := decoded(v).(type) {
	case *object:
		if t := v.get("type"); t != nil {
			v.values["type"] = declaredType(t)
		}
		return encode(v)
	case bool:
		return encode(v)
	case text:
		switch name := textOf(declaredType(v)); name {
		case "string", "number", "integer", "boolean", "array", "object", "null":
			o := newObject()
			o.put("type", text{raw: name, value: name, style: styleRaw})
			return encode(o)
		}
	}
	return nil
}
