package stubs

import (
	"fmt"
	"strings"
)

// typescriptReserved lists names that a method of a class must not have.
var typescriptReserved = strings.Fields(`constructor prototype then`)

// typescriptTypes are the type names that the wrappers use.
var typescriptTypes = strings.Fields(`Caller Promise Record Array`)

const typescriptHead = `// ` + mark + `. Do not edit: they are written again.
// Typed wrappers of the tools of a recurgentd, for a session of its TypeScript client.

/** A session: what the wrappers need of it. */
export interface Caller {
  call(method: string, args: unknown[], kwargs: Record<string, unknown>, options: { role: string }): Promise<{ readonly value: unknown }>;
}
`

func typescript(roles []role) []byte {
	var b strings.Builder
	b.WriteString(typescriptHead)
	for _, r := range roles {
		id := snake(r.id, "Role", typescriptTypes)
		fmt.Fprintf(&b, "\n/** %s */\nexport class %s {\n  readonly #session: Caller;\n\n  constructor(session: Caller) {\n    this.#session = session;\n  }\n", block(r.name), id)
		taken := names{}
		for _, m := range r.methods {
			b.WriteString("\n" + typescriptMethod(&m, taken.take(snake(m.name, "method", typescriptReserved))))
		}
		b.WriteString("}\n")
	}
	return []byte(b.String())
}

func typescriptMethod(m *method, id string) string {
	var members []string
	absent := " = {}"
	for _, p := range m.parameters {
		mark := "?"
		if p.required {
			mark, absent = "", ""
		}
		members = append(members, fmt.Sprintf("%s%s: %s", quoted(p.name), mark, typescriptType(p.shape)))
	}
	if m.open {
		members = append(members, "[name: string]: unknown")
	}
	takes, gives := "", "{}"
	if len(members) > 0 {
		takes, gives = "args: { "+strings.Join(members, "; ")+" }"+absent, "args"
	}
	return fmt.Sprintf("  /** %s */\n  async %s(%s): Promise<%s> {\n    return (await this.#session.call(%s, [], %s, { role: %s })).value as %s;\n  }\n",
		block(m.described()), id, takes, typescriptType(m.returns), quoted(m.name), gives, quoted(m.role),
		typescriptType(m.returns))
}

func quoted(text string) string { return literal(text, `\u{%x}`) }

// block returns a text for a block comment.
func block(text string) string { return strings.ReplaceAll(line(text), "*/", "* /") }

func typescriptType(s shape) string {
	switch s.kind {
	case kindText:
		if len(s.texts) == 0 {
			return "string"
		}
		var all []string
		for _, t := range s.texts {
			all = append(all, quoted(t))
		}
		return strings.Join(all, " | ")
	case kindList:
		return "Array<" + typescriptType(*s.item) + ">"
	case kindUnion:
		var all []string
		for _, u := range s.union {
			all = append(all, typescriptType(u))
		}
		return strings.Join(all, " | ")
	}
	return map[kind]string{kindAny: "unknown", kindNumber: "number", kindInteger: "number", kindBoolean: "boolean",
		kindNull: "null", kindObject: "Record<string, unknown>", kindFile: `{ "$file": string }`}[s.kind]
}
