package disk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/jsonenc"
	"github.com/recurgentd/recurgentd/internal/store"
)

// encoders holds buffers for encoding calls.
var encoders = sync.Pool{New: func() any { return new(jsonenc.Writer) }}

// keptEncoder is the largest buffer that is reused, in bytes.
const keptEncoder = 64 << 10

// release returns a buffer to encoders, unless it has grown too large.
func release(w *jsonenc.Writer) {
	if cap(w.Buf) > keptEncoder {
		return
	}
	*w = jsonenc.Writer{Buf: w.Buf[:0]}
	encoders.Put(w)
}

var (
	changesCode  = jsonenc.For[[]agent.ArtifactChange]()
	toolsCode    = jsonenc.For[[]store.ToolChange]()
	patternCode  = jsonenc.For[agent.PatternEvent]()
	filesCode    = jsonenc.For[[]agent.File]()
	contentCode  = jsonenc.For[store.Content]()
	replyKeyCode = jsonenc.For[replyKey]()
)

// encodeCall returns the entry of a call and encodes it into w, except for the assigned figures and the opening brace,
// which come first: see appendHead. Of w's memory the entry refers only to Record, which is not used after the commit
// has returned. If something in c is not valid JSON, encodeCall returns an error; nothing has been changed then.
func encodeCall(w *jsonenc.Writer, name agent.Namespace, c *store.CallCommit, now time.Time) (*entry, error) {
	both := &struct {
		entry
		planned
	}{}
	e := &both.entry
	*e = entry{NS: journalName(name), At: now.UnixMilli(), Session: c.SessionID, Context: c.Context,
		Artifacts: c.Artifacts, Tools: c.Tools,
		Pattern: c.Pattern, Content: c.Content, Files: filesOf(c.Files), planned: &both.planned}
	if c.Context.Empty() {
		e.Context = nil
	}
	e.artifacts, e.tools, e.Revisions = e.room.artifacts[:0], e.room.tools[:0], e.room.revisions[:0]
	if n := entrySize(c); cap(w.Buf) < n {
		w.Buf = make([]byte, 0, n)
	}
	w.Int("t", e.At)
	if e.NS != "" {
		w.String("ns", string(e.NS))
	}
	if c.SessionID != "" {
		w.String("s", c.SessionID)
	}
	if c.Record.CallID != "" {
		seq := c.Record.Seq
		c.Record.Seq = 0
		e.Record = member(w, "r", &c.Record)
		c.Record.Seq = seq
		e.meta = metaOf(&c.Record)
	}
	if e.Context != nil {
		w.Value("c", e.Context)
	}
	if c.Log.CallID != "" {
		e.encodeLog(w, c)
	}
	if c.Key != nil {
		e.Key = &replyKey{c.Key.Key, c.Key.BodyHash, c.Key.CallID}
		w.Key("k")
		replyKeyCode.Append(w, e.Key)
		e.Reply = rawMember(w, "y", c.Reply)
	}
	e.encodeChanges(w, c)
	if w.Err != nil {
		return nil, fmt.Errorf("call %s cannot be stored: %w", c.Log.CallID, w.Err)
	}
	w.Buf = append(w.Buf, '}')
	return e, nil
}

// entrySize estimates the size of a call's entry in bytes: a fixed part plus the arguments, the value and the effects,
// some of which occur twice.
func entrySize(c *store.CallCommit) int {
	n := 2560 + 2*(len(c.Outcome.Value)+len(c.Record.Kwargs)) + len(c.Effects) + len(c.Reply)
	for _, a := range c.Record.Args {
		n += 2 * len(a)
	}
	return n
}

// encodeLog encodes the log entry, the outcome and the effects.
func (e *entry) encodeLog(w *jsonenc.Writer, c *store.CallCommit) {
	e.call = &pendingCall{log: c.Log}
	w.Key("l")
	w.KeepHTML = true
	shortLog.Append(w, &e.call.log)
	w.KeepHTML = false
	if c.Outcome.Status != "" {
		e.Outcome = bytes.Clone(member(w, "o", &c.Outcome))
	}
	e.Effects = rawMember(w, "e", c.Effects)
}

// encodeChanges encodes what the call changes apart from its session and the log.
func (e *entry) encodeChanges(w *jsonenc.Writer, c *store.CallCommit) {
	if c.Content != nil {
		w.Key("d")
		contentCode.Append(w, c.Content)
	}
	if len(c.Artifacts) > 0 {
		w.Key("a")
		changesCode.Append(w, &c.Artifacts)
	}
	if len(c.Tools) > 0 {
		w.Key("u")
		toolsCode.Append(w, &c.Tools)
	}
	if len(e.Files) > 0 {
		w.Key("files")
		filesCode.Append(w, &e.Files)
	}
	if c.Pattern != nil {
		w.Key("p")
		patternCode.Append(w, c.Pattern)
	}
}

// member encodes a member and returns its JSON, which refers to w's buffer.
func member(w *jsonenc.Writer, name string, v jsonenc.Appender) json.RawMessage {
	w.Key(name)
	from := len(w.Buf)
	v.AppendJSON(w)
	return w.Buf[from:len(w.Buf):len(w.Buf)]
}

// rawMember encodes JSON without insignificant whitespace and returns the result, which does not refer to w's buffer.
// It does nothing if v is nil.
func rawMember(w *jsonenc.Writer, name string, v json.RawMessage) json.RawMessage {
	if v == nil {
		return nil
	}
	w.Key(name)
	w.KeepHTML = true
	from := len(w.Buf)
	w.JSON(v)
	w.KeepHTML = false
	if written := w.Buf[from:]; !bytes.Equal(written, v) {
		return bytes.Clone(written)
	}
	return v
}

// appendHead appends the opening brace and the assigned members of a call's entry, followed by a comma if there are
// any.
func (e *entry) appendHead(b []byte) []byte {
	w := jsonenc.Writer{Buf: append(b, '{')}
	if e.Unsure > 0 {
		w.Int("w", int64(e.Unsure)) // must be first: see unsureOf
	}
	if e.Seq > 0 {
		w.Int("q", int64(e.Seq))
	}
	if e.Counters != ([5]int64{}) {
		w.Ints("n", e.Counters[:])
	}
	if len(e.Revisions) > 0 {
		w.Ints("v", e.Revisions)
	}
	if len(e.Grown) > 0 {
		w.Value("g", e.Grown)
	}
	if len(w.Buf) > len(b)+1 {
		w.Buf = append(w.Buf, ',')
	}
	return w.Buf
}
