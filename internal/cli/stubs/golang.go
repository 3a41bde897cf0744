package stubs

import (
	"fmt"
	"strings"
)

const goHead = `// ` + mark + `. DO NOT EDIT.

// Package tools has typed wrappers of the tools of a recurgentd, by its Go client.
package tools

import (
	"context"
	"encoding/json"

	recurgent "github.com/recurgentd/recurgentd/clients/go"
)

// call calls a method of a role with named arguments and reads its value.
func call(ctx context.Context, s *recurgent.Session, role, method string, given map[string]any, value any) error {
	request, err := recurgent.Request(method)
	if err != nil {
		return err
	}
	request.Role = &role
	request.Kwargs = map[string]json.RawMessage{}
	for name, v := range given {
		if request.Kwargs[name], err = json.Marshal(v); err != nil {
			return err
		}
	}
	reply, err := s.Send(ctx, request)
	if err != nil {
		return err
	}
	return reply.Into(value)
}
`

// golang prints the wrappers in Go.
func golang(roles []role) []byte {
	var b strings.Builder
	b.WriteString(goHead)
	types := names{}
	for _, r := range roles {
		types.take(r.id)
	}
	for _, r := range roles {
		maker := types.take("New" + r.id)
		fmt.Fprintf(&b, "\n// %[1]s has the methods of %[2]s.\ntype %[1]s struct{ session *recurgent.Session }\n\n// %[3]s returns the methods, called in the session.\nfunc %[3]s(session *recurgent.Session) %[1]s { return %[1]s{session} }\n", r.id, goComment(r.name), maker)
		taken := names{"session": true}
		for _, m := range r.methods {
			id := taken.take(camel(m.name, "Method"))
			b.WriteString(goMethod(&m, r.id, id, types.take(r.id+id+"Args")))
		}
	}
	return []byte(b.String()) // as gofmt writes it: the daemon's binary has no parser of Go to have it done
}

// goMethod returns the source of a method and, if it takes arguments, of their type.
func goMethod(m *method, role, id, args string) string {
	var fields []string // separated by blank lines, so that gofmt does not align them
	var fill strings.Builder
	taken := names{}
	for _, p := range m.parameters {
		field := taken.take(camel(p.name, "Argument"))
		t := goType(p.shape)
		value := "args." + field
		if pointer := !p.required && !strings.HasPrefix(t, "[]") && !strings.HasPrefix(t, "map[") &&
			t != "any"; pointer {
			t, value = "*"+t, "*args."+field
		}
		fields = append(fields, fmt.Sprintf("\t// %s\n\t%s %s\n", goComment(field+" is "+p.name+": "+p.description),
			field, t))
		switch {
		case p.required && (p.shape.kind == kindList || p.shape.kind == kindObject): // nil would be null
			fmt.Fprintf(&fill, "\tif args.%s == nil {\n\t\targs.%[1]s = %s{}\n\t}\n", field, t)
			fallthrough
		case p.required:
			fmt.Fprintf(&fill, "\tgiven[%s] = %s\n", quote(p.name), value)
		default:
			fmt.Fprintf(&fill, "\tif args.%s != nil {\n\t\tgiven[%s] = %s\n\t}\n", field, quote(p.name), value)
		}
	}
	if m.open {
		more := taken.take("More")
		fields = append(fields, fmt.Sprintf("\t// %[1]s are further arguments, by name.\n\t%[1]s map[string]any\n",
			more))
		fmt.Fprintf(&fill, "\tfor name, v := range args.%s {\n\t\tgiven[name] = v\n\t}\n", more)
	}
	types, takes := "", ""
	if len(fields) > 0 {
		types = fmt.Sprintf("\n// %[1]s are the arguments of %[2]s.%[3]s; nil is absent, or empty where it is required.\ntype %[1]s struct {\n%[4]s}\n", args, role, id, strings.Join(fields, "\n"))
		takes = ", args " + args
	}
	t := goType(m.returns)
	if t == "any" {
		t = "json.RawMessage"
	}
	return types + fmt.Sprintf(
		"\n// %s: %s\nfunc (r %s) %s(ctx context.Context%s) (value %s, err error) {\n\tgiven := map[string]any{}\n%s\terr = call(ctx, r.session, %s, %s, given, &value)\n\treturn value, err\n}\n",
		id, goComment(m.described()), role, id, takes, t, fill.String(), quote(m.role), quote(m.name))
}

// goComment returns a text for a doc comment, with the quotation marks that gofmt would substitute.
func goComment(text string) string {
	return strings.NewReplacer("``", "\u201c", "''", "\u201d").Replace(line(text))
}

func goType(s shape) string {
	switch s.kind {
	case kindList:
		return "[]" + goType(*s.item)
	case kindNull, kindUnion, kindAny:
		return "any"
	}
	return map[kind]string{kindText: "string", kindNumber: "float64", kindInteger: "int64", kindBoolean: "bool",
		kindObject: "map[string]any", kindFile: "map[string]any"}[s.kind]
}
