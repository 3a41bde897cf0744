package contract

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/gowebpki/jcs"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Fingerprint returns "sha256:" and the digest of the contract's canonical JSON (RFC 8785), or "none" for a contract
// without parts. It ignores the order of keys, white space, and null members. Every other difference counts.
func Fingerprint(c *agent.Contract) string {
	if c == nil {
		return agent.FingerprintNone
	}
	m := map[string]json.RawMessage{}
	if c.Purpose != "" {
		m["purpose"], _ = json.Marshal(c.Purpose) // a string always encodes
	}
	for name, raw := range map[string]json.RawMessage{"deliverable": c.Deliverable, "acceptance": c.Acceptance,
		"failure_policy": c.FailurePolicy, "signature": c.Signature} {
		if !absent(raw) {
			m[name] = raw
		}
	}
	return digest(m)
}

// CheckedFingerprint is Fingerprint of the machine-checked parts: deliverable and signature. Within the deliverable it
// ignores descriptions (title, examples ...), and differences that change no check: the case of a type, a list of one
// type, the order of types and of required keys. A generation made for another CheckedFingerprint is stale.
func CheckedFingerprint(c *agent.Contract) string {
	return checkedFingerprint(c, func(m map[string]any) {
		describe(m)
		plain(m)
	})
}

// WrittenFingerprint is the CheckedFingerprint of earlier versions, which did not ignore differences in notation.
func WrittenFingerprint(c *agent.Contract) string { return checkedFingerprint(c, describe) }

// checkedFingerprint returns the fingerprint of the machine-checked parts after reduce was applied to each schema.
func checkedFingerprint(c *agent.Contract, reduce func(schema map[string]any)) string {
	if c == nil {
		return agent.FingerprintNone
	}
	m := map[string]json.RawMessage{}
	if !absent(c.Deliverable) {
		raw := c.Deliverable
		if v, err := Decode(raw); err == nil {
			eachSchema(v, reduce)
			// a deliverable without checks counts as none
			if object, ok := v.(map[string]any); ok && len(object) == 0 {
				raw = nil
			} else if b, err := json.Marshal(v); err == nil {
				raw = b
			}
		}
		if raw != nil {
			m["deliverable"] = raw
		}
	}
	if !absent(c.Signature) {
		m["signature"] = c.Signature
	}
	return digest(m)
}

// describe removes the keywords that only describe from a schema, in place.
func describe(m map[string]any) {
	for _, name := range []string{"title", "description", "$comment", "examples", "default", "deprecated", "readOnly",
		"writeOnly"} {
		delete(m, name)
	}
}

// plain normalizes the types and the required keys of a schema, in place.
func plain(m map[string]any) {
	if ty, there := m["type"]; there {
		if known, wrong := typeList(ty); wrong == "" {
			m["type"] = inOrder(known)
		}
		if list, ok := m["type"].([]any); ok && len(list) == 1 {
			m["type"] = list[0]
		}
	}
	if keys, there := m["required"]; there {
		m["required"] = inOrder(keys)
	}
	if needed, ok := m["dependentRequired"].(map[string]any); ok {
		for key, keys := range needed {
			needed[key] = inOrder(keys)
		}
	}
}

// inOrder sorts a list of strings and removes duplicates. It returns any other value unchanged.
func inOrder(v any) any {
	list, ok := v.([]any)
	if !ok || slices.ContainsFunc(list, func(e any) bool { _, ok := e.(string); return !ok }) {
		return v
	}
	list = slices.SortedFunc(slices.Values(list), func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
	return slices.Compact(list)
}

// eachSchema calls f for a deliverable and for each schema within it.
func eachSchema(v any, f func(schema map[string]any)) {
	m, ok := v.(map[string]any)
	if !ok {
		return
	}
	f(m)
	for name, v := range m {
		if name == "constraints" {
			eachSchema(v, f)
			continue
		}
		k, ok := keywordOf(name)
		if !ok || k.kind < schema {
			continue
		}
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				eachSchema(e, f)
			}
		case map[string]any:
			if k.kind == schema {
				eachSchema(v, f)
				continue
			}
			for _, e := range v {
				eachSchema(e, f)
			}
		}
	}
}

// digest returns the checksum of the canonical form, or "none" if m is empty.
func digest(m map[string]json.RawMessage) string {
	if len(m) == 0 {
		return agent.FingerprintNone
	}
	return agent.Checksum(canonical(m))
}

// canonical returns the text of RFC 8785. Numbers that a float64 cannot represent exactly are appended, so that they
// count, too. Values that RFC 8785 cannot express (a lone surrogate, 1e999) are encoded by encoding/json with sorted
// keys.
func canonical(m map[string]json.RawMessage) string {
	plain, err := json.Marshal(m)
	if err != nil {
		var b strings.Builder // a member that is not JSON counts by its bytes
		for _, k := range sortedKeys(m) {
			b.WriteString(strconv.Quote(k) + string(m[k]))
		}
		return b.String()
	}
	v, err := Decode(plain)
	if err != nil {
		return string(plain)
	}
	text, err := jcs.Transform(plain)
	if err != nil {
		sorted, err := json.Marshal(v)
		if err != nil {
			return string(plain)
		}
		return string(sorted)
	}
	var b bytes.Buffer
	b.Write(text)
	walkNumbers(v, func(n json.Number) {
		if !exactDouble(n) {
			b.WriteString("\n" + string(n))
		}
	})
	return b.String()
}

// exactDouble reports whether a float64 can represent n without losing a digit, which is certain up to 15 digits.
func exactDouble(n json.Number) bool {
	digits := 0
	for _, c := range n {
		if c == 'e' || c == 'E' {
			break
		}
		if c >= '0' && c <= '9' {
			digits++
		}
	}
	return digits <= 15
}
