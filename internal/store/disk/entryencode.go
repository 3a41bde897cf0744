package disk

import (
	"errors"
	"fmt"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// encodeCall makes the entry of a call and its bytes without the assigned figures, which stand before them. It fails,
// before anything is changed, when something in c is not JSON.
func encodeCall(name agent.Namespace, c *store.CallCommit, now time.Time) (*entry, []byte, error) {
	e := &entry{NS: journalName(name), At: now.UnixMilli(), Session: c.SessionID, Context: c.Context, Artifacts: c.Artifacts, Tools: c.Tools,
		Pattern: c.Pattern, Content: c.Content, planned: &planned{log: c.Log}}
	if c.Context.Empty() {
		e.Context = nil
	}
	w := &jsonWriter{buf: make([]byte, 0, entrySize(c))}
	w.int("t", e.At)
	if e.NS != "" {
		w.str("ns", string(e.NS))
	}
	if c.SessionID != "" {
		w.str("s", c.SessionID)
	}
	if c.Record.CallID != "" {
		r := c.Record
		r.Seq = 0
		e.Record = w.encoded("r", r.MarshalJSON)
		e.meta = metaOf(&c.Record)
	}
	if e.Context != nil {
		w.value("c", e.Context)
	}
	if c.Log.CallID != "" {
		e.encodeLog(w, c)
	}
	if c.Key != nil {
		e.Key = &replyKey{c.Key.Key, c.Key.BodyHash, c.Key.CallID}
		w.value("k", e.Key)
		e.Reply = w.compact("y", c.Reply)
	}
	if c.Content != nil {
		w.value("d", c.Content)
	}
	if len(c.Artifacts) > 0 {
		w.value("a", c.Artifacts)
	}
	if len(c.Tools) > 0 {
		w.value("u", c.Tools)
	}
	if c.Pattern != nil {
		w.value("p", c.Pattern)
	}
	if w.err != nil {
		return nil, nil, fmt.Errorf("call %s cannot be stored: %w", c.Log.CallID, w.err)
	}
	return e, append(w.buf, '}'), nil
}

// entrySize estimates the size of a call's entry in bytes: a fixed part, and its arguments, value and effects, which occur once or
// twice.
func entrySize(c *store.CallCommit) int {
	n := 1792 + 2*(len(c.Outcome.Value)+len(c.Record.Kwargs)) + len(c.Effects) + len(c.Reply)
	for _, a := range c.Record.Args {
		n += 2 * len(a)
	}
	return n
}

// encodeLog appends the log entry with what it brings: the outcome and the effects.
func (e *entry) encodeLog(w *jsonWriter, c *store.CallCommit) {
	w.key("l")
	line, err := appendLog(w.buf, &c.Log, false)
	w.err = errors.Join(w.err, err)
	w.buf = line
	if c.Outcome.Status != "" {
		e.Outcome = w.encoded("o", c.Outcome.MarshalJSON)
	}
	e.Effects = w.compact("e", c.Effects)
}

// appendHead appends the assigned part of a call's entry, with the opening brace and a comma behind it.
func (e *entry) appendHead(b []byte) []byte {
	w := jsonWriter{buf: append(b, '{')}
	if e.Seq > 0 {
		w.int("q", int64(e.Seq))
	}
	if e.Counters != ([5]int64{}) {
		w.ints("n", e.Counters[:])
	}
	if len(e.Revisions) > 0 {
		w.ints("v", e.Revisions)
	}
	if len(w.buf) > len(b)+1 {
		w.buf = append(w.buf, ',')
	}
	return w.buf
}
