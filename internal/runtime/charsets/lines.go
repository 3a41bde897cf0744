package charsets

import (
	"bytes"
	"io"

	"golang.org/x/text/transform"
)

// A Reader reads text that is decoded.
type Reader struct {
	io.Reader
	lines *lineEnds
}

// LineEnd is how the first line ends in the file: "\n", "\r\n", or "\r"; "" as long as none was read.
func (r *Reader) LineEnd() string { return r.lines.kind }

// lineEnds replaces CR by LF in a text whose first line ends in CR alone, as old Macintoshes and some devices write: to readers of lines and tables it would
// be one line. What a CR means in other texts is left to their readers. It leaves out the mark with which DOS ends a file.
type lineEnds struct{ kind string }

// dosEnd is that mark.
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
		text, err = src[:last], transform.ErrShortSrc // what follows says what it is
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

// look finds the first line end of the text before rest.
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
