package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/fetch"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// fetch performs a request for the program.
func (x *exchange) fetch(ctx context.Context, params json.RawMessage) (json.RawMessage, *recurgent.Failure) {
	q, refusal := x.mayFetch(params)
	if refusal != nil {
		return nil, refusal
	}
	var a fetch.Answer
	x.wait(ctx, func() { a = x.pool.opts.Fetch.Do(ctx, x.caller(), q) })
	x.held = a.Release
	x.fetches = append(x.fetches, a.Note)
	if a.Failure != nil {
		return nil, a.Failure
	}
	return plain(encode(a.Response, len(a.Response.Body)+len(a.Response.Raw)*4/3))
}

// mayFetch decodes the request, and refuses one that the run may not make.
func (x *exchange) mayFetch(params json.RawMessage) (q recurgent.Request, refusal *recurgent.Failure) {
	if json.Unmarshal(params, &q) != nil {
		return q, denied("fetch: bad parameters")
	}
	if len(x.fetches) >= x.req.Fetches {
		return q, denied(fmt.Sprintf("fetch: a program may fetch %d times in a call (policy fetches_per_call)",
			x.req.Fetches))
	}
	if x.req.NoFetch || x.pool.opts.Fetch == nil {
		x.fetches = append(x.fetches, fetch.Denied(q))
		return q, denied("fetch: this run may not fetch")
	}
	return q, nil
}

// caller describes on whose behalf requests are made.
func (x *exchange) caller() fetch.Caller {
	return fetch.Caller{Owner: x.req.Owner, Role: x.req.Role, Method: x.req.Method, CallID: x.req.CallID,
		End: x.req.End, Guard: x.req.Guard, Writes: x.req.Writes}
}

// encode is json.Marshal without HTML escapes, which make pages much larger. size is the expected length of the output
// in bytes.
func encode(v any, size int) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(size + size/16 + 1<<10) // growing by doubling would hold three times the size
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// release releases the memory held for the last answer.
func (x *exchange) release() {
	if x.held != nil {
		x.held()
		x.held = nil
	}
}

// recordedFetch returns the note of a fetch that was served from a journal.
func recordedFetch(params json.RawMessage, e *journalEntry) Fetch {
	var q recurgent.Request
	var r recurgent.Response
	_ = json.Unmarshal(params, &q) // unreadable parameters leave the address empty
	if e.Error != nil {
		return fetch.Recorded(q, nil, e.Error.Type)
	}
	if json.Unmarshal(e.Result, &r) != nil {
		r = recurgent.Response{}
	}
	return fetch.Recorded(q, &r, "")
}

// fetchedFile is the journal entry of a fetched file: the note of a made file, and the parts of the answer that a
// replay needs.
type fetchedFile struct {
	fileNote
	Name      string `json:"name,omitempty"`
	MediaType string `json:"media_type"`
	Status    int    `json:"status"`
	Body      string `json:"body,omitempty"`
	Raw       []byte `json:"raw,omitempty"` // replaces Body if the bytes are not UTF-8
	// LeftOut means that the bytes did not fit the journal. A replay needs the stored file then.
	LeftOut bool `json:"left_out,omitempty"`
}

// fetchFile writes the body of an answer to a file of the run.
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
	_ = d.to.Close() // Close writes nothing
	f := d.to.End()
	x.files.made = append(x.files.made, &madeFile{NewFile: d.to})
	x.journal.add(wire.OpFetchFile, params, d.note(&f, note.Status), nil)
	return reply{body: agent.FileRef(f.ID)}, nil
}

// A download receives the body of an answer and writes it to a file of the run.
type download struct {
	x    *exchange
	ctx  context.Context
	to   NewFile // nil until the body begins
	head []byte  // the body so far, for the journal
	room int     // most bytes of head: half of what the journal has left
	over bool    // the body exceeded room; head is empty
}

// perform fetches the body. The caller must discard d.to after a refusal.
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

// begin creates the file when the body begins.
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

// note returns the journal entry of the file, with its bytes if they fit.
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
	raw, _ = encode(n, 0) // strings and numbers always encode
	return raw
}

// fetchedAgain serves a fetched file in a replay.
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

// recordedDownload returns the note of a fetched file that was served from a journal.
func recordedDownload(params json.RawMessage, e *journalEntry, f *fetchedFile) Fetch {
	var q recurgent.Request
	_ = json.Unmarshal(params, &q) // unreadable parameters leave the address empty
	if e.Error != nil {
		return fetch.Recorded(q, nil, e.Error.Type)
	}
	return fetch.Recorded(q, &recurgent.Response{Status: f.Status,
		Header: map[string]string{"Content-Type": f.MediaType}, Body: f.Body}, "")
}
