package sandbox

import (
	"encoding/binary"
	"errors"
	"io"
	"unicode/utf8"
)

// The pipe between daemon and runner carries frames: four bytes of length (little endian, of what follows), one byte
// of kind, the payload. Payloads are made of unsigned varints and of byte strings with their length before them, so
// that JSON travels as it is and is never escaped or scanned for its end.
const (
	frameHead = 5

	kindConfig byte = 'C' // daemon: how to confine itself
	kindReady  byte = 'c' // runner: confined, and what it did
	kindLoad   byte = 'L' // daemon: a source
	kindLoaded byte = 'l' // runner: facts or a refusal
	kindRun    byte = 'R' // daemon: a call
	kindAnswer byte = 'r' // runner: how the call ended
	kindAsk    byte = 'H' // runner: a question to the host
	kindReply  byte = 'h' // daemon: the answer to it
)

var (
	errFrameSize = errors.New("a frame longer than its bound")
	errFrame     = errors.New("a frame that does not parse")
)

// A frameBuilder appends a frame to a buffer that is used again and again.
type frameBuilder struct{ b []byte }

// begin starts a frame anew.
func (f *frameBuilder) begin(kind byte) {
	f.b = append(f.b[:0], 0, 0, 0, 0, kind)
}

// finish fills in the length and returns the whole frame, which is valid until the next begin.
func (f *frameBuilder) finish() []byte {
	binary.LittleEndian.PutUint32(f.b, uint32(len(f.b)-4))
	return f.b
}

// shrink gives back a buffer that one large frame has grown.
func (f *frameBuilder) shrink() {
	if cap(f.b) > keepBuffer {
		f.b = nil
	}
}

// keepBuffer is the largest buffer that is kept between calls.
const keepBuffer = 64 << 10

func (f *frameBuilder) byte(c byte)    { f.b = append(f.b, c) }
func (f *frameBuilder) uint(n uint64)  { f.b = binary.AppendUvarint(f.b, n) }
func (f *frameBuilder) fixed(n uint64) { f.b = binary.LittleEndian.AppendUint64(f.b, n) }
func (f *frameBuilder) bytes(p []byte) { f.b = append(binary.AppendUvarint(f.b, uint64(len(p))), p...) }
func (f *frameBuilder) string(s string) {
	f.b = append(binary.AppendUvarint(f.b, uint64(len(s))), s...)
}

// A frameParser takes a payload apart. The first thing that does not fit sets bad; what follows is then zero.
type frameParser struct {
	b   []byte
	bad bool
}

func (p *frameParser) fail() {
	p.bad, p.b = true, nil
}

func (p *frameParser) byte() byte {
	if len(p.b) == 0 {
		p.fail()
		return 0
	}
	c := p.b[0]
	p.b = p.b[1:]
	return c
}

func (p *frameParser) uint() uint64 {
	n, w := binary.Uvarint(p.b)
	if w <= 0 {
		p.fail()
		return 0
	}
	p.b = p.b[w:]
	return n
}

func (p *frameParser) fixed() uint64 {
	if len(p.b) < 8 {
		p.fail()
		return 0
	}
	n := binary.LittleEndian.Uint64(p.b)
	p.b = p.b[8:]
	return n
}

// bytes returns a byte string that shares memory with the payload.
func (p *frameParser) bytes() []byte {
	n := p.uint()
	if n > uint64(len(p.b)) {
		p.fail()
		return nil
	}
	s := p.b[:n:n]
	p.b = p.b[n:]
	return s
}

// copied returns a copy of a byte string, nil when it is empty.
func (p *frameParser) copied() []byte {
	s := p.bytes()
	if len(s) == 0 {
		return nil
	}
	return append([]byte(nil), s...)
}

func (p *frameParser) string() string { return string(p.bytes()) }

// text returns a string for people: valid UTF-8 of at most limit bytes.
func (p *frameParser) text(limit int) string { return boundText(p.bytes(), limit) }

// count returns a number of items, each of which takes at least one byte of what is left.
func (p *frameParser) count() int {
	n := p.uint()
	if n > uint64(len(p.b)) {
		p.fail()
		return 0
	}
	return int(n)
}

// end reports whether everything was well formed and nothing is left over.
func (p *frameParser) end() bool { return !p.bad && len(p.b) == 0 }

// boundText cuts text at a character boundary and replaces what is not UTF-8.
func boundText(s []byte, limit int) string {
	if len(s) > limit {
		s = s[:limit]
		for len(s) > 0 && !utf8.RuneStart(s[len(s)-1]) {
			s = s[:len(s)-1]
		}
		if n := len(s); n > 0 && !utf8.Valid(s[n-1:]) {
			s = s[:n-1]
		}
		return toValid(s) + " …"
	}
	return toValid(s)
}

func toValid(s []byte) string {
	if utf8.Valid(s) {
		return string(s)
	}
	out := make([]rune, 0, len(s))
	for _, r := range string(s) { // an invalid byte becomes U+FFFD
		out = append(out, r)
	}
	return string(out)
}

// A frameReader reads frames from a runner or from the daemon. It is used by one goroutine at a time.
type frameReader struct {
	src  io.Reader
	buf  []byte // buf[from:to] has been read and not been handed out
	from int
	to   int
}

// next returns the kind and the payload of the next frame; the payload is valid until the next call. A length above
// limit is errFrameSize before anything is read or allocated for it; memory grows only with what has arrived.
func (r *frameReader) next(limit int) (byte, []byte, error) {
	if err := r.fill(frameHead); err != nil {
		return 0, nil, err
	}
	n := int(binary.LittleEndian.Uint32(r.buf[r.from:]))
	if n < 1 {
		return 0, nil, errFrame
	}
	if n-1 > limit {
		return 0, nil, errFrameSize
	}
	if err := r.fill(4 + n); err != nil {
		return 0, nil, err
	}
	frame := r.buf[r.from : r.from+4+n]
	r.from += 4 + n
	return frame[4], frame[5:], nil
}

// buffered reports whether more has arrived than was asked for.
func (r *frameReader) buffered() bool { return r.from < r.to }

// fill makes at least n bytes available at buf[from:].
func (r *frameReader) fill(n int) error {
	if r.from == r.to {
		r.from, r.to = 0, 0
		if cap(r.buf) > keepBuffer && n <= keepBuffer {
			r.buf = nil
		}
	}
	for r.to-r.from < n {
		r.room()
		m, err := r.src.Read(r.buf[r.to:])
		r.to += m
		if err != nil && r.to-r.from < n {
			if err == io.EOF && r.to > r.from {
				return io.ErrUnexpectedEOF
			}
			return err
		}
	}
	return nil
}

// room makes place for reading on: first by moving, then by doubling.
func (r *frameReader) room() {
	if r.to < len(r.buf) {
		return
	}
	if r.from > 0 {
		copy(r.buf, r.buf[r.from:r.to])
		r.from, r.to = 0, r.to-r.from
		return
	}
	size := max(4<<10, 2*len(r.buf))
	grown := make([]byte, size)
	copy(grown, r.buf[:r.to])
	r.buf = grown
}
