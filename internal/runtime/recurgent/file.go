package recurgent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Open opens a file for reading: the object {"$file": "file_..."} as it came in, or its id, or one that the program has fetched, or made and closed. The bytes come in pieces as they are
// read, so that a file may be larger than the program's memory: read it with bufio, encoding/csv or encoding/json's Decoder. A
// program may have 16 files open at once; one that was read to its end, or closed (io.Closer), does not count. The error is
// file_not_found when there is no such file, or it is gone.
func (c *Call) Open(ref any) (io.Reader, error) { return c.open(ref, false) }

func (c *Call) open(ref any, text bool) (io.Reader, error) {
	id, err := fileID(ref)
	if err != nil {
		return nil, err
	}
	var opened struct{ Stream int }
	streams, err := c.askStream("open", fileQuery{id, text}, &opened)
	if err != nil {
		return nil, err
	}
	return &fileReader{host: streams, stream: opened.Stream}, nil
}

// OpenText is Open for a file of text, whatever its character set: what is read is UTF-8 without a byte order mark. The error is parse_failed for binary
// data.
func (c *Call) OpenText(ref any) (io.Reader, error) { return c.open(ref, true) }

// DecodeText returns the text that the bytes are, whatever their character set, as OpenText reads that of a file: for what a program has unpacked or fetched.
// It takes at most 16 MiB. The error is parse_failed for binary data.
func (c *Call) DecodeText(b []byte) (string, error) {
	var opened struct{ Stream int }
	streams, err := c.askStream("decode", struct{}{}, &opened)
	if err != nil {
		return "", err
	}
	if err := streams.WriteStream(opened.Stream, b); err != nil {
		streams.CloseStream(opened.Stream)
		return "", err
	}
	in := &fileReader{host: streams, stream: opened.Stream}
	text, err := io.ReadAll(in)
	if err != nil {
		streams.CloseStream(opened.Stream)
		return "", err
	}
	return string(text), nil
}

// ReadFile returns all bytes of a file, as Open gives them. They have to fit into the program's memory.
func (c *Call) ReadFile(ref any) ([]byte, error) {
	in, err := c.Open(ref)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(in)
}

// FetchFile gets the URL into a file, whatever its size, and returns the file's reference {"$file": "file_..."}: read it with Open, OpenText, ReadFile or
// FileInfo, return it, or both. It is for what is large or binary; its bytes are unpacked, and text keeps its character set. The file counts as one that the
// program makes: it is kept when the call ends with a value that refers to it, else removed. Besides the errors of Fetch there are not_found for the status 404 or
// 410, and fetch_failed for any other one that is not 2xx.
func (c *Call) FetchFile(url string) (map[string]any, error) {
	var ref map[string]any
	if err := c.host.Ask("fetch_file", Request{URL: url}, &ref); err != nil {
		return nil, err
	}
	return ref, nil
}

// FileInfo describes a file.
type FileInfo struct {
	Name      string `json:"name"`       // what its maker called it, or ""
	MediaType string `json:"media_type"` // as its maker said
	// the character set of a text, by the names of the WHATWG Encoding Standard such as utf-8, and ibm850; "" for binary data
	Encoding string `json:"encoding"`
	Bytes    int64  `json:"bytes"`
}

// FileInfo describes the file: the object {"$file": "file_..."} as it came in, or its id. The error is as of Open.
func (c *Call) FileInfo(ref any) (FileInfo, error) {
	var info FileInfo
	id, err := fileID(ref)
	if err == nil {
		err = c.host.Ask("file", fileQuery{File: id}, &info)
	}
	return info, err
}

// askStream asks for a stream, and returns what carries it.
func (c *Call) askStream(op string, params, result any) (Streams, error) {
	streams, ok := c.host.(Streams)
	if !ok {
		return nil, Fail("denied", op+": there are no files here")
	}
	return streams, c.host.Ask(op, params, result)
}

type fileQuery struct {
	File string `json:"file"`
	Text bool   `json:"text,omitempty"` // decoded
}

// fileID returns the id that a reference names.
func fileID(ref any) (string, error) {
	switch ref := ref.(type) {
	case string:
		return ref, nil
	case *File:
		return ref.id, nil
	case map[string]any:
		if id, ok := ref["$file"].(string); ok {
			return id, nil
		}
	}
	return "", Fail("invalid_input", `a file is {"$file": "file_..."}, or its id`)
}

// pieceSize is how much is asked for, or handed over, at once.
const pieceSize = 60 << 10

// A fileReader reads an open file.
type fileReader struct {
	host   Streams
	stream int
	buf    []byte // memory of pieces
	rest   []byte // of the last piece, not read yet
	err    error  // what reading ends with
}

func (f *fileReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for len(f.rest) == 0 {
		if f.err != nil {
			return 0, f.err
		}
		if len(p) >= pieceSize {
			n, err := f.host.ReadStream(f.stream, p[:pieceSize])
			f.err = err
			return n, err
		}
		if f.buf == nil {
			f.buf = make([]byte, pieceSize)
		}
		var n int
		n, f.err = f.host.ReadStream(f.stream, f.buf)
		f.rest = f.buf[:n]
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

// Close ends reading.
func (f *fileReader) Close() error {
	if f.err == nil {
		f.err = errClosed
		f.host.CloseStream(f.stream)
	}
	f.rest, f.buf = nil, nil
	return nil
}

var errClosed = errors.New("the file is closed")

// Create begins a file that the program makes: write to it, close it, and return it, or its Ref, as the value or a part of it. It is kept when the
// call ends with a value that refers to it, else removed. name is for people; mediaType is that of the content, such as text/csv.
func (c *Call) Create(name, mediaType string) (*File, error) {
	params := struct {
		Name      string `json:"name"`
		MediaType string `json:"media_type"`
	}{name, mediaType}
	var made struct {
		Stream int
		File   string
	}
	streams, err := c.askStream("create", params, &made)
	if err != nil {
		return nil, err
	}
	f := &File{host: streams, stream: made.Stream, id: made.File, name: name}
	c.made = append(c.made, f)
	return f, nil
}

// A File is a file that the program makes. It is an io.WriteCloser.
type File struct {
	host   Streams
	stream int
	id     string
	name   string
	buf    []byte // written, and not handed over yet
	err    error  // what writing has ended with
}

// Write adds to the file.
func (f *File) Write(p []byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	written := 0
	for len(p) > 0 {
		if f.buf == nil {
			f.buf = make([]byte, 0, pieceSize)
		}
		n := min(len(p), pieceSize-len(f.buf))
		f.buf = append(f.buf, p[:n]...)
		p, written = p[n:], written+n
		if len(f.buf) == pieceSize && f.flush() != nil {
			return written, f.err
		}
	}
	return written, nil
}

// WriteString is Write of a string.
func (f *File) WriteString(s string) (int, error) { return f.Write([]byte(s)) }

func (f *File) flush() error {
	if len(f.buf) > 0 && f.err == nil {
		f.err = f.host.WriteStream(f.stream, f.buf)
		f.buf = f.buf[:0]
	}
	return f.err
}

// Close ends the file. The end of the run closes those that the program has not.
func (f *File) Close() error {
	if f.err == errClosed {
		return nil
	}
	err := f.flush()
	f.buf, f.err = nil, errClosed
	if err == nil {
		f.host.CloseStream(f.stream)
	}
	return err
}

// Ref is the file as a value: {"$file": "file_..."}.
func (f *File) Ref() map[string]any { return map[string]any{"$file": f.id} }

// MarshalJSON is the file as a value, as Ref is. The error says that it is not closed: some of it may not have been written.
func (f *File) MarshalJSON() ([]byte, error) {
	if f.err != errClosed {
		return nil, fmt.Errorf("the file %q is not closed: Close it, and look at the error, before it is returned",
			f.name)
	}
	return json.Marshal(f.Ref())
}
