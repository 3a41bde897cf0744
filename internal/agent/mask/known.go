package mask

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent/rawjson"
)

// minKnown is the minimum length in bytes of secrets that a Known looks for. Shorter ones occur in ordinary text.
const minKnown = 6

// A Known finds secrets with known values in any form in which a program or a server may have written them: in either
// letter case; escaped for URLs, forms, strings in JSON or other languages, or HTML, nested to any depth; in
// hexadecimal; and in base64 at any offset of a longer text ("user:password"), with or without line breaks. It does not
// find secrets that are encrypted, hashed, compressed, in base64 whose plus signs became spaces, interleaved with other
// text, or split in two.
//
// One pass finds all secrets in all forms, in time linear in the text. Stretches in which no secret can begin are
// skipped. A nil Known knows no secrets. A Known is immutable and may be used concurrently.
type Known struct {
	written *automaton      // the secrets, folded, in plain, unescaped and hexadecimal form
	encoded *automaton      // the secrets in base64, with the alphabet of RFC 4648, section 4
	begins  *begins         // pairs of bytes at which either automaton may begin
	all     bool            // there are too many secrets: every text counts as one
	until   context.Context // of the call that the text belongs to; nil means none
}

// Bounds of what a Known looks for: each byte of a secret takes about 200 bytes of memory while the call lasts.
const (
	maxKnown      = 100
	maxKnownBytes = 128 << 10
)

// NewKnown returns a Known for the secrets. It ignores secrets shorter than minKnown and returns nil if none remain.
// For more than 100 secrets, or more than 128 KiB, it returns a Known that treats every text as a secret.
func NewKnown(secrets ...string) *Known {
	var all []string
	size := 0
	for _, s := range secrets {
		if len(s) < minKnown || slices.Contains(all, s) {
			continue
		}
		if size += len(s); len(all) == maxKnown || size > maxKnownBytes {
			return &Known{all: true}
		}
		all = append(all, s)
	}
	if len(all) == 0 {
		return nil
	}
	var written, encoded []needle
	// A secret may itself be given in escaped form, so its decoded form is also searched for.
	for _, s := range all {
		for _, text := range []string{folded(s), folded(meant(s)), hex.EncodeToString([]byte(s))} {
			if len(text) >= minKnown {
				written = append(written, needle{text: text})
			}
		}
		for offset := range 3 {
			encoded = append(encoded, base64At([]byte(s), offset))
		}
	}
	k := &Known{written: newAutomaton(written), encoded: newAutomaton(encoded)}
	k.begins = newBegins(k.written, k.encoded)
	return k
}

// Until returns a copy of k bound to ctx. Once ctx has ended, a pass over more than 64 KiB stops and masks the whole
// text.
func (k *Known) Until(ctx context.Context) *Known {
	if k == nil {
		return nil
	}
	within := *k
	within.until = ctx
	return &within
}

// base64At returns the part of the base64 text that is independent of the data around the secret. offset is the number
// of bytes between the last group boundary and the secret, 0 to 2.
func base64At(plain []byte, offset int) needle {
	all := base64.RawStdEncoding.EncodeToString(append(make([]byte, offset, offset+len(plain)), plain...))
	first, last := (8*offset+5)/6, 8*(offset+len(plain))/6
	return needle{text: all[first:last], before: offset > 0, after: 8*(offset+len(plain))%6 > 0}
}

// Bytes returns b with each secret replaced by "[masked]", and reports whether there was one. Without secrets it
// returns b itself. A JSON string stays a JSON string.
func (k *Known) Bytes(b []byte) (masked []byte, found bool) {
	masked, found, through := k.look(b)
	if !through {
		return []byte(Masked), true
	}
	return masked, found
}

// look implements Bytes. through is false if the whole text must be hidden.
func (k *Known) look(b []byte) (masked []byte, found, through bool) {
	if k == nil || len(b) == 0 {
		return b, false, true
	}
	if k.all {
		return nil, false, false
	}
	s := newScan(k, b)
	if !s.run() {
		return nil, false, false
	}
	if all := s.found(); len(all) > 0 {
		return replace(b, all), true, true
	}
	return b, false, true
}

// JSON is Bytes for a JSON value, and returns a valid one: a number that contains a secret becomes a string. If the
// context ends before a long value is scanned, only the kind of the value remains: an object or a list.
func (k *Known) JSON(raw json.RawMessage) (masked json.RawMessage, found bool) {
	if k == nil || len(raw) == 0 {
		return raw, false
	}
	if !k.all {
		out, found, through := k.look(raw)
		switch {
		case !through:
			return hidden(raw), true
		case !found || json.Valid(out):
			return out, found
		}
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return quotedMask, true
	}
	out, err := json.Marshal(k.value(v))
	if err != nil {
		return quotedMask, true
	}
	return out, true
}

// hidden returns a placeholder that shows only whether raw is an object, a list or something else.
func hidden(raw json.RawMessage) json.RawMessage {
	switch raw[min(rawjson.SkipSpace(raw, 0), len(raw)-1)] {
	case '{':
		return json.RawMessage(`{` + string(quotedMask) + `:null}`)
	case '[':
		return json.RawMessage(`[` + string(quotedMask) + `]`)
	}
	return quotedMask
}

// value masks the strings and numbers of a decoded value.
func (k *Known) value(v any) any {
	switch v := v.(type) {
	case string:
		return k.String(v)
	case json.Number:
		if text := k.String(v.String()); text != v.String() {
			return text
		}
	case []any:
		for i := range v {
			v[i] = k.value(v[i])
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, member := range v {
			out[k.String(name)] = k.value(member)
		}
		return out
	}
	return v
}

// String is Bytes for a string.
func (k *Known) String(s string) string {
	if k == nil {
		return s
	}
	masked, found := k.Bytes([]byte(s))
	if !found {
		return s
	}
	return string(masked)
}
