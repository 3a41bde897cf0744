package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/recurgentd/recurgentd/internal/agent"
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
