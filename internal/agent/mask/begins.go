package mask

import "unicode/utf8"

// begins are the pairs of bytes with which something that is looked for may begin, as it is written: most of a text has none, and is passed over.
type begins [1 << 16 / 64]uint64

func (b *begins) have(first, second byte) bool {
	pair := uint(first)<<8 | uint(second)
	return b[pair/64]&(1<<(pair%64)) != 0
}

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

// special is a byte that may stand for another with those that follow.
func special(c byte) bool { return introduces(c) || c >= utf8.RuneSelf }
