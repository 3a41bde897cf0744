package prompt

import (
	"encoding/json"
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
