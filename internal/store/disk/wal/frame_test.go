package wal

import (
	"encoding/binary"
	"fmt"
	"testing"
)

// frame returns a frame with a correct checksum and any payload.
func frame(first uint64, count uint32, payload string) []byte {
	b := &Batch{}
	b.Reset()
	b.buf, b.count = append(b.buf, payload...), count
	return b.seal(first)
}

func listed(frame entries) (out [][]byte) {
	for _, e := range frame.all {
		out = append(out, e)
	}
	return out
}

// If every few bytes look like the start of a long frame, the search for a sound one still ends. Its work is bounded by
// the segment's size.
func TestTheSearchIsBounded(t *testing.T) {
	t.Parallel()
	const lures, each = 1 << 12, 16
	var data []byte
	for i := range lures {
		data = append(data, frame(1, 1, "\x01a")[:8]...)
		binary.LittleEndian.PutUint32(data[len(data)-4:], uint32((lures-i-2)*each))
		data = append(data, make([]byte, each-8)...)
	}
	search := finder{work: 1<<20 + 16*int64(len(data))}
	if _, found := search.next(data, 1); found || search.work >= 0 {
		t.Errorf("found %v, with %d bytes of work left: the lures cost less than their bound", found, search.work)
	}
	if next, _, err := read(append(frame(1, 1, "\x01a"), data...), 1, 0,
		func(uint64, []byte) error { return nil }); next != 2 || err != nil {
		t.Errorf("the frame before them: next is %d, %v", next, err)
	}
}

// A frame is valid only if its entries match its header.
func TestFramesAreWholeOrNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		data    []byte
		entries string // as %q; "" if the frame is not valid
	}{
		{"no entries", frame(1, 0, ""), "[]"},
		{"empty entries", frame(1, 2, "\x00\x00"), `["" ""]`},
		{"one entry", frame(1, 1, "\x01a"), `["a"]`},
		{"a header that ends", frame(1, 0, "")[:frameHeader-1], ""},
		{"a payload that ends", frame(1, 1, "\x01a")[:frameHeader+1], ""},
		{"more entries than bytes", frame(1, 3, "\x00\x00"), ""},
		{"fewer entries than it says", frame(1, 2, "\x01a"), ""},
		{"more entries than it says", frame(1, 1, "\x01a\x01b"), ""},
		{"an entry longer than the frame", frame(1, 1, "\x02a"), ""},
		{"a length that does not end", frame(1, 1, "\x80"), ""},
	} {
		frame, _, size, ok := readFrame(append(c.data, "what follows"...)[:len(c.data)])
		got := ""
		if ok {
			got = fmt.Sprintf("%q", listed(frame))
		}
		if got != c.entries || ok && size != len(c.data) {
			t.Errorf("%s: got %s of %d bytes, want %s", c.name, got, size, c.entries)
		}
	}
}

// Entries at or beyond the segment's limit are ignored and do not count as a gap, because the next segment holds them.
// Bytes inside a damaged frame that look like the start of a frame are not one.
func TestReadEndsAtTheLimit(t *testing.T) {
	t.Parallel()
	one, two, lure := frame(1, 2, "\x01a\x01b"), frame(3, 1, "\x01c"), frame(1, 1, "\x08RJF1 RJF")
	damaged := append([]byte("????"), lure[4:]...)
	for _, c := range []struct {
		name  string
		data  []byte
		limit uint64
		want  string
	}{
		{"no limit", append(one[:len(one):len(one)], two...), 0, "1a 2b 3c next 4 gaps []"},
		{"within a frame", one, 2, "1a next 2 gaps []"},
		{"at a frame behind a gap", append(damaged[:len(damaged):len(damaged)], two...), 3, "next 1 gaps []"},
		{"a gap", append(damaged[:len(damaged):len(damaged)], two...), 0, "3c next 4 gaps [{1 3}]"},
	} {
		got := ""
		next, gaps, err := read(c.data, 1, c.limit, func(lsn uint64, entry []byte) error {
			got += fmt.Sprintf("%d%s ", lsn, entry)
			return nil
		})
		if got += fmt.Sprintf("next %d gaps %v", next, gaps); err != nil || got != c.want {
			t.Errorf("%s: got %s, %v, want %s", c.name, got, err, c.want)
		}
	}
}
