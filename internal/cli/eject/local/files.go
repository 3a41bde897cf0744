package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"os"
	"path"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// A stream is a file that a program has open.
type stream struct {
	file io.ReadWriteCloser
}

// ReadStream implements recurgent.Streams.
func (a *asker) ReadStream(n int, p []byte) (int, error) {
	s, ok := a.run.streams[n]
	if !ok {
		return 0, fs.ErrClosed
	}
	count, err := s.file.Read(p)
	if err != nil {
		a.CloseStream(n)
	}
	return count, err
}

// WriteStream implements recurgent.Streams.
func (a *asker) WriteStream(n int, p []byte) error {
	s, ok := a.run.streams[n]
	if !ok {
		return fs.ErrClosed
	}
	_, err := s.file.Write(p)
	return err
}

// CloseStream implements recurgent.Streams.
func (a *asker) CloseStream(n int) {
	if s, ok := a.run.streams[n]; ok {
		_ = s.file.Close() // what was written is with the system
		delete(a.run.streams, n)
	}
}

// closeAll closes what the programs have left open.
func (r *run) closeAll() {
	for _, s := range r.streams {
		_ = s.file.Close()
	}
}

// openFile opens a file below Host.Files, of the name that the reference has.
func (r *run) openFile(params json.RawMessage) (any, error) {
	var q struct {
		File string
		Text bool
	}
	if err := json.Unmarshal(params, &q); err != nil {
		return nil, err
	}
	f, err := r.file(q.File)
	if err != nil {
		return nil, err
	}
	if !q.Text {
		return r.streamed(f, q.File), nil
	}
	text, err := readWhole(f)
	if err != nil {
		return nil, &recurgent.Failure{Type: "file_not_found", Message: err.Error()}
	}
	name := encodingOf(text)
	if name == "" {
		return nil, &recurgent.Failure{Type: "parse_failed", Message: "the file " + q.File + " is no text: read its bytes with call.Open"}
	}
	return r.streamed(textFile{decoded(text, name)}, q.File), nil
}

// file opens a file below Host.Files.
func (r *run) file(name string) (*os.File, error) {
	if r.host.Files == nil || r.tape != nil {
		r.lacks = "the file " + name
		return nil, &recurgent.Failure{Type: "file_not_found", Message: "there is no file " + name + " here"}
	}
	f, err := r.host.Files.Open(name)
	if err != nil {
		return nil, &recurgent.Failure{Type: "file_not_found", Message: err.Error()}
	}
	return f, nil
}

// fileInfo describes a file below Host.Files.
func (r *run) fileInfo(params json.RawMessage) (any, error) {
	var q struct{ File string }
	if err := json.Unmarshal(params, &q); err != nil {
		return nil, err
	}
	f, err := r.file(q.File)
	if err != nil {
		return nil, err
	}
	text, err := readWhole(f)
	if err != nil {
		return nil, &recurgent.Failure{Type: "file_not_found", Message: err.Error()}
	}
	name := path.Base(q.File)
	return recurgent.FileInfo{Name: name, MediaType: mime.TypeByExtension(path.Ext(name)), Encoding: encodingOf(text), Bytes: int64(len(text))}, nil
}

// createFile makes a file below Host.Files. It replaces none.
func (r *run) createFile(params json.RawMessage) (any, error) {
	var q struct{ Name string }
	if err := json.Unmarshal(params, &q); err != nil {
		return nil, err
	}
	if r.host.Files == nil {
		r.lacks = "a directory for files"
		return nil, &recurgent.Failure{Type: "denied", Message: "files cannot be made here"}
	}
	name := path.Base(strings.ReplaceAll(q.Name, `\`, "/"))
	if name == "." || name == ".." || name == "/" {
		name = "file"
	}
	ext := path.Ext(name)
	for i := 1; ; i++ {
		free := name
		if i > 1 {
			free = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, ext), i, ext)
		}
		f, err := r.host.Files.OpenFile(free, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
		if errors.Is(err, fs.ErrExist) && i < 1000 {
			continue
		}
		if err != nil {
			return nil, &recurgent.Failure{Type: "resource_exhausted", Message: err.Error()}
		}
		return r.streamed(f, free), nil
	}
}

// createAgain makes a file of a recorded call, of which nothing is kept.
func (r *run) createAgain(params json.RawMessage) (any, error) {
	answer, err := r.replay("create", params)
	if err != nil {
		return nil, err
	}
	var was struct{ File string }
	raw, _ := answer.(json.RawMessage)
	if err := json.Unmarshal(raw, &was); err != nil {
		return nil, err
	}
	return r.streamed(nowhere{}, was.File), nil
}

func (r *run) streamed(f io.ReadWriteCloser, name string) any {
	if r.streams == nil {
		r.streams = map[int]stream{}
	}
	r.last++
	r.streams[r.last] = stream{f}
	return struct {
		Stream int
		File   string
	}{r.last, name}
}

// nowhere takes everything and keeps nothing.
type nowhere struct{}

func (nowhere) Read([]byte) (int, error)    { return 0, io.EOF }
func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (nowhere) Close() error                { return nil }
