package jsonl

import "slices"

// Text collects lines in one buffer, which Reset keeps for reuse. The zero value is ready to use. A Text must not be
// used concurrently.
type Text struct {
	buf  []byte
	ends []int // offsets after each line's newline
}

// keptText is the largest buffer that Reset keeps. mostRoom bounds the room that Reset makes: it estimates line lengths
// from the previous lines, which may belong to another namespace.
const (
	keptText = 4 << 20
	mostRoom = 16 << 20
)

// Reset drops the lines and makes room for that many lines of about the same length. A buffer that grows step by step
// would allocate several times its final size.
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

// Add adds the line that appendLine appends to the bytes it is given. After an error the lines are the same as before.
func (t *Text) Add(appendLine func([]byte) ([]byte, error)) error {
	next, err := appendLine(t.buf)
	if err != nil {
		return err
	}
	t.buf = append(next, '\n')
	t.ends = append(t.ends, len(t.buf))
	return nil
}

// each calls f with each line, without its newline, and the line's offset.
func (t *Text) each(f func(line []byte, off int64)) {
	start := 0
	for _, end := range t.ends {
		f(t.buf[start:end-1], int64(start))
		start = end
	}
}
