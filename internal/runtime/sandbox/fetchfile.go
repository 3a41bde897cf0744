package sandbox

import (
	"context"
	"encoding/json"
	"io"
	"unicode/utf8"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/fetch"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// fetchedFile is how a journal notes a file that was fetched: as one that was made, with what a run on it needs of the answer.
type fetchedFile struct {
	fileNote
	Name      string `json:"name,omitempty"`
	MediaType string `json:"media_type"`
	Status    int    `json:"status"`
	Body      string `json:"body,omitempty"`
	Raw       []byte `json:"raw,omitempty"` // instead of Body, where that is not UTF-8
	// there is no room for the bytes: a second run has them as long as the file is stored
	LeftOut bool `json:"left_out,omitempty"`
}

// fetchFile has the body of an answer written to a file of the run.
func (x *exchange) fetchFile(ctx context.Context, params json.RawMessage) (reply, *Failure) {
	if x.journal.replaying() {
		return x.fetchedAgain(params)
	}
	d := &download{x: x, ctx: ctx, room: max(0, x.journal.limit-x.journal.size) / 2}
	note, refusal := d.perform(params)
	if refusal != nil {
		if d.to != nil {
			d.to.Discard()
		}
		x.journal.add(wire.OpFetchFile, params, nil, refusal)
		return refuse(refusal)
	}
	_ = d.to.Close() // which writes nothing
	f := d.to.End()
	x.files.made = append(x.files.made, &madeFile{NewFile: d.to})
	x.journal.add(wire.OpFetchFile, params, d.note(&f, note.Status), nil)
	return reply{body: agent.FileRef(f.ID)}, nil
}

// A download takes the body of an answer.
type download struct {
	x    *exchange
	ctx  context.Context
	to   NewFile // nil until the body begins
	head []byte  // for the journal
	room int     // bytes of head: half of what the journal has left
	over bool    // head is not all of it
}

func (d *download) perform(params json.RawMessage) (note fetch.Note, refusal *recurgent.Failure) {
	x := d.x
	q, refusal := x.mayFetch(params)
	if refusal != nil {
		return note, refusal
	}
	var a fetch.Answer
	x.wait(d.ctx, func() { a = x.pool.opts.Fetch.Download(d.ctx, x.caller(), q, d.begin) })
	a.Release()
	x.fetches = append(x.fetches, a.Note)
	return a.Note, a.Failure
}

// begin begins the file.
func (d *download) begin(name, mediaType string) (io.Writer, error) {
	to, refused := d.x.h.CreateFile(d.ctx, wire.OpFetch, name, mediaType)
	if refused != nil {
		return nil, &recurgent.Failure{Type: refused.Type, Message: refused.Message}
	}
	d.to = to
	return d, nil
}

func (d *download) Write(p []byte) (int, error) {
	if d.over = d.over || len(d.head)+len(p) > d.room; d.over {
		d.head = nil
	} else {
		d.head = append(d.head, p...)
	}
	return d.to.Write(p)
}

// note is the file in the journal, with its bytes where they fit.
func (d *download) note(f *agent.File, status int) json.RawMessage {
	n := fetchedFile{fileNote: fileNote{f.ID, f.SHA256, f.Bytes}, Name: f.Name, MediaType: f.MediaType, Status: status,
		LeftOut: d.over}
	if utf8.Valid(d.head) {
		n.Body = string(d.head)
	} else {
		n.Raw = d.head
	}
	raw, err := encode(n, len(n.Body)+len(n.Raw)*4/3)
	if err == nil && len(raw) <= d.room*3/2+1<<10 {
		return raw
	}
	n.Body, n.Raw, n.LeftOut = "", nil, true
	raw, _ = encode(n, 0) // texts and numbers
	return raw
}

// fetchedAgain fetches a file for a run on recorded effects.
func (x *exchange) fetchedAgain(params json.RawMessage) (reply, *Failure) {
	e, failure := x.lookUp(wire.OpFetchFile, params)
	if failure != nil {
		return reply{}, failure
	}
	var f fetchedFile
	if e.Error == nil && json.Unmarshal(e.Result, &f) != nil {
		return reply{}, diverged("the journal of a file cannot be read")
	}
	x.fetches = append(x.fetches, recordedDownload(params, e, &f))
	if e.Error != nil {
		return refuse(&recurgent.Failure{Type: e.Error.Type, Message: e.Error.Message})
	}
	m := x.files.makeAgain(agent.File{ID: f.File, Name: f.Name, MediaType: f.MediaType})
	if m.data = f.Raw; m.data == nil {
		m.data = []byte(f.Body)
	}
	m.file.Bytes = f.Bytes
	if f.LeftOut {
		m.was = f.SHA256
	}
	return reply{body: agent.FileRef(f.File)}, nil
}

// recordedDownload is the note of a fetched file that was served from a journal.
func recordedDownload(params json.RawMessage, e *journalEntry, f *fetchedFile) Fetch {
	var q recurgent.Request
	_ = json.Unmarshal(params, &q) // what cannot be read has no address
	if e.Error != nil {
		return fetch.Recorded(q, nil, e.Error.Type)
	}
	return fetch.Recorded(q, &recurgent.Response{Status: f.Status,
		Header: map[string]string{"Content-Type": f.MediaType}, Body: f.Body}, "")
}
