package agent

import (
	"encoding/json"
	"fmt"
	"strings"
)

// PolicyPatch builds a merge patch of a policy from NAME=VALUE pairs and whole JSON objects; later ones win. Dots in a
// name select nested members. A value that is not valid JSON is taken as a string.
func PolicyPatch(words []string) (map[string]any, error) {
	patch := map[string]any{}
	for _, word := range words {
		if strings.HasPrefix(strings.TrimSpace(word), "{") {
			if err := json.Unmarshal([]byte(word), &patch); err != nil {
				return nil, fmt.Errorf("%q is not a JSON object", word)
			}
			continue
		}
		name, text, ok := strings.Cut(word, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("%q is not NAME=VALUE", word)
		}
		at := patch
		parts := strings.Split(name, ".")
		for _, p := range parts[:len(parts)-1] {
			next, ok := at[p].(map[string]any)
			if !ok {
				next = map[string]any{}
				at[p] = next
			}
			at = next
		}
		var value any = text
		if json.Valid([]byte(text)) {
			value = json.RawMessage(text)
		}
		at[parts[len(parts)-1]] = value
	}
	return patch, nil
}

// PolicyPatchOf is PolicyPatch for a single string: a JSON object, or pairs separated by white space.
func PolicyPatchOf(text string) (map[string]any, error) {
	if text = strings.TrimSpace(text); strings.HasPrefix(text, "{") {
		return PolicyPatch([]string{text})
	}
	return PolicyPatch(strings.Fields(text))
}
