package mask

import "bytes"

// A scan looks for what a Known knows in one text.
type scan struct {
	k       *Known
	b       []byte
	written view // the text letter by letter
	meant   view // with its escapes taken back
	encoded view // that without blanks and lines, the two alphabets of base64 made one

	literal folding
	plain   folding
	reading reading
	escapes bool // there is something to take back
	clear   int  // before it nothing begins: it was looked at

	everyLetter bool // none is skipped: a test compares
	passed      int  // letters that were looked at to be skipped
}

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

// run looks through the text. It returns false where it is to end before it is through.
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

// idle reports whether nothing is held of what came before i, and nothing that was found goes on there.
func (s *scan) idle(i int) bool {
	const padding = 4 // a letter of base64 that holds a part of a secret, and equals signs
	return s.written.node|s.meant.node|s.encoded.node == 0 && s.reading.n == 0 && len(s.literal.rune) == 0 &&
		len(s.plain.rune) == 0 && s.encoded.end()+padding <= i
}

// skip returns where to go on: at the letter before the next two with which something may begin, as that letter may hold a part of it, or at the
// last one of the text.
func (s *scan) skip(i int) int {
	next := i
	for next+1 < len(s.b) && !s.k.begins.have(s.b[next], s.b[next+1]) {
		next++
	}
	s.clear = next
	for next--; next > i && s.b[next] <= ' '; { // they count for nothing in base64
		next--
	}
	next = max(next, i)
	s.passed += 2*s.clear - i - next + 1
	return next
}

// pushMeant takes a letter without escapes.
func (s *scan) pushMeant(l letter) {
	if s.escapes {
		s.plain.push(l)
	}
	if l.c > ' ' {
		l.c = unified(l.c)
		s.encoded.push(l)
	}
}

// unified makes the two alphabets of base64 one.
func unified(c byte) byte {
	switch c {
	case '-':
		return '+'
	case '_':
		return '/'
	}
	return c
}

// found returns where secrets are.
func (s *scan) found() (all spans) {
	for _, v := range []*view{&s.written, &s.meant, &s.encoded} {
		for _, found := range v.found {
			all = append(all, whole(s.b, found.from, found.to))
		}
	}
	return all
}

// steps is how many letters and nodes were looked at.
func (s *scan) steps() int {
	return s.passed + s.reading.steps + s.written.steps + s.meant.steps + s.encoded.steps
}

// A view is a text in one form, with what was found in it.
type view struct {
	a      *automaton
	base64 bool
	node   int32
	last   []letter // a ring
	n      int      // letters so far
	found  []span   // ascending, none overlaps another
	more   bool     // the last one goes on with a letter that holds a part of it, and padding
	steps  int
}

func newView(a *automaton) view {
	size := 2
	for size < a.longest+1 {
		size *= 2
	}
	return view{a: a, last: make([]letter, size)}
}

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

// end is where what was found last ends.
func (v *view) end() int {
	if len(v.found) == 0 {
		return -4 // before any text
	}
	return v.found[len(v.found)-1].to
}

// goOn extends what was found right before the letter by it.
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

// before is the letter that came so many letters ago, this one counted.
func (v *view) before(n int) letter { return v.last[(v.n-n)&(len(v.last)-1)] }

// add adds the place of a needle that ends at to.
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
