package contract

import (
	"encoding/json"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Words are the prose of a contract's layers, by author.
type Words struct {
	// ByPerson is the digest of the prose that people registered, for the role or for the method.
	ByPerson agent.WordingDigest
	// Made is the MadeFor of a program that is written now.
	Made agent.MadeFor
	// Own reports whether the call or its session overrides the registered prose.
	Own bool
}

// words returns the prose of the layers, by author. merged is their merged contract.
func (l *Layers) words(merged *agent.Contract) Words {
	people := Layers{Role: l.Role, Method: l.Method}
	if l.ByProgram {
		people.Role = nil
	}
	said, _ := Merge(people)
	shared, _ := Merge(Layers{Role: l.Role, ByProgram: l.ByProgram, Method: l.Method, Delegated: l.Delegated})
	registered, _ := Merge(Layers{Role: l.Role, ByProgram: l.ByProgram, Method: l.Method})
	asked := digestOf(merged)
	w := Words{ByPerson: digestOf(said).text(), Own: asked != digestOf(shared)}
	made, person, kept := asked, digestOf(said), digestOf(registered)
	for i := range made {
		if person[i] != "" {
			made[i] = person[i]
		}
	}
	w.Made = agent.MadeFor{Digest: made.text(), ByPerson: w.ByPerson}
	if registered == nil {
		return w
	}
	if made[0] == kept[0] {
		w.Made.Purpose = registered.Purpose
	}
	if made[1] == kept[1] && made[1] != "" {
		w.Made.Acceptance = registered.Acceptance
	}
	if made[2] == kept[2] && made[2] != "" {
		w.Made.FailurePolicy = registered.FailurePolicy
	}
	return w
}

// partDigests are the digests of purpose, acceptance and failure policy. The digest of an empty part is "".
type partDigests [3]string

func (d partDigests) text() agent.WordingDigest { return agent.WordingDigest(strings.Join(d[:], ".")) }

// digestOf returns the digests of a contract's prose. The amount of white space, and white space at the ends of a text,
// do not matter.
func digestOf(c *agent.Contract) (d partDigests) {
	if c == nil {
		return d
	}
	if purpose := spaced(c.Purpose); purpose != "" {
		d[0] = short(purpose)
	}
	for i, raw := range []json.RawMessage{c.Acceptance, c.FailurePolicy} {
		if absent(raw) {
			continue
		}
		v, err := Decode(raw)
		if err != nil {
			d[i+1] = short(string(raw))
			continue
		}
		v = unspaced(v)
		if empty(v) {
			continue
		}
		plain, err := json.Marshal(v)
		if err != nil {
			plain = raw
		}
		d[i+1] = short(canonical(map[string]json.RawMessage{"": plain}))
	}
	return d
}

// short returns a prefix of a checksum that is long enough to be unique.
func short(text string) string {
	const prefix, digits = len("sha256:"), 24
	return agent.Checksum(text)[prefix:][:digits]
}

// spaced collapses white space to single spaces and trims the ends.
func spaced(text string) string { return strings.Join(strings.Fields(text), " ") }

// unspaced applies spaced to all strings in a value. It may change v.
func unspaced(v any) any {
	switch v := v.(type) {
	case string:
		return spaced(v)
	case []any:
		for i := range v {
			v[i] = unspaced(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = unspaced(v[name])
		}
	}
	return v
}

// empty reports whether v is an empty string, list or object.
func empty(v any) bool {
	switch v := v.(type) {
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}
