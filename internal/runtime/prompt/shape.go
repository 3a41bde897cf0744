package prompt

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
)

// Shape describes a value of the context without showing it: "number", "array of {id: number, text: string}". A program
// that reads what another method stored cannot be written without it. A list is described by its first element. An
// object is described by its members if there are few and their names look like identifiers; otherwise its keys are
// data, and it is described as "object".
func Shape(raw json.RawMessage) string {
	v, err := contract.Decode(raw)
	if err != nil {
		return agent.Kind(raw)
	}
	return shape(v, regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,31}$`), 0)
}

// shape describes a decoded value down to a fixed depth.
func shape(v any, name *regexp.Regexp, depth int) string {
	const deepest, most = 3, 12
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		if len(v) == 0 || depth == deepest {
			return "array"
		}
		return "array of " + shape(v[0], name, depth+1)
	case map[string]any:
		if len(v) == 0 || len(v) > most || depth == deepest {
			return "object"
		}
		members := make([]string, 0, len(v))
		for k, e := range v {
			if !name.MatchString(k) {
				return "object"
			}
			members = append(members, k+": "+shape(e, name, depth+1))
		}
		slices.Sort(members)
		return "{" + strings.Join(members, ", ") + "}"
	}
	return "number"
}

// Outline describes a value without its content: types, lengths of texts and lists as powers of ten, and the names of
// declared members. Other members, whose names may be data, are only counted. Requests for calls of other owners show
// it in place of the value.
func Outline(raw json.RawMessage, declared func(name string) bool) string {
	v, err := contract.Decode(raw)
	if err != nil {
		return agent.Kind(raw)
	}
	return outline(v, declared, 0)
}

// outline describes a decoded value down to a fixed depth.
func outline(v any, declared func(string) bool, depth int) string {
	const deepest = 4
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		if v == "" {
			return "empty string"
		}
		return "string of " + magnitude(len([]rune(v)))
	case []any:
		switch {
		case len(v) == 0:
			return "empty array"
		case depth == deepest:
			return "array of " + magnitude(len(v))
		}
		return "array of " + magnitude(len(v)) + " of " + outline(v[0], declared, depth+1)
	case map[string]any:
		if len(v) == 0 {
			return "empty object"
		}
		return "{" + members(v, declared, depth, deepest) + "}"
	}
	return "number"
}

// members describes the declared members, and counts the others.
func members(v map[string]any, declared func(string) bool, depth, deepest int) string {
	const most = 12
	var out []string
	for k, e := range v {
		if !declared(k) {
			continue
		}
		if depth < deepest {
			k += ": " + outline(e, declared, depth+1)
		}
		out = append(out, k)
	}
	slices.Sort(out)
	out = out[:min(len(out), most)]
	if more := len(v) - len(out); more > 0 {
		out = append(out, fmt.Sprintf("%d more", more))
	}
	return strings.Join(out, ", ")
}

// magnitude returns the range between powers of ten that n falls into.
func magnitude(n int) string {
	from, to := 1, 10
	for n > to {
		from, to = to+1, to*10
	}
	return fmt.Sprintf("%d to %d", from, to)
}
