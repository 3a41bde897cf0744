package jsonl

import "slices"

// Text collects lines in one buffer, which is used again after Reset. The zero value is ready.
type Text struct {
	buf  []byte
	ends []int // of the lines, behind their newlines
}

// Bounds of the buffer: the largest that Reset keeps, and the largest that it makes for lines as long as those before, which may be another namespace's.
const (
	keptText = 4 << 20
	mostRoom = 16 << 20
)

// Reset drops the lines, and makes room for so many of about their length: a buffer that grows by and by takes several times its size.
func (t *Text) Reset(lines int) {
	room := 0
	if n := len(t.ends); n > 0 {
		room = min(len(t.buf)/n*lines*9/8, mostRoom)
	}
	if cap(t.buf) > keptText {
		t.buf = nil
	}
	t.buf, t.ends = slices.Grow(t.buf[:0], room), slices.Grow(t.ends[:0], lines)
}

// Add adds the line that appendLine appends to the bytes it gets. After an error the lines are those before it.
func (t *Text) Add(appendLine func([]byte) ([]byte, error)) error {
	next, err := appendLine(t.buf)
	if err != nil {
		return err
	}
	t.buf = append(next, '\n')
	t.ends = append(t.ends, len(t.buf))
	return nil
}

// each calls f with each line, without its end, and its offset.
func (t *Text) each(f func(line []byte, off int64)) {
	start := 0
	for _, end := range t.ends {
		f(t.buf[start:end-1], int64(start))
		start = end
	}
}
