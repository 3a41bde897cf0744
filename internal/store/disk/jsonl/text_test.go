package jsonl

import (
	"bytes"
	"testing"
)

// The buffer is reused. One long line does not make it large enough for a million of them.
func TestTextKeepsItsBuffer(t *testing.T) {
	t.Parallel()
	var x Text
	add := func(n int) {
		t.Helper()
		if err := x.Add(func(b []byte) ([]byte, error) {
			return append(b, bytes.Repeat([]byte("x"), n)...),
				nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	x.Reset(1)
	add(1 << 10)
	first := &x.buf[0]
	x.Reset(1)
	if add(100); &x.buf[0] != first || len(x.buf) != 101 {
		t.Errorf("another buffer of %d bytes for a shorter line", len(x.buf))
	}
	x.Reset(1)
	add(1 << 20)
	if x.Reset(1000); cap(x.buf) < mostRoom || cap(x.buf) > mostRoom+mostRoom/4 {
		t.Errorf("room for %d bytes after a line of a megabyte, want %d", cap(x.buf), mostRoom)
	}
	if x.Reset(1); cap(x.buf) > keptText {
		t.Errorf("a buffer of %d bytes is kept", cap(x.buf))
	}
}
