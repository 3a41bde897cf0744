package evolve

import (
	"bytes"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/rawjson"
)

// Bounds of the search for empty arrays.
const (
	maxEmptyDepth  = 8 // levels of objects and arrays
	maxWeakReasons = 32
)

// emptyUnderSuccess finds empty arrays, at any depth of a value, in objects whose own status is a success.
type emptyUnderSuccess struct {
	policy agent.WeakPolicy
	found  []string // reasons
}

// walk searches the value at a path. All elements of an array share the path element "*", because a reason names a kind
// of fault and not its position.
func (s *emptyUnderSuccess) walk(value []byte, place string, depth int) {
	if depth > maxEmptyDepth || !hasEmptyArray(value) {
		return
	}
	switch agent.Kind(value) {
	case "object":
		success := s.callsItselfSuccess(value)
		rawjson.Members(value, func(key string, v []byte) {
			switch {
			case !isEmptyArray(v):
				s.walk(v, place+"/"+escape(key), depth+1)
			case success && len(s.found) < maxWeakReasons:
				s.found = append(s.found, weakEmpty+":"+place+"/"+escape(key))
			}
		})
	case "array":
		elements(value, func(v []byte) { s.walk(v, place+"/*", depth+1) })
	}
}

// callsItselfSuccess reports whether the object has a status of success. Weak statuses count as well, because the
// call's outcome is ok with them.
func (s *emptyUnderSuccess) callsItselfSuccess(object []byte) bool {
	success := false
	rawjson.Members(object, func(key string, v []byte) {
		success = success || policyWord(key, v, s.policy.SuccessStatuses) != "" ||
			policyWord(key, v, s.policy.Statuses) != ""
	})
	return success
}

// elements calls f for every element of the array that raw is.
func elements(raw []byte, f func(value []byte)) {
	i := rawjson.SkipSpace(raw, bytes.IndexByte(raw, '[')+1)
	for i < len(raw) && raw[i] != ']' {
		end := rawjson.ValueEnd(raw, i)
		if end <= i || end > len(raw) {
			return
		}
		f(raw[i:end])
		if i = rawjson.SkipSpace(raw, end); i < len(raw) && raw[i] == ',' {
			i = rawjson.SkipSpace(raw, i+1)
		}
	}
}
