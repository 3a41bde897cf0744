// Package history prepares what others may see of a session's past: it masks secrets in arguments, and checks history
// input and turns it into messages. It works on plain data, does no I/O, and may be used concurrently.
package history

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent/rawjson"
)

// Masked stands in the place of a masked value.
const Masked = "[masked]"

// Mask replaces the values of keys that match the list, at any depth of raw, with "[masked]"; null stays. changed is
// false, and masked is raw itself, when no key matches; that costs one pass over the bytes and no allocation.
//
// Letter case and separators do not matter, and a key matches by its last words: password matches Password, db_password
// and userPassword; api_key matches apiKey and X-Api-Key. It does not match tokens for token.
func Mask(raw json.RawMessage, keys []string) (masked json.RawMessage, changed bool) {
	if len(keys) == 0 {
		return raw, false
	}
	last := 0
	for i := 0; i < len(raw); {
		if raw[i] != '"' {
			i++
			continue
		}
		end := rawjson.StringEnd(raw, i)
		colon := rawjson.SkipSpace(raw, end)
		if colon >= len(raw) || raw[colon] != ':' {
			i = end
			continue
		}
		value := rawjson.SkipSpace(raw, colon+1)
		if !matches(raw[i:end], keys) || value >= len(raw) || raw[value] == 'n' {
			i = value
			continue
		}
		if !changed {
			masked, changed = make(json.RawMessage, 0, len(raw)+len(Masked)+2), true
		}
		masked = append(masked, raw[last:value]...)
		masked = append(masked, '"')
		masked = append(masked, Masked...)
		masked = append(masked, '"')
		i = rawjson.ValueEnd(raw, value)
		last = i
	}
	if !changed {
		return raw, false
	}
	return append(masked, raw[last:]...), true
}

// matches reports whether a quoted key matches one of the names.
func matches(quoted []byte, names []string) bool {
	key := bytes.Trim(quoted, `"`)
	if bytes.IndexByte(quoted, '\\') >= 0 {
		var s string
		if json.Unmarshal(quoted, &s) != nil {
			return false
		}
		key = []byte(s)
	}
	return slices.ContainsFunc(names, func(name string) bool { return endsWith(key, name) })
}

// endsWith compares from the back, past separators, and wants a word to begin where the name does.
func endsWith(key []byte, name string) bool {
	k, n := len(key)-1, len(name)-1
	for {
		for k >= 0 && separator(key[k]) {
			k--
		}
		for n >= 0 && separator(name[n]) {
			n--
		}
		if n < 0 || k < 0 {
			break
		}
		if lower(key[k]) != lower(name[n]) {
			return false
		}
		k, n = k-1, n-1
	}
	if n >= 0 {
		return false
	}
	if k < 0 || separator(key[k+1]) {
		return true
	}
	hump := key[k+1] >= 'A' && key[k+1] <= 'Z'
	return hump && key[k] >= 'a' && key[k] <= 'z'
}

func separator(b byte) bool { return b == '_' || b == '-' || b == ' ' || b == '.' }

func lower(b byte) byte {
	if b >= 'A' && b <= 'Z' {
		return b + 'a' - 'A'
	}
	return b
}

// MaskText masks values of secret keys in text that may hold JSON, whole or cut.
func MaskText(text string, keys []string) string {
	masked, changed := Mask(json.RawMessage(text), keys)
	if !changed {
		return text
	}
	return string(masked)
}
