package mask

import "bytes"

// A scan looks for the secrets of a Known in one text.
type scan struct {
	k       *Known
	b       []byte
	written view // the text as written
	meant   view // the text without escapes
	encoded view // meant without white space, with both base64 alphabets mapped to one

	literal folding
	plain   folding
	reading reading
	escapes bool // the text may contain escapes
	clear   int  // nothing begins before this index

	everyLetter bool // disables skipping, for a test that compares
	passed      int  // bytes examined in order to be skipped
}

// newScan returns a scan of b. The view without escapes is needed only if b may contain some.
func newScan(k *Known, b []byte) *scan {
	s := &scan{k: k, b: b, escapes: bytes.ContainsAny(b, `%\&`)}
	s.written, s.encoded = newView(k.written), newView(k.encoded)
	s.encoded.base64 = true
	s.literal.emit = s.written.push
	if s.escapes {
		s.meant = newView(k.written)
		s.plain.emit = s.meant.push
	}
	s.reading.emit = s.pushMeant
	return s
}

// run scans the text. It returns false if the context ended before the scan was complete.
func (s *scan) run() bool {
	const between = 64 << 10
	look := between
	for i := 0; i < len(s.b); i++ {
		if i >= look && s.k.until != nil {
			if s.k.until.Err() != nil {
				return false
			}
			look = i + between
		}
		if !s.everyLetter && i >= s.clear && s.idle(i) {
			i = s.skip(i)
		}
		l := letter{s.b[i], i, i + 1}
		s.literal.push(l)
		s.reading.push(l)
	}
	s.literal.end(len(s.b))
	s.reading.end()
	if s.escapes {
		s.plain.end(len(s.b))
	}
	return true
}

// idle reports whether no state is pending at i: no partial match, no held escape, and no found secret that could still
// be extended.
func (s *scan) idle(i int) bool {
	const padding = 4 // a base64 character that encodes a part of a secret, and padding
	return s.written.node|s.meant.node|s.encoded.node == 0 && s.reading.n == 0 && len(s.literal.rune) == 0 &&
		len(s.plain.rune) == 0 && s.encoded.end()+padding <= i
}

// skip returns the index at which to continue: just before the next pair with which something may begin, because the
// character before it may encode a part of it, or at the last byte of the text.
func (s *scan) skip(i int) int {
	next := i
	for next+1 < len(s.b) && !s.k.begins.have(s.b[next], s.b[next+1]) {
		next++
	}
	s.clear = next
	for next--; next > i && s.b[next] <= ' '; { // white space does not count in base64
		next--
	}
	next = max(next, i)
	s.passed += 2*s.clear - i - next + 1
	return next
}

// pushMeant takes a letter whose escapes are resolved.
func (s *scan) pushMeant(l letter) {
	if s.escapes {
		s.plain.push(l)
	}
	if l.c > ' ' {
		l.c = unified(l.c)
		s.encoded.push(l)
	}
}

// unified maps the URL-safe base64 alphabet to the standard one.
func unified(c byte) byte {
	switch c {
	case '-':
		return '+'
	case '_':
		return '/'
	}
	return c
}

// found returns the spans of the secrets.
func (s *scan) found() (all spans) {
	for _, v := range []*view{&s.written, &s.meant, &s.encoded} {
		for _, found := range v.found {
			all = append(all, whole(s.b, found.from, found.to))
		}
	}
	return all
}

// steps returns the number of letters and nodes examined.
func (s *scan) steps() int {
	return s.passed + s.reading.steps + s.written.steps + s.meant.steps + s.encoded.steps
}

// A view is one form of a text, with the secrets found in it.
type view struct {
	a      *automaton
	base64 bool
	node   int32
	last   []letter // a ring of the last letters
	n      int      // letters so far
	found  []span   // ascending, not overlapping
	more   bool     // the last one includes the next base64 character and padding
	steps  int
}

// newView returns a view whose ring holds the longest needle and the letter before it. The size is a power of two, so
// that a mask can replace modulo.
func newView(a *automaton) view {
	size := 2
	for size < a.longest+1 {
		size *= 2
	}
	return view{a: a, last: make([]letter, size)}
}

// push feeds the next letter to the automaton and records a needle that ends with it.
func (v *view) push(l letter) {
	v.last[v.n&(len(v.last)-1)] = l
	v.n++
	v.goOn(l)
	next, steps := v.a.step(v.node, l.c)
	v.node, v.steps = next, v.steps+steps
	if id := v.a.nodes[next].needle; id != 0 {
		v.add(&v.a.needles[id-1], l.to)
	}
}

// end returns the end of the last secret found.
func (v *view) end() int {
	if len(v.found) == 0 {
		return -4 // before any text
	}
	return v.found[len(v.found)-1].to
}

// goOn extends the last secret by the letter, if it directly follows and belongs to it.
func (v *view) goOn(l letter) {
	if len(v.found) == 0 || v.n < 2 {
		return
	}
	last := &v.found[len(v.found)-1]
	if v.more && base64Char(l.c) || v.base64 && l.c == '=' && v.before(2).to == last.to {
		last.to = l.to
	}
	v.more = false
}

// before returns the letter pushed n letters ago; before(1) is the latest.
func (v *view) before(n int) letter { return v.last[(v.n-n)&(len(v.last)-1)] }

// add records a needle that ends at to, merged with earlier overlapping ones.
func (v *view) add(n *needle, to int) {
	from := v.before(len(n.text)).from
	if l := v.before(len(n.text) + 1); n.before && v.n > len(n.text) && base64Char(l.c) {
		from = l.from
	}
	for len(v.found) > 0 && v.found[len(v.found)-1].to > from {
		last := v.found[len(v.found)-1]
		from, to = min(from, last.from), max(to, last.to)
		v.found = v.found[:len(v.found)-1]
	}
	v.found = append(v.found, span{from, to, Masked})
	v.more = n.after
}
