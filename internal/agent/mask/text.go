package mask

import (
	"bytes"
)

// shortest is the minimum length of a text that can contain a secret: "pwd=x".
const shortest = 5

// suspicious reports whether a text may contain a secret. It is cheap, and also works on text with JSON escapes.
func suspicious(b []byte) bool {
	if bytes.IndexByte(b, ':') >= 0 || bytes.IndexByte(b, '=') >= 0 {
		return true
	}
	from, _ := nextRun(b, 0)
	return from < len(b)
}

// text masks the secrets in a text.
func (p *pass) text(b []byte) (masked []byte, changed bool) {
	if p.rules == nil || !p.document && (len(b) < shortest || !suspicious(b)) {
		return b, false
	}
	p.b, p.all, p.word, p.open = b, nil, unquoted{}, 0
	if !p.find() {
		return []byte(Masked), true
	}
	if len(p.all) == 0 {
		return b, false
	}
	for _, s := range p.all {
		p.collectSpan(b[s.from:s.to], s)
	}
	return replace(b, p.all), true
}

// find collects the parts to mask in p.b. It returns false if the pass ended before it was complete.
func (p *pass) find() bool {
	p.findPEM()
	was := 0
	for i := 0; i < len(p.b); {
		if p.ends(i - was) {
			return false
		}
		was = i
		n := bytes.IndexAny(p.b[i:], ":=")
		if n < 0 {
			break
		}
		i += n
		if bytes.HasPrefix(p.b[i:], []byte("://")) {
			i = p.url(i)
			continue
		}
		i = p.assignment(i)
	}
	if p.ends(len(p.b) - was) {
		return false
	}
	// Shapes and credentials are masked wherever they are, with or without a name.
	p.findShapes()
	p.findCredentials()
	if p.document {
		p.findTables()
		p.findElements()
	}
	return !p.over
}

var (
	pemBegin = []byte("-----BEGIN ")
	pemKind  = []byte("PRIVATE KEY")
	pemEnd   = []byte("-----END ")
	dashes   = []byte("-----")
)

// findPEM finds private keys in PEM. A truncated one extends to the end of the text.
func (p *pass) findPEM() {
	for i := 0; ; {
		n := bytes.Index(p.b[i:], pemBegin)
		if n < 0 {
			return
		}
		from := i + n
		i = from + len(pemBegin)
		p.steps += n
		head := p.b[i:min(len(p.b), i+80)]
		if end := bytes.Index(head, dashes); end < 0 || !bytes.Contains(head[:end], pemKind) {
			continue
		}
		to := len(p.b)
		if n := bytes.Index(p.b[i:], pemEnd); n >= 0 {
			if m := bytes.Index(p.b[i+n+len(pemEnd):], dashes); m >= 0 {
				to = i + n + len(pemEnd) + m + len(dashes)
			}
		}
		p.steps += to - i
		p.all = append(p.all, span{from, to, Masked})
		i = to
	}
}
