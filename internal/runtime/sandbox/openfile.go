package sandbox

import (
	"bufio"
	"context"
	"encoding/json"
	"io"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/charsets"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

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
