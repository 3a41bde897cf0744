// Package evolve examines the outcomes of calls for possible improvements: ok values that achieved little, users who
// ask the same question again, and capabilities that keep recurring. It turns repeated evidence into recommendations
// for a person. It never changes an outcome, an artifact or a contract.
//
// All functions are pure: the same input gives the same bytes. They may be called concurrently. A value is read at most
// once for each of eight levels, and at most 64 KiB of arguments are compared.
package evolve

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/rawjson"
	"github.com/recurgentd/recurgentd/internal/contract"
)

// Kinds of weak success, with which a reason begins.
const (
	WeakStatus = "weak_status"
	weakEmpty  = "empty_array"
)

// Weak returns the reasons why an ok value is a weak success, or nil if it is not one. A reason is a kind, a colon and
// a JSON pointer ("/" is the whole value), followed by "=" and the word for a status:
//
//	weak_status:/status=success_no_parse
//	empty_array:/movies
//
// The policy's weak statuses are compared with the value's own status, and with the status of each object that is a
// member of it. Case and separators do not matter (Success_No_Parse). An empty array counts in a field that the
// deliverable requires or constrains, and as the whole value of an array deliverable. With or without a contract, it
// also counts in any object whose own status is a success. In /a/*/b, * is any element of the array a. value must be
// valid JSON.
//
// If the value has no empty array and no status with one of the words, the check is a scan of the bytes without an
// allocation.
func Weak(value, deliverable json.RawMessage, p agent.WeakPolicy) []string {
	status := saysStatus(value, p.Statuses)
	empty := p.EmptyArrays && hasEmptyArray(value)
	if !status && !empty {
		return nil
	}
	if agent.Kind(value) == "array" && empty && isEmptyArray(value) && declaresArray(deliverable) {
		return []string{weakEmpty + ":/"}
	}
	var reasons []string
	var looked map[string]bool
	if empty {
		s := emptyUnderSuccess{policy: p}
		s.walk(value, "", 0)
		reasons, looked = s.found, watchedFields(deliverable)
	}
	rawjson.Members(value, func(key string, v []byte) {
		if status {
			reasons = append(reasons, weakStatus(key, v, "", p)...)
		}
		if status && agent.Kind(v) == "object" {
			rawjson.Members(v, func(k string, v []byte) {
				reasons = append(reasons,
					weakStatus(k, v, "/"+escape(key), p)...)
			})
		}
		if looked[key] && isEmptyArray(v) {
			reasons = append(reasons, weakEmpty+":/"+escape(key))
		}
	})
	slices.Sort(reasons)
	reasons = slices.Compact(reasons)
	return reasons[:min(len(reasons), maxWeakReasons)]
}

// weakStatus returns the reason for a member that is a weak status, with the policy's word, or nil.
func weakStatus(key string, v []byte, place string, p agent.WeakPolicy) []string {
	if word := policyWord(key, v, p.Statuses); word != "" {
		return []string{WeakStatus + ":" + place + "/status=" + word}
	}
	return nil
}

// policyWord returns the policy's word that a member named status matches, ignoring case and separators, or "" if there
// is none.
func policyWord(key string, v []byte, words []string) string {
	var said string
	if !strings.EqualFold(key, "status") || len(v) > maxStatus || agent.Kind(v) != "string" ||
		json.Unmarshal(v, &said) != nil {
		return ""
	}
	for _, w := range words {
		if contract.PlainWord(said) == contract.PlainWord(w) {
			return w
		}
	}
	return ""
}

// maxStatus bounds a status word, in bytes of JSON. A longer string is text.
const maxStatus = 100

// weakKind returns the kind of a reason, or "other".
func weakKind(reason string) string {
	kind, _, _ := strings.Cut(reason, ":")
	if kind != WeakStatus && kind != weakEmpty {
		return "other"
	}
	return kind
}

// WeakKinds returns the reasons as readers other than the value's owner may see them. Names of undeclared members,
// which may be data, are replaced by *.
func WeakKinds(reasons []string, declared func(name string) bool) []string {
	var out []string
	for _, r := range reasons {
		kind, rest, _ := strings.Cut(r, ":")
		pointer, status := rest, ""
		if kind == WeakStatus { // its words come from the policy
			i := strings.LastIndex(rest, "/")
			pointer, status = rest[:max(0, i)], rest[max(0, i):]
		}
		steps := strings.Split(pointer, "/")
		for i, step := range steps {
			if step != "" && !declared(unescape(step)) {
				steps[i] = "*"
			}
		}
		r = kind + ":" + strings.Join(steps, "/") + status
		if !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	return out
}

func unescape(step string) string {
	return strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
}

// emptyField returns the top-level key that the reason reports as empty. whole is true if the value itself is empty. ok
// is false for other reasons, and for places deeper down.
func emptyField(reason string) (key string, whole, ok bool) {
	pointer, ok := strings.CutPrefix(reason, weakEmpty+":/")
	if strings.Contains(pointer, "/") {
		return "", false, false
	}
	return unescape(pointer), pointer == "", ok
}

// saysStatus reports whether a member named status may have one of the words. It only scans the bytes, so a match may
// be false.
func saysStatus(value []byte, words []string) bool {
	const name = `"status"`
	for {
		i := bytes.IndexByte(value, '"')
		if i < 0 || i+len(name) > len(value) {
			return false
		}
		if !bytes.EqualFold(value[i:i+len(name)], []byte(name)) {
			value = value[i+1:]
			continue
		}
		value = value[i+len(name):]
		said := rawjson.SkipSpace(value, 0)
		if said == len(value) || value[said] != ':' {
			continue // a string "status" that is not a key
		}
		if said = rawjson.SkipSpace(value, said+1); said == len(value) || value[said] != '"' {
			continue
		}
		end := bytes.IndexByte(value[said+1:], '"')
		if end < 0 {
			return false
		}
		word := value[said+1 : said+1+end]
		if bytes.IndexByte(word, '\\') >= 0 || slices.ContainsFunc(words,
			func(w string) bool { return sameWord(word, w) }) {
			return true
		}
	}
}

// sameWord compares like contract.PlainWord, without allocating. It reports true for words with non-ASCII characters,
// which may be the same.
func sameWord(a []byte, b string) bool {
	letter := func(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' }
	i, j := 0, 0
	for {
		for i < len(a) && a[i] < utf8.RuneSelf && !letter(a[i]) {
			i++
		}
		for j < len(b) && b[j] < utf8.RuneSelf && !letter(b[j]) {
			j++
		}
		switch {
		case i == len(a) || j == len(b):
			return i == len(a) && j == len(b)
		case a[i] >= utf8.RuneSelf || b[j] >= utf8.RuneSelf:
			return true
		case a[i] != b[j] && (a[i]|0x20 != b[j]|0x20 || a[i] < 'A' || b[j] < 'A'):
			return false
		}
		i, j = i+1, j+1
	}
}

// hasEmptyArray reports whether the bytes contain an empty array. It may also match inside a string; callers check
// further.
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

// shape holds the parts of a deliverable that the detector uses, in either of its notations.
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
		_ = json.Unmarshal(deliverable, &s) // members of an unexpected type stay empty and are not checked
	}
	return s
}

// declaresArray reports whether the deliverable's type is array, or a list that includes array.
func declaresArray(deliverable json.RawMessage) bool {
	return bytes.Contains(bytes.ToLower(readShape(deliverable).Type), []byte(`"array"`))
}

// watchedFields returns the keys that the deliverable requires, constrains, or declares as arrays.
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
