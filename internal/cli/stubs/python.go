package stubs

import (
	"fmt"
	"strings"
)

// pythonReserved lists Python's keywords and the names that the wrappers use.
var pythonReserved = strings.Fields(
	`False None True and as assert async await break class continue def del elif else except finally for from global if import in is
	lambda nonlocal not or pass raise return try while with yield match case type self _role Any Literal Session bool dict float int list str`)

const pythonHead = `# ` + mark + `. Do not edit: they are written again.
"""Typed wrappers of the tools of a recurgentd, by its Python client."""

from __future__ import annotations

from typing import Any, Literal

from recurgent import File as _File, Session

_ABSENT: Any = object()


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not _ABSENT}
`

func python(roles []role) []byte {
	var b strings.Builder
	b.WriteString(pythonHead)
	for _, r := range roles {
		fmt.Fprintf(&b, "\n\nclass %s:\n    %s\n\n    def __init__(self, session: Session) -> None:\n        self._role = session.role(%s)\n", snake(r.id, "Role", pythonReserved), quote(line(r.name)), quote(r.name))
		taken := names{"_role": true}
		for _, m := range r.methods {
			b.WriteString("\n" + pythonMethod(&m, taken.take(snake(m.name, "method", pythonReserved))))
		}
	}
	return []byte(b.String())
}

// pythonMethod prints a method. Parameters without a default come first.
func pythonMethod(m *method, id string) string {
	var takes, gives []string
	taken := names{"self": true, "more": true}
	for _, required := range []bool{true, false} { // Python requires parameters without a default to come first
		for _, p := range m.parameters {
			if p.required != required {
				continue
			}
			name, absent := taken.take(snake(p.name, "argument", pythonReserved)), ""
			if !required {
				absent = " = _ABSENT"
			}
			takes = append(takes, fmt.Sprintf("%s: %s%s", name, pythonType(p.shape, "_File | "), absent))
			gives = append(gives, quote(p.name)+": "+name)
		}
	}
	head := strings.Join(append([]string{"self"}, takes...), ", ")
	given := "{" + strings.Join(gives, ", ") + "}"
	if m.open {
		head += ", **more: Any"
		given = strings.TrimSuffix(given, "}") + map[bool]string{true: ", ", false: ""}[len(gives) > 0] + "**more}"
	}
	return fmt.Sprintf("    def %s(%s) -> %[3]s:\n        %[4]s\n        _value: %[3]s = self._role[%[5]s](**_given(**%[6]s))\n        return _value\n", id, head, pythonType(m.returns, ""), quote(m.described()), quote(m.name), given)
}

// pythonType returns the type of values. file precedes the type of a reference to a file.
func pythonType(s shape, file string) string {
	switch s.kind {
	case kindText:
		if len(s.texts) == 0 {
			return "str"
		}
		var all []string
		for _, t := range s.texts {
			all = append(all, quote(t))
		}
		return "Literal[" + strings.Join(all, ", ") + "]"
	case kindList:
		return "list[" + pythonType(*s.item, file) + "]"
	case kindUnion:
		var all []string
		for _, u := range s.union {
			all = append(all, pythonType(u, file))
		}
		return strings.Join(all, " | ")
	}
	return map[kind]string{kindAny: "Any", kindNumber: "float", kindInteger: "int", kindBoolean: "bool",
		kindNull: "None", kindObject: "dict[str, Any]", kindFile: file + "dict[str, Any]"}[s.kind]
}

// described returns one line about the method's purpose and parameters.
func (m *method) described() string {
	parts := []string{m.role + "." + m.name}
	if m.summary != "" {
		parts = append(parts, m.summary)
	}
	for _, p := range m.parameters {
		if p.description != "" {
			parts = append(parts, p.name+": "+p.description)
		}
	}
	return line(strings.Join(parts, " | "))
}
