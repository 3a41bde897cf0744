package contract

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// maxRounds bounds how often a deliverable is compiled until it is valid, since a compilation reports at most
// maxReports faults.
const maxRounds = 8

// WithoutSenseless removes the constraints that compileTolerant ignores from a program's deliverable, and returns them,
// so that readers see only what is checked. The result compiles to the same Schema. It returns an *InvalidError for
// what compileTolerant refuses, and if there are too many invalid constraints.
func WithoutSenseless(deliverable json.RawMessage) (json.RawMessage, []InvalidError, error) {
	var all []InvalidError
	for range maxRounds {
		_, odd, err := compileTolerant(deliverable)
		if err != nil || len(odd) == 0 {
			return deliverable, all, err
		}
		all = append(all, odd...)
		doc, err := decodeDeliverable(deliverable)
		if err != nil {
			return nil, nil, err
		}
		if deliverable, err = removed(doc, odd); err != nil {
			return nil, nil, err
		}
	}
	return nil, nil, &InvalidError{Reason: fmt.Sprintf("has more than %d constraints that cannot be checked", len(all))}
}

// removed encodes the document without the reported parts.
func removed(doc any, reports []InvalidError) (json.RawMessage, error) {
	for _, r := range reports {
		if r.Pointer == "" {
			return nil, nil
		}
		steps := strings.Split(r.Pointer, "/")[1:]
		in := doc
		for _, step := range steps[:len(steps)-1] {
			in = child(in, unescaped(step))
		}
		remove(in, unescaped(steps[len(steps)-1]), r.Reason)
	}
	return json.Marshal(doc)
}

// remove deletes a member. In place of an invalid schema it sets true, which accepts everything, since a member of
// properties still declares its key.
func remove(in any, name, reason string) {
	switch in := in.(type) {
	case map[string]any:
		if _, named := in[name]; !named && name == "minItems" {
			name = "min_items" // the translator reported it as minItems
		}
		delete(in, name)
		if reason == noSchema {
			in[name] = true
		}
	case []any:
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(in) {
			in[i] = true
		}
	}
}

// child returns a member or an element, or nil.
func child(of any, name string) any {
	switch of := of.(type) {
	case map[string]any:
		return of[name]
	case []any:
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(of) {
			return of[i]
		}
	}
	return nil
}

// unescaped decodes a token of a JSON pointer (RFC 6901).
func unescaped(token string) string {
	return strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
}
