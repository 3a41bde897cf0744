package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/charsets"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// maxStreams is how many streams a program may have open at once: files that it reads or makes, and texts being
// decoded.
const maxStreams = 16

// OpenFile is a file that a program reads. If the program should see the cause of a Read error, the error is a
// *recurgent.Failure.
type OpenFile struct {
	agent.File
	io.ReadSeekCloser
}

// NewFile is a file that a program makes. If the program should see the cause of a Write error, the error is a
// *recurgent.Failure. Close ends writing. End returns the finished file, which the host then keeps or drops. Discard
// abandons it.
type NewFile interface {
	io.WriteCloser
	ID() string
	End() agent.File
	Discard()
}

// streams holds the files that a run has open or has made.
type streams struct {
	last  int            // number of the latest stream
	open  map[int]stream // by number
	made  []*madeFile
	ended []agent.File // in a live run: the files of made, finished by endFiles
	again []*madeAgain // in a replay: files that it makes or fetches
	room  int          // in a replay: bytes that again may still hold
	buf   []byte       // of read, reused; a reply is sent before the next read

	decoded int // bytes of texts being decoded
}

// A stream is an open file or a text being decoded. Exactly one field is set.
type stream struct {
	from io.ReadCloser
	to   *madeFile
	text *decoding
}

type madeFile struct {
	NewFile
	params json.RawMessage // of its creation; nil for a fetched file
	was    *fileNote       // in a replay: the recorded file; nil if none matches
}

// fileNote is the journal entry of a file. A replay needs a file with the same digest, or makes it again.
type fileNote struct {
	File   string `json:"file"`
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
}

func noteOf(f *agent.File) json.RawMessage {
	raw, _ := json.Marshal(fileNote{f.ID, f.SHA256, f.Bytes}) // strings and a number always encode
	return raw
}

// add registers a stream and returns the reply with its number and file id.
func (s *streams) add(x stream, id string) reply {
	s.last++
	s.open[s.last] = x
	raw, _ := json.Marshal(struct {
		Stream int
		File   string
	}{s.last, id}) // a number and a string always encode
	return reply{body: raw}
}

func (s *streams) close(n int) {
	x := s.open[n]
	if x.from != nil {
		_ = x.from.Close() // it was only read
	}
	if x.to != nil {
		_ = x.to.Close() // Close writes nothing
	}
	if x.text != nil {
		_ = x.text.Close() // in memory
	}
	delete(s.open, n)
}

// closeAll closes the streams that the program left open.
func (s *streams) closeAll() {
	for n := range s.open {
		s.close(n)
	}
}

// stream performs an operation on files. Their bytes do not count towards MaxHostBytes.
func (x *exchange) stream(ctx context.Context, q *wire.Question) (reply, *Failure) {
	if x.files.open == nil {
		x.files.open = map[int]stream{}
	}
	if !wire.OnStream(q.Op) && len(x.files.open) >= maxStreams {
		return refuse(denied(fmt.Sprintf("%s: %d files are open; read one to its end, or close one", q.Op, maxStreams)))
	}
	switch q.Op {
	case wire.OpOpen:
		return x.openFile(ctx, q.Params)
	case wire.OpCreate:
		return x.createFile(ctx, q.Params)
	case wire.OpDecode:
		return x.decode()
	}
	var p wire.StreamParams
	if json.Unmarshal(q.Params, &p) != nil {
		return refuse(denied(q.Op + ": bad parameters"))
	}
	s, ok := x.files.open[p.Stream]
	switch {
	case ok && q.Op == wire.OpRead && s.from != nil:
		return x.read(p, s.from)
	case ok && q.Op == wire.OpRead && s.text != nil:
		return x.read(p, s.text)
	case ok && q.Op == wire.OpWrite && s.text != nil:
		_, err := s.text.Write(q.Data)
		return failing(err)
	case ok && q.Op == wire.OpWrite && s.to != nil:
		_, err := s.to.Write(q.Data)
		return failing(err)
	case q.Op == wire.OpClose:
		x.files.close(p.Stream)
		return reply{}, nil
	}
	return refuse(denied(q.Op + ": the file is not open"))
}

func refuse(f *recurgent.Failure) (reply, *Failure) { return reply{refusal: f}, nil }

// failing returns the reply to a read or write: empty if err is nil, otherwise a refusal.
func failing(err error) (reply, *Failure) {
	if err == nil {
		return reply{}, nil
	}
	_, refusal := plain(nil, err)
	return refuse(refusal)
}

// read replies with the next bytes. At the end of the file, or on an error, it closes the stream; the reply to the end
// is empty.
func (x *exchange) read(p wire.StreamParams, from io.Reader) (reply, *Failure) {
	if x.files.buf == nil {
		x.files.buf = make([]byte, wire.MaxPiece)
	}
	n, err := io.ReadFull(from, x.files.buf[:max(0, min(p.Bytes, wire.MaxPiece))])
	if n > 0 || err == nil {
		return reply{body: x.files.buf[:n]}, nil
	}
	x.files.close(p.Stream)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return failing(err)
}

// createFile creates a file for the program. A replay gives it the recorded id, so that references in values match.
func (x *exchange) createFile(ctx context.Context, params json.RawMessage) (reply, *Failure) {
	var q struct {
		Name      string
		MediaType string `json:"media_type"`
	}
	if json.Unmarshal(params, &q) != nil {
		return refuse(denied("create: bad parameters"))
	}
	m := &madeFile{params: params}
	if x.journal.replaying() {
		id := fmt.Sprintf("file_new_%d", len(x.files.made))
		if e := x.journal.find(wire.OpCreate, params); e != nil && e.Error == nil {
			m.was = &fileNote{}
			if json.Unmarshal(e.Result, m.was) == nil && m.was.File != "" {
				id = m.was.File
			}
		}
		m.NewFile = x.files.makeAgain(agent.File{ID: id, Name: q.Name, MediaType: q.MediaType})
	} else {
		made, refused := x.h.CreateFile(ctx, wire.OpCreate, q.Name, q.MediaType)
		if refused != nil {
			refusal := &recurgent.Failure{Type: refused.Type, Message: refused.Message}
			x.journal.add(wire.OpCreate, params, nil, refusal)
			return refuse(refusal)
		}
		m.NewFile = made
	}
	x.files.made = append(x.files.made, m)
	return x.files.add(stream{to: m}, m.ID()), nil
}

// endFiles finishes the files of the run and records them. In a replay, it returns value with changed references to
// files whose bytes differ from the recorded ones, so that the two values differ as well.
func (x *exchange) endFiles(value json.RawMessage) json.RawMessage {
	for _, m := range x.files.made {
		f := m.End()
		switch {
		case !x.journal.replaying():
			if m.params != nil {
				x.journal.add(wire.OpCreate, m.params, noteOf(&f), nil)
			}
			x.files.ended = append(x.files.ended, f)
		case m.was == nil || m.was.SHA256 != f.SHA256:
			value = bytes.ReplaceAll(value, []byte(f.ID), []byte(f.ID+"_"+f.SHA256[:12]))
		}
	}
	return value
}

type fileQuery struct {
	File string
	Text bool // decoded
}

// openFile opens a file for reading by the program.
func (x *exchange) openFile(ctx context.Context, params json.RawMessage) (reply, *Failure) {
	var q fileQuery
	if json.Unmarshal(params, &q) != nil {
		return refuse(denied("open: bad parameters"))
	}
	if refusal := x.files.unclosed(q.File); refusal != nil {
		return refuse(refusal)
	}
	if x.journal.replaying() {
		return x.openAgain(ctx, q, params)
	}
	f, refused := x.h.OpenFile(ctx, q.File)
	own := x.files.makes(q.File) // a replay makes these bytes itself, so they are not journaled
	if refused != nil {
		refusal := &recurgent.Failure{Type: refused.Type, Message: refused.Message}
		if !own {
			x.journal.add(wire.OpOpen, params, nil, refusal)
		}
		return refuse(refusal)
	}
	from, refusal := f.as(q.Text)
	switch {
	case own:
	case refusal != nil:
		x.journal.add(wire.OpOpen, params, nil, refusal)
	default:
		x.journal.add(wire.OpOpen, params, noteOf(&f.File), nil)
	}
	if refusal != nil {
		return refuse(refusal)
	}
	return x.files.add(stream{from: from}, f.ID), nil
}

// openAgain opens a file in a replay: a file that the replay made itself, or a stored one that still has the recorded
// digest.
func (x *exchange) openAgain(ctx context.Context, q fileQuery, params json.RawMessage) (reply, *Failure) {
	f, failure := x.reread(ctx, q.File)
	if f == nil && failure == nil {
		e := x.journal.find(wire.OpOpen, params)
		var was fileNote
		switch {
		case e == nil:
			return reply{}, diverged("the program opened a file that the recorded call did not")
		case e.Error != nil:
			return refuse(&recurgent.Failure{Type: e.Error.Type, Message: e.Error.Message})
		case json.Unmarshal(e.Result, &was) != nil:
			return reply{}, diverged("the journal of a file cannot be read")
		}
		f, failure = x.sameFile(ctx, q.File, was.SHA256)
	}
	if failure != nil {
		return reply{}, failure
	}
	from, refusal := f.as(q.Text)
	if refusal != nil {
		return refuse(refusal)
	}
	return x.files.add(stream{from: from}, f.ID), nil
}

// sameFile opens the stored file id. The run diverges if its SHA-256 is no longer sum.
func (x *exchange) sameFile(ctx context.Context, id, sum string) (*OpenFile, *Failure) {
	f, refused := x.h.OpenFile(ctx, id)
	if refused == nil && f.SHA256 == sum {
		return f, nil
	}
	if f != nil {
		_ = f.Close() // nothing was read
	}
	return nil, diverged("the file " + id + " of the recorded call is gone")
}

// as returns what the program reads: the bytes as they are, or the text decoded to UTF-8. It closes f if it returns a
// refusal.
func (f *OpenFile) as(text bool) (io.ReadCloser, *recurgent.Failure) {
	if !text {
		return f, nil
	}
	name, err := charsets.GuessFrom(f, f.MediaType)
	if err == nil && name == "" {
		err = &recurgent.Failure{Type: agent.ErrParseFailed, Message: "the file " + wire.BoundText([]byte(f.ID), 64) +
			" is no text: read its bytes with call.Open"}
	}
	var decoded io.Reader
	if err == nil {
		// Decoders read in small pieces.
		decoded, err = charsets.NewReader(bufio.NewReaderSize(f, storedPiece), name)
	}
	if err != nil {
		_ = f.Close()
		_, refusal := plain(nil, err)
		return nil, refusal
	}
	return struct {
		io.Reader
		io.Closer
	}{decoded, f}, nil
}

// storedPiece is how many bytes of a stored text are read at once.
const storedPiece = 256 << 10

// info describes the file and closes it.
func (f *OpenFile) info() (recurgent.FileInfo, error) {
	defer func() { _ = f.Close() }() // it was only read
	name, err := charsets.GuessFrom(f, f.MediaType)
	return recurgent.FileInfo{Name: f.Name, MediaType: f.MediaType, Encoding: name, Bytes: f.Bytes}, err
}

// fileInfo describes a file to the program.
func (x *exchange) fileInfo(ctx context.Context, ask *wire.Question) (reply, *Failure) {
	var q fileQuery
	if json.Unmarshal(ask.Params, &q) != nil {
		return refuse(denied("file: bad parameters"))
	}
	if refusal := x.files.unclosed(q.File); refusal != nil {
		return refuse(refusal)
	}
	if x.journal.replaying() {
		if f, failure := x.reread(ctx, q.File); f != nil && failure == nil {
			return described(f)
		}
		return x.recorded(ctx, ask) // works for deleted files as well
	}
	f, refused := x.h.OpenFile(ctx, q.File)
	r := reply{}
	if refused != nil {
		r.refusal = &recurgent.Failure{Type: refused.Type, Message: refused.Message}
	} else {
		r, _ = described(f)
	}
	x.journal.add(ask.Op, ask.Params, r.body, r.refusal)
	return r, nil
}

// described returns the reply to a file query. It closes f.
func described(f *OpenFile) (reply, *Failure) {
	info, err := f.info()
	if err != nil {
		return failing(err)
	}
	body, refusal := plain(json.Marshal(info))
	return reply{body: body, refusal: refusal}, nil
}

// unclosed returns a refusal if the program is still writing the file, because part of it may be missing.
func (s *streams) unclosed(id string) *recurgent.Failure {
	for _, x := range s.open {
		if x.to != nil && x.to.ID() == id {
			return &recurgent.Failure{Type: agent.ErrTool, Message: "the file " + wire.BoundText([]byte(id), 64) +
				" is not closed: Close it, and look at the error, before it is read"}
		}
	}
	return nil
}

// maxAgain bounds the bytes that a replay keeps of the files that it makes, so that it can read them.
const maxAgain = 16 << 20

// madeAgain is a file that a replay makes or fetches. It implements NewFile. Its digest is kept until the run ends, and
// its bytes as well while all files fit maxAgain.
type madeAgain struct {
	file agent.File // without SHA256
	sum  hash.Hash
	data []byte
	lost bool   // the bytes did not fit; data is empty
	was  string // the recorded digest of a fetched file whose bytes the journal lacks
	of   *streams
}

// makeAgain creates a file of a replay.
func (s *streams) makeAgain(f agent.File) *madeAgain {
	if s.again == nil {
		s.room = maxAgain
	}
	m := &madeAgain{file: f, sum: sha256.New(), of: s}
	s.again = append(s.again, m)
	return m
}

func (m *madeAgain) Write(p []byte) (int, error) {
	m.file.Bytes += int64(len(p))
	if m.lost = m.lost || len(p) > m.of.room; m.lost {
		m.of.room += len(m.data)
		m.data = nil
	} else {
		m.of.room -= len(p)
		m.data = append(m.data, p...)
	}
	return m.sum.Write(p)
}

func (m *madeAgain) Close() error { return nil }

func (m *madeAgain) Discard() {}

func (m *madeAgain) ID() string { return m.file.ID }

func (m *madeAgain) End() agent.File {
	f := m.file
	f.SHA256 = hex.EncodeToString(m.sum.Sum(nil))
	return f
}

// makes reports whether the run has made the file.
func (s *streams) makes(id string) bool {
	for _, m := range s.made {
		if m.ID() == id {
			return true
		}
	}
	return false
}

// reread opens a file that a replay has made or fetched. It returns nil for any other file, and a Failure if the bytes
// are no longer available.
func (x *exchange) reread(ctx context.Context, id string) (*OpenFile, *Failure) {
	for _, m := range x.files.again {
		switch {
		case m.file.ID != id:
		case m.was != "":
			return x.sameFile(ctx, id, m.was)
		case m.lost:
			return nil, diverged("the program reads a file of its own that is too large to be made again")
		default:
			return &OpenFile{File: m.End(), ReadSeekCloser: inMemory{bytes.NewReader(m.data)}}, nil
		}
	}
	return nil, nil
}

// inMemory gives bytes in memory a Close method.
type inMemory struct{ io.ReadSeeker }

func (inMemory) Close() error { return nil }
