package contract

import (
	"encoding/json"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Words are what the layers of a contract say in prose, and who says it.
type Words struct {
	// ByPerson is the digest of what people have registered, for the role or for the method.
	ByPerson agent.WordingDigest
	// Made is for what a program is made that is written now.
	Made agent.MadeFor
	// Own says that the call, or its session, has words of its own in the place of what is registered.
	Own bool
}

// words is what the layers say in prose, by who says it. merged is what they come to.
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

// partDigests are the digests of purpose, acceptance and failure policy, "" for what says nothing.
type partDigests [3]string

func (d partDigests) text() agent.WordingDigest { return agent.WordingDigest(strings.Join(d[:], ".")) }

// digestOf digests the prose of a contract. White space does not count: its amount, and whether there is any at the ends of a text.
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

// short is as much of a checksum as no two texts share.
func short(text string) string {
	const prefix, digits = len("sha256:"), 24
	return agent.Checksum(text)[prefix:][:digits]
}

// spaced is the text with one space where it has white space, and none at its ends.
func spaced(text string) string { return strings.Join(strings.Fields(text), " ") }

// unspaced makes all texts of a value spaced, in place where it can.
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
