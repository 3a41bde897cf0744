package mask

import "unicode/utf8"

// begins is the set of byte pairs with which an encoded secret may begin. Most of a text has none of them and is
// skipped.
type begins [1 << 16 / 64]uint64

// have reports whether the pair is in the set.
func (b *begins) have(first, second byte) bool {
	pair := uint(first)<<8 | uint(second)
	return b[pair/64]&(1<<(pair%64)) != 0
}

// newBegins returns the pairs with which a needle of either automaton may begin. A special byte may stand for any other
// byte.
func newBegins(written, encoded *automaton) *begins {
	b := &begins{}
	for first := range 256 {
		c := byte(first)
		row := b[first*4 : first*4+4]
		if special(c) {
			row[0], row[1], row[2], row[3] = ^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)
			continue
		}
		w, e := written.child(0, foldedByte(c)), encoded.child(0, unified(c))
		if w == 0 && e == 0 {
			continue
		}
		for second := range 256 {
			d := byte(second)
			if special(d) || w != 0 && written.child(w, foldedByte(d)) != 0 || e != 0 &&
				(d <= ' ' || encoded.child(e, unified(d)) != 0) {
				row[second/64] |= 1 << (second % 64)
			}
		}
	}
	return b
}

// special reports whether c may begin an escape or a multi-byte character, which stand for other bytes.
func special(c byte) bool { return introduces(c) || c >= utf8.RuneSelf }
