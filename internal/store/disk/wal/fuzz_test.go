package wal

import (
	"bytes"
	"slices"
	"testing"
)

// FuzzRead reads segments of any bytes. It must not panic, and entries must be in order and within the bounds. A sound
// batch must be read no matter what follows it.
func FuzzRead(f *testing.F) {
	sound := slices.Clone(batch(`{"t":1}tail`, "").seal(1))
	second := slices.Clone(batch("next").seal(3))
	f.Add(sound)
	f.Add(slices.Concat(sound, second))
	f.Add(slices.Concat(sound, make([]byte, 100), second))
	f.Add(second[:len(second)-1])
	f.Fuzz(func(t *testing.T, data []byte) {
		last := uint64(0)
		next, gaps, err := read(data, 1, 0, func(lsn uint64, _ []byte) error {
			if lsn <= last {
				t.Fatalf("entry %d after %d", lsn, last)
			}
			last = lsn
			return nil
		})
		if err != nil || last > 0 && next != last+1 {
			t.Fatalf("next %d after %d, %v", next, last, err)
		}
		for _, g := range gaps {
			if g.From >= g.To {
				t.Fatalf("a gap from %d to %d", g.From, g.To)
			}
		}
		n := 0
		if _, _, err := read(slices.Concat(sound, data), 1, 0, func(lsn uint64, _ []byte) error {
			if lsn <= 2 {
				n++
			}
			return nil
		}); err != nil || n != 2 {
			t.Fatalf("got %d of the two sound entries, %v", n, err)
		}
	})
}

// FuzzFrame writes any entries and reads them back.
func FuzzFrame(f *testing.F) {
	f.Add([]byte("one"), []byte(""), uint64(7))
	f.Fuzz(func(t *testing.T, a, b []byte, first uint64) {
		var x Batch
		x.Reset()
		x.Add(a, b)
		x.Add(b)
		frame, lsn, size, ok := readFrame(slices.Concat(x.seal(first), a))
		entries := listed(frame)
		if !ok || lsn != first || len(entries) != 2 || !bytes.Equal(entries[0], slices.Concat(a, b)) ||
			!bytes.Equal(entries[1], b) || size != x.Size() {
			t.Fatalf("got %q at %d, %v", entries, lsn, ok)
		}
	})
}
