package wire

import (
	"encoding/binary"
	"errors"
	"io"
)

// Kinds of frames, and who sends them.
const (
	KindConfig byte = 'C' // daemon: how to confine itself
	KindReady  byte = 'c' // runner: confined, and what it did
	KindLoad   byte = 'L' // daemon: a source
	KindLoaded byte = 'l' // runner: facts or a refusal
	KindRun    byte = 'R' // daemon: a call
	KindAnswer byte = 'r' // runner: how the call ended
	KindAsk    byte = 'H' // runner: a question to the host
	KindReply  byte = 'h' // daemon: the answer to it

	KindFix      byte = 'M' // daemon: a source, to be fixed before it is loaded
	KindFixed    byte = 'm' // runner: the text to load, and what was fixed
	KindText     byte = 'T' // daemon: a source, for its native text
	KindTextDone byte = 't' // runner: the text, or why there is none
	KindLaunch   byte = 'X' // daemon: what to execute, and how confined; the launcher answers with Ready before it does
)

// frameHead is the length of what stands before a payload.
const frameHead = 5

// Faults of a frame.
var (
	ErrFrameSize = errors.New("a frame longer than its bound")
	ErrFrame     = errors.New("a frame that does not parse")
)

// A Builder builds one frame after another in a buffer of its own.
type Builder struct{ b []byte }

// Begin starts a frame.
func (f *Builder) Begin(kind byte) {
	f.b = append(f.b[:0], 0, 0, 0, 0, kind)
}

// Finish fills in the length and returns the whole frame, which is valid until the next Begin.
func (f *Builder) Finish() []byte {
	binary.LittleEndian.PutUint32(f.b, uint32(len(f.b)-4))
	return f.b
}

// Shrink releases a buffer that one large frame has grown.
func (f *Builder) Shrink() {
	if cap(f.b) > keepBuffer {
		f.b = nil
	}
}

// keepBuffer is the largest buffer that is kept between calls.
const keepBuffer = 64 << 10

// PutRaw appends bytes as they are, with no length before them.
func (f *Builder) PutRaw(p []byte) { f.b = append(f.b, p...) }

// PutByte appends a byte.
func (f *Builder) PutByte(c byte) { f.b = append(f.b, c) }

// PutUint appends an unsigned varint.
func (f *Builder) PutUint(n uint64) { f.b = binary.AppendUvarint(f.b, n) }

// PutFixed appends a number as eight bytes.
func (f *Builder) PutFixed(n uint64) { f.b = binary.LittleEndian.AppendUint64(f.b, n) }

// PutBytes appends a byte string with its length.
func (f *Builder) PutBytes(p []byte) { f.b = append(binary.AppendUvarint(f.b, uint64(len(p))), p...) }

// PutString appends a string as PutBytes does.
func (f *Builder) PutString(s string) {
	f.b = append(binary.AppendUvarint(f.b, uint64(len(s))), s...)
}

// PutBool appends a byte, 1 or 0.
func (f *Builder) PutBool(b bool) {
	if b {
		f.PutByte(1)
	} else {
		f.PutByte(0)
	}
}

// PutStrings appends the number of strings, and each.
func (f *Builder) PutStrings(list []string) {
	f.PutUint(uint64(len(list)))
	for _, s := range list {
		f.PutString(s)
	}
}

// PutTexts appends the number of entries, and of each its key and its text.
func (f *Builder) PutTexts(m map[string]string) {
	f.PutUint(uint64(len(m)))
	for key, text := range m {
		f.PutString(key)
		f.PutString(text)
	}
}

// A Parser takes a payload apart. The first thing that does not fit sets bad; what follows is then zero.
type Parser struct {
	b   []byte
	bad bool
}

// Parse returns a parser of a payload.
func Parse(payload []byte) Parser { return Parser{b: payload} }

func (p *Parser) fail() {
	p.bad, p.b = true, nil
}

// TakeByte returns a byte.
func (p *Parser) TakeByte() byte {
	if len(p.b) == 0 {
		p.fail()
		return 0
	}
	c := p.b[0]
	p.b = p.b[1:]
	return c
}

// TakeUint returns an unsigned varint.
func (p *Parser) TakeUint() uint64 {
	n, w := binary.Uvarint(p.b)
	if w <= 0 {
		p.fail()
		return 0
	}
	p.b = p.b[w:]
	return n
}

// TakeFixed returns a number of eight bytes.
func (p *Parser) TakeFixed() uint64 {
	if len(p.b) < 8 {
		p.fail()
		return 0
	}
	n := binary.LittleEndian.Uint64(p.b)
	p.b = p.b[8:]
	return n
}

// TakeBytes returns a byte string that shares memory with the payload.
func (p *Parser) TakeBytes() []byte {
	n := p.TakeUint()
	if n > uint64(len(p.b)) {
		p.fail()
		return nil
	}
	s := p.b[:n:n]
	p.b = p.b[n:]
	return s
}

// TakeCopy returns a copy of a byte string, nil when it is empty.
func (p *Parser) TakeCopy() []byte {
	s := p.TakeBytes()
	if len(s) == 0 {
		return nil
	}
	return append([]byte(nil), s...)
}

// TakeString returns a string.
func (p *Parser) TakeString() string { return string(p.TakeBytes()) }

// TakeText returns a string for people: valid UTF-8 of at most limit bytes.
func (p *Parser) TakeText(limit int) string { return BoundText(p.TakeBytes(), limit) }

// TakeBool returns what PutBool has put.
func (p *Parser) TakeBool() bool {
	c := p.TakeByte()
	if c > 1 {
		p.fail()
	}
	return c == 1
}

// TakeStrings returns strings of valid UTF-8, nil where there are none.
func (p *Parser) TakeStrings() []string {
	n := p.TakeCount()
	if n == 0 {
		return nil
	}
	list := make([]string, n)
	for i := range list {
		list[i] = p.TakeText(MaxFacts)
	}
	return list
}

// TakeTexts returns a map of texts of valid UTF-8, nil where it is empty.
func (p *Parser) TakeTexts() map[string]string {
	n := p.TakeCount()
	if n == 0 {
		return nil
	}
	m := make(map[string]string, min(n, 64))
	for range n {
		key := p.TakeText(maxReadyText)
		m[key] = p.TakeText(maxReadyText)
	}
	return m
}

// TakeCount returns a number of items, each of which takes at least one byte of what is left.
func (p *Parser) TakeCount() int {
	n := p.TakeUint()
	if n > uint64(len(p.b)) {
		p.fail()
		return 0
	}
	return int(n)
}

// End reports whether everything was well formed and nothing is left over.
func (p *Parser) End() bool { return !p.bad && len(p.b) == 0 }

// A Reader reads frames from a runner or from the daemon. It is used by one goroutine at a time.
type Reader struct {
	src  io.Reader
	buf  []byte // buf[from:to] has been read and not been handed out
	from int
	to   int
}

// NewReader returns a Reader of src.
func NewReader(src io.Reader) *Reader { return &Reader{src: src} }

// Next returns the kind and the payload of the next frame; the payload is valid until the next call. A length above
// limit is ErrFrameSize before anything is read or allocated for it; memory grows only with what has arrived.
func (r *Reader) Next(limit int) (byte, []byte, error) {
	if err := r.fill(frameHead); err != nil {
		return 0, nil, err
	}
	n := int(binary.LittleEndian.Uint32(r.buf[r.from:]))
	if n < 1 {
		return 0, nil, ErrFrame
	}
	if n-1 > limit {
		return 0, nil, ErrFrameSize
	}
	if err := r.fill(4 + n); err != nil {
		return 0, nil, err
	}
	frame := r.buf[r.from : r.from+4+n]
	r.from += 4 + n
	return frame[4], frame[5:], nil
}

// Buffered reports whether more has arrived than was asked for.
func (r *Reader) Buffered() bool { return r.from < r.to }

// fill makes at least n bytes available at buf[from:].
func (r *Reader) fill(n int) error {
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
func (r *Reader) room() {
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
