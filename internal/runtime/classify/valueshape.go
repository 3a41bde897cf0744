package classify

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Shape describes the shape of a value: its kind and, for an object, its keys with their kinds.
func Shape(value json.RawMessage) string {
	kind := agent.Kind(value)
	var fields map[string]json.RawMessage
	if kind != "object" || json.Unmarshal(value, &fields) != nil {
		return kind
	}
	keys := make([]string, 0, len(fields))
	for k, v := range fields {
		keys = append(keys, k+":"+agent.Kind(v))
	}
	slices.Sort(keys)
	return agent.Clip("object{"+strings.Join(keys, ",")+"}", 400)
}

// keepsShape reports whether a value's shape is compatible with an earlier one. null is compatible with any list, and
// additional keys are allowed.
func keepsShape(was, now string) bool {
	if was == now || fitsKind(was, now) {
		return true
	}
	before, wasObject := fieldsOf(was)
	after, isObject := fieldsOf(now)
	if !wasObject || !isObject {
		return false
	}
	for key, kind := range before {
		if is, known := after[key]; is != kind && !(known && fitsKind(kind, is)) {
			return false
		}
	}
	return true
}

// fitsKind reports whether one kind is a list and the other null.
func fitsKind(was, now string) bool {
	return was == "array" && now == "null" || was == "null" && now == "array"
}

// fieldsOf parses the keys and kinds of an object's shape. It returns false for other kinds, and for a shape that was
// cut.
func fieldsOf(shape string) (map[string]string, bool) {
	inner, isObject := strings.CutPrefix(shape, "object{")
	inner, whole := strings.CutSuffix(inner, "}")
	if !isObject || !whole {
		return nil, false
	}
	out := map[string]string{}
	for field := range strings.SplitSeq(inner, ",") {
		i := strings.LastIndexByte(field, ':')
		out[field[:max(0, i)]] = field[i+1:]
	}
	return out, true
}
