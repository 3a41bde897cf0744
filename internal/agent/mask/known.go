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

// MinKnown is the length in bytes from which on a Known looks for a secret: shorter ones occur in ordinary text.
const MinKnown = 6

// A Known finds secrets whose values are known, however a program or a server may have written them: in letters of either case; escaped for a URL
// or a form, for a string of JSON or of another language, or for HTML, in each other as often as one likes; in hexadecimal; and in base64 at any
// offset of a longer text ("user:password"), in lines or not. It does not find them encrypted, hashed, compressed, in base64 of which the plus
// signs became blanks, with something between their letters, or cut in two.
//
// One pass finds all secrets in all forms, in a time that grows with the text only; what nothing can begin with is passed over. A nil Known knows none.
// It does not change and may be used concurrently.
type Known struct {
	written *automaton      // the secrets folded, as they are written and as they are meant, and in hexadecimal
	encoded *automaton      // in base64 with the alphabet of RFC 4648, section 4
	begins  *begins         // of either
	all     bool            // there is too much to look for: every text is a secret
	until   context.Context // of the call that the text belongs to; nil for none
}

// What is looked for is bounded: each byte of a secret takes some 200 bytes of memory while the call lasts.
const (
	maxKnown      = 100
	maxKnownBytes = 128 << 10
)

// NewKnown returns a Known of the secrets. Those that are shorter than MinKnown are left out; of none it returns nil. Of more than 100, or of more
// than 128 KiB, it returns one that takes every text for a secret.
func NewKnown(secrets ...string) *Known {
	var all []string
	size := 0
	for _, s := range secrets {
		if len(s) < MinKnown || slices.Contains(all, s) {
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
	for _, s := range all {
		for _, text := range []string{folded(s), folded(meant(s)), hex.EncodeToString([]byte(s))} {
			if len(text) >= MinKnown {
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

// Until returns a k that ends with ctx: the passes that it then makes over more than 64 KiB end and take the text for a secret.
func (k *Known) Until(ctx context.Context) *Known {
	if k == nil {
		return nil
	}
	within := *k
	within.until = ctx
	return &within
}

// base64At is the part of an encoding that does not depend on what is around the secret, which begins so many bytes behind a group of three.
func base64At(plain []byte, offset int) needle {
	all := base64.RawStdEncoding.EncodeToString(append(make([]byte, offset, offset+len(plain)), plain...))
	first, last := (8*offset+5)/6, 8*(offset+len(plain))/6
	return needle{text: all[first:last], before: offset > 0, after: 8*(offset+len(plain))%6 > 0}
}

// Bytes returns b with "[masked]" in the place of each secret, and whether there was one; without one it returns b itself. A
// string of JSON that holds a secret stays a string of JSON.
func (k *Known) Bytes(b []byte) (masked []byte, found bool) {
	masked, found, through := k.look(b)
	if !through {
		return []byte(Masked), true
	}
	return masked, found
}

// look is Bytes. It returns false for through where the text has to be hidden whole.
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

// JSON is Bytes of a value, which stays one: of a number that is a secret, a text is left. Of a long one that the context ends before it is looked
// through, nothing is left but that it is an object or a list.
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

// hidden is a value of the kind of raw that says nothing else of it.
func hidden(raw json.RawMessage) json.RawMessage {
	switch raw[min(rawjson.SkipSpace(raw, 0), len(raw)-1)] {
	case '{':
		return json.RawMessage(`{` + string(quotedMask) + `:null}`)
	case '[':
		return json.RawMessage(`[` + string(quotedMask) + `]`)
	}
	return quotedMask
}

// value masks the texts and numbers of a decoded value.
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

// String is Bytes of a text.
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
