package recurgent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Open opens a file for reading. ref is the object {"$file": "file_..."} as it came in, its id, or a file that the
// program has fetched, or created and closed. The bytes arrive in pieces as they are read, so a file may be larger than
// the program's memory: read it with bufio, encoding/csv or the Decoder of encoding/json. A program may have 16 files
// open at once; a file that was read to its end or closed (io.Closer) does not count. The error is file_not_found if
// the file does not exist or has been removed.
func (c *Call) Open(ref any) (io.Reader, error) { return c.open(ref, false) }

// open opens a file, decoded to UTF-8 if text is set.
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

// OpenText is Open for a text file in any character set: the reader returns UTF-8 without a byte order mark. The error
// is parse_failed for binary data.
func (c *Call) OpenText(ref any) (io.Reader, error) { return c.open(ref, true) }

// DecodeText decodes b, text in any character set, to UTF-8 as OpenText does for a file. It is for text that a program
// has unpacked or fetched. It takes at most 16 MiB. The error is parse_failed for binary data.
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

// ReadFile returns the whole content of a file that Open can open. It has to fit into the program's memory.
func (c *Call) ReadFile(ref any) ([]byte, error) {
	in, err := c.Open(ref)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(in)
}

// FetchFile gets the URL into a file of any size and returns its reference {"$file": "file_..."}. Read the file with
// Open, OpenText, ReadFile or FileInfo, return the reference, or both. It is for large or binary content: a content
// encoding is decoded, and text keeps its character set. The file counts as created by the program: it is kept if the
// call ends with a value that refers to it, and removed otherwise. In addition to the errors of Fetch there are
// not_found for status 404 or 410, and fetch_failed for any other status that is not 2xx.
func (c *Call) FetchFile(url string) (map[string]any, error) {
	var ref map[string]any
	if err := c.host.Ask("fetch_file", Request{URL: url}, &ref); err != nil {
		return nil, err
	}
	return ref, nil
}

// FileInfo describes a file.
type FileInfo struct {
	Name      string `json:"name"`       // as given by the file's creator; may be ""
	MediaType string `json:"media_type"` // as given by the file's creator
	// Encoding is the character set of a text file: its name in the WHATWG Encoding Standard, such as utf-8, or ibm850.
	// It is "" for binary data.
	Encoding string `json:"encoding"`
	Bytes    int64  `json:"bytes"`
}

// FileInfo describes the file that ref names: the object {"$file": "file_..."} as it came in, or its id. The errors are
// those of Open.
func (c *Call) FileInfo(ref any) (FileInfo, error) {
	var info FileInfo
	id, err := fileID(ref)
	if err == nil {
		err = c.host.Ask("file", fileQuery{File: id}, &info)
	}
	return info, err
}

// askStream performs op, which opens a stream, and returns the host's Streams. The error is denied if the host has
// none.
func (c *Call) askStream(op string, params, result any) (Streams, error) {
	streams, ok := c.host.(Streams)
	if !ok {
		return nil, Fail("denied", op+": there are no files here")
	}
	return streams, c.host.Ask(op, params, result)
}

// fileQuery has the parameters of the operations open and file.
type fileQuery struct {
	File string `json:"file"`
	Text bool   `json:"text,omitempty"` // decode to UTF-8
}

// fileID returns the id that ref names.
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

// pieceSize is the number of bytes per read from the host or write to it.
const pieceSize = 60 << 10

// A fileReader reads an open file through its host. It asks for pieceSize bytes at a time.
type fileReader struct {
	host   Streams
	stream int
	buf    []byte // backing array of rest
	rest   []byte // unread part of the last piece
	err    error  // returned once rest is empty
}

// Read implements io.Reader. A large p is filled directly, without the buffer.
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

// Close stops reading and closes the stream. It may be called more than once.
func (f *fileReader) Close() error {
	if f.err == nil {
		f.err = errClosed
		f.host.CloseStream(f.stream)
	}
	f.rest, f.buf = nil, nil
	return nil
}

// errClosed marks a fileReader or File as closed.
var errClosed = errors.New("the file is closed")

// Create creates a file: write to it, close it, and return it or its Ref as the value or a part of it. It is kept if
// the call ends with a value that refers to it, and removed otherwise. name is for people; mediaType is the media type
// of the content, such as text/csv.
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

// A File is a file that the program creates. It is an io.WriteCloser that buffers writes; Close flushes it.
type File struct {
	host   Streams
	stream int
	id     string
	name   string
	buf    []byte // written but not yet sent to the host
	err    error  // the first write error, or errClosed
	late   bool   // written to after Close
}

// Write appends p to the file. It returns an error after Close, which also fails the run, and once a write has failed.
func (f *File) Write(p []byte) (int, error) {
	if f.err != nil {
		f.late = f.late || f.err == errClosed
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

// WriteString is Write for a string.
func (f *File) WriteString(s string) (int, error) { return f.Write([]byte(s)) }

// flush sends the buffered bytes to the host.
func (f *File) flush() error {
	if len(f.buf) > 0 && f.err == nil {
		f.err = f.host.WriteStream(f.stream, f.buf)
		f.buf = f.buf[:0]
	}
	return f.err
}

// Close flushes and closes the file, and reports an earlier write error. Files that the program leaves open are closed
// when the run ends.
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

// Ref returns the file's reference as a value: {"$file": "file_..."}.
func (f *File) Ref() map[string]any { return map[string]any{"$file": f.id} }

// MarshalJSON encodes the file as its Ref. It returns an error if the file is not closed, because part of it may not
// have been written.
func (f *File) MarshalJSON() ([]byte, error) {
	if f.err != errClosed {
		return nil, fmt.Errorf("the file %q is not closed: Close it, and look at the error, before it is returned",
			f.name)
	}
	return json.Marshal(f.Ref())
}
