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

// maxStreams is how many files a program may have open at once, those that it makes included.
const maxStreams = 16

// OpenFile is a file that a program reads. An error of Read is a *recurgent.Failure where the program is to see more than that it failed.
type OpenFile struct {
	agent.File
	io.ReadSeekCloser
}

// NewFile is a file that a program makes. An error of Write is a *recurgent.Failure where the program is to see more than that it failed.
// End gives what was made of it; what becomes of it is the host's business, unless it is discarded. Close ends writing.
type NewFile interface {
	io.WriteCloser
	ID() string
	End() agent.File
	Discard()
}

// streams are the files that a run has open or has made.
type streams struct {
	last  int
	open  map[int]stream
	made  []*madeFile
	ended []agent.File // those of made that a live run has ended with
	again []*madeAgain // those of a run on recorded effects
	room  int          // what its files may still take in memory
	buf   []byte

	decoded int // bytes of texts that are being decoded
}

// A stream is a file that is open, for reading or for writing, or a text that is decoded.
type stream struct {
	from io.ReadCloser
	to   *madeFile
	text *decoding
}

type madeFile struct {
	NewFile
	params json.RawMessage // of its creation; nil for one that was fetched
	was    *fileNote       // of a run on recorded effects: what it was then
}

// fileNote is how a journal notes a file: a run on it needs the same bytes, or makes them again.
type fileNote struct {
	File   string `json:"file"`
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
}

func noteOf(f *agent.File) json.RawMessage {
	raw, _ := json.Marshal(fileNote{f.ID, f.SHA256, f.Bytes}) // two texts and a number
	return raw
}

// add gives a stream its number, and the reply with it.
func (s *streams) add(x stream, id string) reply {
	s.last++
	s.open[s.last] = x
	raw, _ := json.Marshal(struct {
		Stream int
		File   string
	}{s.last, id}) // a number and a text
	return reply{body: raw}
}

func (s *streams) close(n int) {
	x := s.open[n]
	if x.from != nil {
		_ = x.from.Close() // it was only read
	}
	if x.to != nil {
		_ = x.to.Close() // which writes nothing
	}
	if x.text != nil {
		_ = x.text.Close() // it is in memory
	}
	delete(s.open, n)
}

// closeAll closes what the program has left open.
func (s *streams) closeAll() {
	for n := range s.open {
		s.close(n)
	}
}

// stream answers an operation on files. The bytes are outside of the bounds of host calls.
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

// failing is the reply to a reading or writing that went wrong, or an empty one.
func failing(err error) (reply, *Failure) {
	if err == nil {
		return reply{}, nil
	}
	_, refusal := plain(nil, err)
	return refuse(refusal)
}

// read replies with the next bytes; none at the end of the file, which closes it.
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

// endFiles notes what was made. In a run on recorded effects it returns the value with another reference in the place of that to a file
// whose bytes are not those of the recorded call, so that the two values differ.
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
