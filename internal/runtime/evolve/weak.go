// Package evolve examines the outcomes of calls for what could be better: ok values that achieved little, users who ask
// the same question again, capabilities that keep recurring. It turns repeated evidence into recommendations for a
// person. It never changes an outcome, an artifact or a contract. Every function here is pure over plain data: the same
// input gives the same bytes. All may be called concurrently. A value is read once for each of eight levels at most, and of arguments 64 KiB are compared.
package evolve

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/rawjson"
)

// Kinds of weak success: with what a reason begins.
const (
	WeakStatus = "weak_status"
	WeakEmpty  = "empty_array"
)

// Weak says why an ok value is a weak success, or returns nil when it is none. A reason is a kind, a colon, and a JSON
// pointer ("/" is the whole value), with the word after "=" for a status:
//
//	weak_status:/status=success_no_parse
//	empty_array:/movies
//
// The value's own status word is looked up in the policy. An empty array counts in a field that the deliverable
// requires or constrains, as the whole value of an array deliverable, and, with or without a contract, in any object
// whose own status says success: in /a/*/b, * is any element of the array a. value is valid JSON.
//
// For a value that holds no empty array and none of the words, it costs one look at the bytes and no allocation.
func Weak(value, deliverable json.RawMessage, p agent.WeakPolicy) []string {
	word := hasStatus(value, p.Statuses)
	empty := p.EmptyArrays && hasEmptyArray(value)
	if !word && !empty {
		return nil
	}
	var reasons []string
	kind := agent.Kind(value)
	if kind == "array" && empty && isEmptyArray(value) && declaresArray(deliverable) {
		return []string{WeakEmpty + ":/"}
	}
	var looked map[string]bool
	if empty {
		looked = watchedFields(deliverable)
		if bytes.Contains(value, []byte(`"status"`)) {
			s := emptyUnderSuccess{policy: p}
			s.walk(value, "", 0)
			reasons = s.found
		}
	}
	rawjson.Members(value, func(key string, v []byte) {
		if word && key == "status" && len(v) > 0 && v[0] == '"' {
			var s string
			if json.Unmarshal(v, &s) == nil && slices.Contains(p.Statuses, s) {
				reasons = append(reasons, WeakStatus+":/status="+s)
			}
		}
		if looked[key] && isEmptyArray(v) && len(reasons) < maxWeakReasons {
			reasons = append(reasons, WeakEmpty+":/"+escape(key))
		}
	})
	slices.Sort(reasons)
	return slices.Compact(reasons)
}

// weakKind returns the kind of a reason, or other.
func weakKind(reason string) string {
	kind, _, _ := strings.Cut(reason, ":")
	if kind != WeakStatus && kind != WeakEmpty {
		return "other"
	}
	return kind
}

// WeakKinds returns the reasons as others than the owner of the value may read them: with the names of members that are declared, and * in the place of
// others, which may be data.
func WeakKinds(reasons []string, declared func(name string) bool) []string {
	var out []string
	for _, r := range reasons {
		if kind, pointer, _ := strings.Cut(r, ":"); kind != WeakStatus { // whose words are the policy's
			steps := strings.Split(pointer, "/")
			for i, step := range steps {
				if step != "" && !declared(unescape(step)) {
					steps[i] = "*"
				}
			}
			r = kind + ":" + strings.Join(steps, "/")
		}
		if !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	return out
}

func unescape(step string) string {
	return strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
}

// emptyField returns the top-level key that a reason says is empty; ok is false for other reasons, those of places
// deeper down included, whole is true when it is the value itself.
func emptyField(reason string) (key string, whole, ok bool) {
	pointer, ok := strings.CutPrefix(reason, WeakEmpty+":/")
	if strings.Contains(pointer, "/") {
		return "", false, false
	}
	return unescape(pointer), pointer == "", ok
}

func hasStatus(value []byte, words []string) bool {
	if !bytes.Contains(value, []byte(`"status"`)) {
		return false
	}
	return slices.ContainsFunc(words, func(w string) bool {
		for rest := value; ; {
			i := bytes.Index(rest, []byte(w))
			if i < 0 {
				return false
			}
			if i > 0 && rest[i-1] == '"' && i+len(w) < len(rest) && rest[i+len(w)] == '"' {
				return true
			}
			rest = rest[i+len(w):]
		}
	})
}

func hasEmptyArray(value []byte) bool {
	for {
		i := bytes.IndexByte(value, '[')
		if i < 0 {
			return false
		}
		value = value[i+1:]
		if j := rawjson.SkipSpace(value, 0); j < len(value) && value[j] == ']' {
			return true
		}
	}
}

func isEmptyArray(v []byte) bool {
	v = bytes.TrimSpace(v)
	return len(v) >= 2 && v[0] == '[' && len(bytes.TrimSpace(v[1:len(v)-1])) == 0
}

// shape is what the detector needs to know of a deliverable, in either form.
type shape struct {
	Type        json.RawMessage            `json:"type"`
	Required    []string                   `json:"required"`
	Properties  map[string]json.RawMessage `json:"properties"`
	MinItems    json.RawMessage            `json:"min_items"`
	Constraints struct {
		Properties map[string]json.RawMessage `json:"properties"`
	} `json:"constraints"`
}

func readShape(deliverable json.RawMessage) shape {
	var s shape
	if len(deliverable) > 0 {
		_ = json.Unmarshal(deliverable, &s) // members of another type stay empty and are not checked
	}
	return s
}

func declaresArray(deliverable json.RawMessage) bool {
	return bytes.Contains(bytes.ToLower(readShape(deliverable).Type), []byte(`"array"`))
}

// watchedFields are the keys that the deliverable requires or constrains to arrays.
func watchedFields(deliverable json.RawMessage) map[string]bool {
	s := readShape(deliverable)
	fields := make(map[string]bool, len(s.Required))
	for _, k := range s.Required {
		fields[k] = true
	}
	for k := range s.Constraints.Properties {
		fields[k] = true
	}
	for k, p := range s.Properties {
		if declaresArray(p) {
			fields[k] = true
		}
	}
	return fields
}

func escape(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}
