package mcp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// lines reads messages, one per line.
type lines struct {
	in   *bufio.Reader
	most int  // longest line, in bytes
	read bool // a line was read before
}

// mark is the byte order mark, with which some editors and shells begin a text.
var mark = []byte("\xef\xbb\xbf")

// next returns the next line that is not empty, without white space around it. It strips a byte order mark from the
// first one. A fault describes a line that was skipped. The error is io.EOF after the last line, even if that is
// unterminated.
func (l *lines) next() (line []byte, fault *jsonrpc.Error, err error) {
	for {
		line, long, err := readLine(l.in, l.most)
		if !l.read {
			line = bytes.TrimPrefix(line, mark)
		}
		l.read = true
		line = bytes.TrimSpace(line)
		switch {
		case long:
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest,
				Message: fmt.Sprintf("a message has more than %d bytes", l.most)}, nil
		case len(line) > 0:
			return line, nil, nil
		case err != nil:
			return nil, nil, err
		}
	}
}

// readLine reads a line with its end. It discards a line that is too long.
func readLine(in *bufio.Reader, most int) (line []byte, long bool, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if long = long || len(line)+len(part) > most; long {
			line = nil
		} else {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, long, err
		}
	}
}

// events reads the data of server-sent events.
type events struct {
	in   *bufio.Reader
	most int // largest data of an event, in bytes
}

// next returns the data of the next event that has any. A stream that ends within an event or between events is
// io.ErrUnexpectedEOF.
func (e *events) next() (data []byte, err error) {
	for {
		text, long, err := readLine(e.in, e.most)
		if long || len(data)+len(text) > e.most {
			return nil, fmt.Errorf("an event has more than %d bytes", e.most)
		}
		text = bytes.TrimRight(text, "\r\n")
		value, isData := bytes.CutPrefix(text, []byte("data:"))
		switch {
		case isData:
			data = append(data, bytes.TrimPrefix(value, []byte(" "))...)
		case len(text) == 0 && len(data) > 0:
			return data, nil
		}
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, err
		}
	}
}
