package local

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"mime"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// A stream is a file that a program has opened.
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
		_ = s.file.Close() // the system has the written bytes
		delete(a.run.streams, n)
	}
}

// closeAll closes the streams that programs left open.
func (r *run) closeAll() {
	for _, s := range r.streams {
		_ = s.file.Close()
	}
}

// openFile opens a file of the case or the file below Host.Files that the reference names.
func (r *run) openFile(params json.RawMessage) (any, error) {
	var q struct {
		File string
		Text bool
	}
	if err := json.Unmarshal(params, &q); err != nil {
		return nil, err
	}
	if r.tape != nil && r.held[q.File].data == nil { // otherwise the run itself created it
		if _, err := r.replay("open", params); err != nil {
			return nil, err
		}
	}
	f, err := r.file(q.File)
	if err != nil {
		return nil, err
	}
	if !q.Text {
		return r.streamed(readOnly{f}, q.File), nil
	}
	text, err := readWhole(f)
	if err != nil {
		return nil, &recurgent.Failure{Type: "file_not_found", Message: err.Error()}
	}
	name := Charset(text)
	if name == "" {
		return nil, &recurgent.Failure{Type: "parse_failed", Message: "the file " + q.File +
			" is no text: read its bytes with call.Open"}
	}
	return r.streamed(readOnly{io.NopCloser(decoded(text, name))}, q.File), nil
}

// file opens a file of the case or, without one, a file below Host.Files.
func (r *run) file(name string) (io.ReadCloser, error) {
	if f, ok := r.held[name]; ok {
		return f.open(r.dir)
	}
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

// fileInfo describes a file of the case, or one below Host.Files.
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
	info := recurgent.FileInfo{Name: path.Base(q.File), MediaType: mime.TypeByExtension(path.Ext(q.File)),
		Encoding: Charset(text), Bytes: int64(len(text))}
	if held, ok := r.held[q.File]; ok {
		info.Name, info.MediaType = held.Name, held.MediaType
	}
	return info, nil
}

// createFile creates a file below Host.Files. It does not replace an existing one.
func (r *run) createFile(params json.RawMessage) (any, error) {
	var q struct{ Name string }
	if err := json.Unmarshal(params, &q); err != nil {
		return nil, err
	}
	if r.host.Files == nil {
		r.lacks = "a directory for files"
		return nil, &recurgent.Failure{Type: "denied", Message: "files cannot be made here"}
	}
	f, name, err := r.newFile(q.Name)
	if err != nil {
		return nil, err
	}
	return r.streamed(f, name), nil
}

// newFile creates a file below Host.Files with that name, or a similar one that is free.
func (r *run) newFile(called string) (f *os.File, name string, err error) {
	called = path.Base(strings.ReplaceAll(called, `\`, "/"))
	if called == "." || called == ".." || called == "/" {
		called = "file"
	}
	ext := path.Ext(called)
	for i := 1; ; i++ {
		name = called
		if i > 1 {
			name = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(called, ext), i, ext)
		}
		f, err = r.host.Files.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
		if errors.Is(err, fs.ErrExist) && i < 1000 {
			continue
		}
		if err != nil {
			return nil, "", &recurgent.Failure{Type: "resource_exhausted", Message: err.Error()}
		}
		return f, name, nil
	}
}

// fetchFile downloads a file to Host.Files.
func (r *run) fetchFile(params json.RawMessage) (any, error) {
	var q recurgent.Request
	if err := json.Unmarshal(params, &q); err != nil {
		return nil, err
	}
	if r.host.Files == nil || r.host.Download == nil {
		r.lacks = "a fetch of " + q.URL
		return nil, &recurgent.Failure{Type: "denied", Message: "fetches of files are denied here"}
	}
	name, body, err := r.host.Download(q.URL)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	f, name, err := r.newFile(name)
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(f, body)
	if err = errors.Join(err, f.Close()); err != nil {
		err = errors.Join(err, r.host.Files.Remove(name))
		return nil, &recurgent.Failure{Type: "fetch_failed", Message: "fetch: " + err.Error()}
	}
	return reference(name), nil
}

func reference(name string) any { return map[string]string{"$file": name} }

// createAgain makes a file of a case, which is held in memory for the run: the recorded one, or a new one, since a call
// that failed kept no file.
func (r *run) createAgain(params json.RawMessage) (any, error) {
	was := struct{ File, SHA256 string }{File: fmt.Sprintf("file_new_%d", len(r.held))}
	if found := r.tape.find("create", params); found != nil {
		if found.Error != nil {
			return nil, &recurgent.Failure{Type: found.Error.Type, Message: found.Error.Message}
		}
		if err := json.Unmarshal(found.Result, &was); err != nil {
			return nil, err
		}
	}
	return r.streamed(r.hold(was.File, HeldFile{sum: was.SHA256}), was.File), nil
}

// fetchedAgain replays the download of a file.
func (r *run) fetchedAgain(params json.RawMessage) (any, error) {
	answer, err := r.replay("fetch_file", params)
	if err != nil {
		return nil, err
	}
	var was struct {
		File      string
		Name      string
		MediaType string `json:"media_type"`
		Body      string
		Raw       []byte
		LeftOut   bool `json:"left_out"`
	}
	raw, _ := answer.(json.RawMessage)
	if err := json.Unmarshal(raw, &was); err != nil {
		return nil, err
	}
	if _, given := r.held[was.File]; !given && !was.LeftOut {
		f := r.hold(was.File, HeldFile{Name: was.Name, MediaType: was.MediaType})
		_, _ = f.Write(append([]byte(was.Body), was.Raw...)) // one of them is empty
	}
	return reference(was.File), nil
}

// streamed registers an open file under a new number, and returns both as a program expects them.
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

// A HeldFile is a file of a case: a given one, or one that its program creates or fetches.
type HeldFile struct {
	Name      string `json:"name,omitempty"`
	MediaType string `json:"media_type,omitempty"`
	Path      string `json:"path,omitempty"` // path of its bytes below the program's directory

	data *bytes.Buffer // bytes of a file that the run creates
	// sum is the SHA-256 of the bytes that the recorded call wrote to it, in hexadecimal; "" for other files.
	sum string
}

// hold adds a file that the run creates.
func (r *run) hold(id string, f HeldFile) io.ReadWriteCloser {
	f.data = &bytes.Buffer{}
	if r.held == nil {
		r.held = map[string]HeldFile{}
	}
	r.held[id] = f
	return written{f.data}
}

// open opens the file. dir is the program's directory.
func (f HeldFile) open(dir string) (io.ReadCloser, error) {
	if f.data != nil {
		return io.NopCloser(bytes.NewReader(f.data.Bytes())), nil
	}
	return os.Open(filepath.Join(dir, filepath.FromSlash(f.Path)))
}

// madeOther returns the id of a file in the value to which the run wrote other bytes than the recorded call did, or "".
func (r *run) madeOther(value []byte) string {
	for _, id := range slices.Sorted(maps.Keys(r.held)) {
		f := r.held[id]
		if f.data == nil || f.sum == "" || !bytes.Contains(value, []byte(strconv.Quote(id))) {
			continue
		}
		if sum := sha256.Sum256(f.data.Bytes()); hex.EncodeToString(sum[:]) != f.sum {
			return id
		}
	}
	return ""
}

// written is a file that a run writes.
type written struct{ *bytes.Buffer }

func (written) Read([]byte) (int, error) { return 0, errors.New("a file that is written is not read") }

func (written) Close() error { return nil }

// readOnly is a file that a run reads.
type readOnly struct{ io.ReadCloser }

func (readOnly) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
