package mask

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// MinKnown is the length in bytes from which on a Known looks for a secret: shorter ones occur in ordinary text.
const MinKnown = 6

// A Known finds secrets whose values are known, however a program or a server may have written them: as they are, escaped for a
// URL, once or twice, for JSON or HTML, in hexadecimal, and in base64 at any offset of a longer text ("user:password"). It does not find them
// encrypted, hashed, compressed, escaped otherwise more than once, in base64 with line breaks, or cut in two. A nil Known knows none. It does not
// change and may be used concurrently.
type Known struct {
	secrets []secret
	all     bool // there are too many to look for: every text is one
}

// maxKnown is how many secrets are looked for. Each is looked for by itself, in whatever is stored.
const maxKnown = 100

// A secret is one value with what is looked for.
type secret struct {
	plain    []byte
	anchor   []byte // a part of it that encoders leave as it is
	before   int    // bytes of plain before the anchor
	encoded  []needle
	escapes  bool // an encoder may write plain in another way
	anchored bool // there is an anchor
}

// A needle is an encoding, with how many characters around it hold a part of the secret too.
type needle struct {
	text          []byte
	before, after int
}

// NewKnown returns a Known of the secrets. Those that are shorter than MinKnown are left out; of none it returns nil. Of more than 100 it
// returns one that takes every text for a secret.
func NewKnown(secrets ...string) *Known {
	var all []secret
	for _, s := range secrets {
		if len(s) < MinKnown || slices.ContainsFunc(all, func(have secret) bool { return string(have.plain) == s }) {
			continue
		}
		if len(all) == maxKnown {
			return &Known{all: true}
		}
		all = append(all, newSecret([]byte(s)))
	}
	if len(all) == 0 {
		return nil
	}
	return &Known{secrets: all}
}

func newSecret(plain []byte) secret {
	const furthest = 32 // of an anchor: what may stand before it is tried from each place
	s := secret{plain: plain}
	for i := 0; i < len(plain); {
		end := i
		for end < len(plain) && alphanumeric(plain[end]) {
			end++
		}
		if end-i > len(s.anchor) && i <= furthest {
			s.anchor, s.before, s.anchored = plain[i:end], i, true
		}
		s.escapes = s.escapes || end < len(plain)
		i = end + 1
	}
	for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for offset := range 3 {
			s.add(base64At(e, plain, offset))
		}
	}
	if !s.anchored {
		once := url.QueryEscape(string(plain))
		for _, text := range []string{once, url.QueryEscape(once)} {
			s.add(needle{text: []byte(text)})
			s.add(needle{text: bytes.ToLower([]byte(text))})
		}
	}
	text := hex.EncodeToString(plain)
	s.add(needle{text: []byte(text)})
	s.add(needle{text: []byte(strings.ToUpper(text))})
	return s
}

func (s *secret) add(n needle) {
	if !slices.ContainsFunc(s.encoded, func(have needle) bool { return bytes.Equal(have.text, n.text) }) {
		s.encoded = append(s.encoded, n)
	}
}

// base64At is the part of an encoding that does not depend on what is around the secret, which begins so many bytes behind a
// group of three.
func base64At(e *base64.Encoding, plain []byte, offset int) needle {
	all := e.EncodeToString(append(make([]byte, offset, offset+len(plain)), plain...))
	first, last := (8*offset+5)/6, 8*(offset+len(plain))/6
	n := needle{text: []byte(all[first:last])}
	if offset > 0 {
		n.before = 1
	}
	if 8*(offset+len(plain))%6 > 0 {
		n.after = 1
	}
	return n
}

// Bytes returns b with "[masked]" in the place of each secret, and whether there was one; without one it returns b itself. A
// string of JSON that holds a secret stays a string of JSON.
func (k *Known) Bytes(b []byte) (masked []byte, found bool) {
	if k != nil && k.all && len(b) > 0 {
		return []byte(Masked), true
	}
	all := k.find(b)
	if len(all) == 0 {
		return b, false
	}
	return replace(b, all), true
}

// JSON is Bytes of a value, which stays one: of a number that is a secret, a text is left.
func (k *Known) JSON(raw json.RawMessage) (masked json.RawMessage, found bool) {
	if k == nil || len(raw) == 0 {
		return raw, false
	}
	if !k.all {
		out, found := k.Bytes(raw)
		if !found || json.Valid(out) {
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

func (k *Known) find(b []byte) (all spans) {
	if k == nil {
		return nil
	}
	for i := range k.secrets {
		s := &k.secrets[i]
		all = s.findPlain(b, all)
		for _, n := range s.encoded {
			all = n.find(b, all)
		}
	}
	return all
}

// findPlain finds the secret as it is and escaped, by its anchor.
func (s *secret) findPlain(b []byte, all spans) spans {
	anchor, before := s.anchor, s.before
	if !s.anchored {
		anchor, before = s.plain, 0
	}
	for at := 0; ; {
		i := bytes.Index(b[at:], anchor)
		if i < 0 {
			return all
		}
		i += at
		at = i + 1
		if from, to, ok := s.around(b, i, before); ok {
			all = append(all, whole(b, from, to))
			at = to
		}
	}
}

// around returns where the secret begins and ends whose anchor is at i.
func (s *secret) around(b []byte, i, before int) (from, to int, ok bool) {
	for from = i - before; from >= max(0, i-longestEscape*before) && s.escapes; from-- {
		if to := s.match(b, from, i, before); to > 0 {
			return from, to, true
		}
	}
	if from = i - before; from >= 0 && bytes.HasPrefix(b[from:], s.plain) {
		return from, from + len(s.plain), true
	}
	return 0, 0, false
}

// match compares the secret with what is at from, each character escaped or as it is, the one number before at i. It returns 0
// where they differ.
func (s *secret) match(b []byte, from, i, before int) (to int) {
	at := from
	for n, c := range s.plain {
		if n == before && at != i {
			return 0
		}
		w := width(b[at:], c)
		if w == 0 {
			return 0
		}
		at += w
	}
	return at
}

// find finds the encoding, with the characters around it that hold a part of the secret, and padding.
func (n *needle) find(b []byte, all spans) spans {
	for at := 0; ; {
		i := bytes.Index(b[at:], n.text)
		if i < 0 {
			return all
		}
		from, to := at+i, at+i+len(n.text)
		at = to
		if n.before > 0 && from > 0 && base64Char(b[from-1]) {
			from--
		}
		if n.after > 0 && to < len(b) && base64Char(b[to]) {
			to++
		}
		for n.after > 0 && to < len(b) && b[to] == '=' {
			to++
		}
		all = append(all, whole(b, from, to))
	}
}
