package wire

import (
	"encoding/binary"
	"errors"
	"io"
)

// Kinds of frames, with their sender.
const (
	KindConfig byte = 'C' // daemon: Config
	KindReady  byte = 'c' // runner: Ready; it is confined
	KindLoad   byte = 'L' // daemon: a source to load
	KindLoaded byte = 'l' // runner: Loaded, facts or a refusal
	KindRun    byte = 'R' // daemon: Run, one call
	KindAnswer byte = 'r' // runner: Answer, the end of the call
	KindAsk    byte = 'H' // runner: Question to the host
	KindReply  byte = 'h' // daemon: Reply to the question

	KindFix      byte = 'M' // daemon: Fix, a source to repair before it is loaded
	KindFixed    byte = 'm' // runner: Fixed, the repaired text
	KindText     byte = 'T' // daemon: a source to check and translate for the compiler
	KindTextDone byte = 't' // runner: Checked, the text for the compiler or a refusal
	KindLaunch   byte = 'X' // daemon: Launch; the launcher sends Ready before it executes the file
)

// frameHead is the length of the header: four bytes of length and the kind.
const frameHead = 5

// Errors of Reader.Next and the parse functions.
var (
	ErrFrameSize = errors.New("a frame longer than its bound")
	ErrFrame     = errors.New("a frame that does not parse")
)

// A Builder builds frames, one at a time, in a reused buffer. The zero Builder is ready to use.
type Builder struct{ b []byte }

// Begin starts a frame and drops the previous one.
func (f *Builder) Begin(kind byte) {
	f.b = append(f.b[:0], 0, 0, 0, 0, kind)
}

// Finish fills in the length and returns the whole frame, which is valid until the next Begin.
func (f *Builder) Finish() []byte {
	binary.LittleEndian.PutUint32(f.b, uint32(len(f.b)-4))
	return f.b
}

// Shrink releases the buffer if a frame has grown it beyond keepBuffer.
func (f *Builder) Shrink() {
	if cap(f.b) > keepBuffer {
		f.b = nil
	}
}

// keepBuffer is the largest buffer that is kept between calls, in bytes.
const keepBuffer = 64 << 10

// PutRaw appends bytes without a length.
func (f *Builder) PutRaw(p []byte) { f.b = append(f.b, p...) }

// PutByte appends a byte.
func (f *Builder) PutByte(c byte) { f.b = append(f.b, c) }

// PutUint appends an unsigned varint.
func (f *Builder) PutUint(n uint64) { f.b = binary.AppendUvarint(f.b, n) }

// PutFixed appends a number as eight bytes, little endian.
func (f *Builder) PutFixed(n uint64) { f.b = binary.LittleEndian.AppendUint64(f.b, n) }

// PutBytes appends a byte string, preceded by its length.
func (f *Builder) PutBytes(p []byte) { f.b = append(binary.AppendUvarint(f.b, uint64(len(p))), p...) }

// PutString appends a string, preceded by its length.
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

// PutStrings appends the number of strings and then each string.
func (f *Builder) PutStrings(list []string) {
	f.PutUint(uint64(len(list)))
	for _, s := range list {
		f.PutString(s)
	}
}

// PutTexts appends the number of entries and then each key and text.
func (f *Builder) PutTexts(m map[string]string) {
	f.PutUint(uint64(len(m)))
	for key, text := range m {
		f.PutString(key)
		f.PutString(text)
	}
}

// A Parser parses a payload. The first malformed item sets bad; all Take methods return zero values from then on, so
// one check at the end is enough.
type Parser struct {
	b   []byte
	bad bool
}

// parse returns a Parser of the payload.
func parse(payload []byte) Parser { return Parser{b: payload} }

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

// TakeBytes returns a byte string, which shares memory with the payload.
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

// TakeCopy returns a copy of a byte string, or nil if it is empty.
func (p *Parser) TakeCopy() []byte {
	s := p.TakeBytes()
	if len(s) == 0 {
		return nil
	}
	return append([]byte(nil), s...)
}

// TakeString returns a string, which need not be valid UTF-8.
func (p *Parser) TakeString() string { return string(p.TakeBytes()) }

// TakeText returns a string as valid UTF-8, cut to limit bytes by BoundText.
func (p *Parser) TakeText(limit int) string { return BoundText(p.TakeBytes(), limit) }

// TakeBool returns a bool of PutBool.
func (p *Parser) TakeBool() bool {
	c := p.TakeByte()
	if c > 1 {
		p.fail()
	}
	return c == 1
}

// TakeStrings returns a list of strings of valid UTF-8, or nil if it is empty.
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

// TakeTexts returns a map of valid UTF-8, or nil if it is empty.
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

// TakeCount returns a number of items. Each item takes at least one byte, so a count above the bytes left is malformed.
// This bounds allocations for lists.
func (p *Parser) TakeCount() int {
	n := p.TakeUint()
	if n > uint64(len(p.b)) {
		p.fail()
		return 0
	}
	return int(n)
}

// End reports whether the payload was well formed and nothing is left over.
func (p *Parser) End() bool { return !p.bad && len(p.b) == 0 }

// A Reader reads frames from a runner or from the daemon. It must not be used concurrently.
type Reader struct {
	src  io.Reader
	buf  []byte // buf[from:to] has been read but not returned
	from int
	to   int
}

// NewReader returns a Reader of src.
func NewReader(src io.Reader) *Reader { return &Reader{src: src} }

// Next returns the kind and the payload of the next frame. The payload is valid until the next call. If the announced
// length exceeds limit, Next returns ErrFrameSize before it reads or allocates anything for it. Memory grows only with
// what has arrived. The error is io.EOF only between frames.
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

// Buffered reports whether bytes beyond the last returned frame have been read.
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

// room makes room to read more: it moves the unread bytes to the front, or else doubles the buffer.
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
