package charsets

import (
	"bytes"
	"io"

	"golang.org/x/text/transform"
)

// A Reader returns decoded text. It must not be used concurrently.
type Reader struct {
	io.Reader
	lines *lineEnds
}

// LineEnd returns the end of the first line in the file: "\n", "\r\n" or "\r". It is "" until one has been read.
func (r *Reader) LineEnd() string { return r.lines.kind }

// lineEnds replaces CR by LF in a text whose first line ends in CR alone, as old Macintoshes and some devices write it:
// readers of lines and tables would see a single line. In other texts a CR is left to their readers. lineEnds also
// omits the end mark of DOS files.
type lineEnds struct{ kind string }

// dosEnd is the end mark of DOS files (Ctrl-Z).
const dosEnd = 0x1a

// Reset implements transform.Transformer.
func (l *lineEnds) Reset() { l.kind = "" }

// Transform implements transform.Transformer.
func (l *lineEnds) Transform(dst, src []byte, atEOF bool) (nDst, nSrc int, err error) {
	text, last := src, len(src)-1
	switch {
	case last < 0:
		return 0, 0, nil
	case src[last] == dosEnd && atEOF:
		text = src[:last]
	case !atEOF && (src[last] == dosEnd || src[last] == '\r' && l.kind != "\n" && l.kind != "\r\n"):
		text, err = src[:last], transform.ErrShortSrc // the next byte determines its meaning
	}
	whole := len(text) <= len(dst)
	if !whole {
		text, err = text[:len(dst)], transform.ErrShortDst
	}
	if l.kind == "" {
		l.look(text, src[len(text):])
	}
	n := copy(dst, text)
	if l.kind == "\r" {
		for i, c := range text {
			if c == '\r' && (i+1 == len(src) || src[i+1] != '\n') {
				dst[i] = '\n'
			}
		}
	}
	if whole && atEOF {
		return n, len(src), nil
	}
	return n, n, err
}

// look finds the first line end of text. rest follows text.
func (l *lineEnds) look(text, rest []byte) {
	switch i := bytes.IndexAny(text, "\r\n"); {
	case i < 0:
	case text[i] == '\n':
		l.kind = "\n"
	case bytes.HasPrefix(text[i+1:], []byte("\n")), i+1 == len(text) && bytes.HasPrefix(rest, []byte("\n")):
		l.kind = "\r\n"
	default:
		l.kind = "\r"
	}
}
