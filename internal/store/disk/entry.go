package disk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// entry is one commit in the journal: what was asked for, and the few figures that the store assigned. Replaying
// entries in order onto the files gives what the files would be. The keys are short because every call writes them.
type entry struct {
	// Assigned when the entry is written.
	Seq       int      `json:"q,omitempty"` // of the record
	Counters  [5]int64 `json:"n,omitzero"`  // the log's artifact counters
	Revisions []int64  `json:"v,omitempty"` // of each changed artifact, afterwards

	At      int64                `json:"t"` // Unix milliseconds
	Session string               `json:"s,omitempty"`
	Record  json.RawMessage      `json:"r,omitempty"` // with "seq":0
	Context *agent.ContextChange `json:"c,omitempty"`
	Log     json.RawMessage      `json:"l,omitempty"` // compact: see appendLog
	Outcome json.RawMessage      `json:"o,omitempty"`
	Effects json.RawMessage      `json:"e,omitempty"`
	Reply   json.RawMessage      `json:"y,omitempty"`
	Key     *replyKey            `json:"k,omitempty"`
	Content *store.Content       `json:"d,omitempty"`

	Artifacts []agent.ArtifactChange `json:"a,omitempty"`
	Tools     []store.ToolChange     `json:"u,omitempty"`
	Pattern   *agent.PatternEvent    `json:"p,omitempty"`

	Create *created          `json:"create,omitempty"`
	Delete []string          `json:"delete,omitempty"` // sessions
	Put    *agent.Tool       `json:"tool,omitempty"`   // as it is from now on
	Policy *agent.Policy     `json:"policy,omitempty"`
	Audit  *agent.AuditEntry `json:"audit,omitempty"`
	Move   *move             `json:"move,omitempty"`

	*planned `json:"-"`
}

type replyKey struct {
	Key      string `json:"k"`
	BodyHash string `json:"h,omitempty"`
	CallID   string `json:"c,omitempty"`
}

type created struct {
	Session agent.Session              `json:"session"`
	Context map[string]json.RawMessage `json:"context,omitempty"`
}

// move takes tools and artifacts away, or back.
type move struct {
	Kind    string         `json:"kind"` // archive, restore, remove
	Targets []store.Target `json:"targets"`
	Stamp   string         `json:"stamp,omitempty"` // of the archive's files
	Files   []string       `json:"files,omitempty"` // of the archive, that come back
}

// planned is what the sequencer works out for an entry before it is written, to be put in place afterwards.
type planned struct {
	lsn       uint64
	session   *session
	record    []byte // the line of history.jsonl, without its end
	meta      recordMeta
	log       agent.LogEntry
	artifacts []*artifact
	tools     []*agent.Tool
	restored  []restored
	away      []archiving
	skipLog   bool // on recovery: the session is deleted further on
}

// recordMeta is what queries ask of a record.
type recordMeta struct {
	CallID         string `json:"call_id"`
	Seq            int    `json:"seq"`
	Timestamp      string `json:"timestamp"`
	Role           string `json:"role"`
	MethodName     string `json:"method_name"`
	Depth          int    `json:"depth"`
	OutcomeSummary struct {
		Status string `json:"status"`
	} `json:"outcome_summary"`
}

func (m *recordMeta) match(q *store.HistoryQuery) bool {
	r := agent.Record{Depth: m.Depth, MethodName: m.MethodName, Role: m.Role, Timestamp: m.Timestamp}
	r.OutcomeSummary.Status = m.OutcomeSummary.Status
	return q.Match(&r)
}

func (e *entry) at() time.Time { return time.UnixMilli(e.At).UTC() }

var seqZero = []byte(`"seq":0,`)

// withSeq returns the record's line with its seq in place. The record was encoded with seq 0; the first match is the
// key, as only the call id stands before it and an id's quotes are escaped.
func withSeq(record []byte, seq int) ([]byte, error) {
	i := bytes.Index(record, seqZero)
	if i < 0 {
		return nil, fmt.Errorf("a record without seq: %.80s", record)
	}
	i += len(seqZero) - 2
	line := make([]byte, 0, len(record)+8)
	line = append(line, record[:i]...)
	line = strconv.AppendInt(line, int64(seq), 10)
	return append(line, record[i+1:]...), nil
}

// encodeCall makes the entry of a call and its bytes but for the assigned figures, which stand before them. It fails,
// before anything is changed, when something in c is not JSON.
func encodeCall(c *store.CallCommit, now time.Time) (*entry, []byte, error) {
	e := &entry{At: now.UnixMilli(), Session: c.SessionID, Context: c.Context, Artifacts: c.Artifacts, Tools: c.Tools, Pattern: c.Pattern, Content: c.Content}
	if c.Context.Empty() {
		e.Context = nil
	}
	b := encoder{buf: make([]byte, 0, 2048)}
	b.buf = append(b.buf, `"t":`...)
	b.buf = strconv.AppendInt(b.buf, e.At, 10)
	if c.SessionID != "" {
		b.key(`"s":`)
		b.buf = appendString(b.buf, c.SessionID)
	}
	if c.Record.CallID != "" {
		r := c.Record
		r.Seq = 0
		e.Record = b.marshal(`"r":`, r.MarshalJSON)
		e.planned = &planned{meta: metaOf(&c.Record)}
	} else {
		e.planned = &planned{}
	}
	if e.Context != nil {
		b.value(`"c":`, e.Context)
	}
	if c.Log.CallID != "" {
		b.key(`"l":`)
		line, err := appendLog(b.buf, &c.Log, false)
		if err != nil {
			b.err = errors.Join(b.err, err)
		} else {
			b.buf = line
		}
		if c.Outcome.Status != "" {
			e.Outcome = b.marshal(`"o":`, c.Outcome.MarshalJSON)
		}
		e.Effects = b.raw(`"e":`, c.Effects)
	}
	if c.Key != nil {
		e.Key = &replyKey{c.Key.Key, c.Key.BodyHash, c.Key.CallID}
		b.value(`"k":`, e.Key)
		e.Reply = b.raw(`"y":`, c.Reply)
	}
	if c.Content != nil {
		b.value(`"d":`, c.Content)
	}
	if len(c.Artifacts) > 0 {
		b.value(`"a":`, c.Artifacts)
	}
	if len(c.Tools) > 0 {
		b.value(`"u":`, c.Tools)
	}
	if c.Pattern != nil {
		b.value(`"p":`, c.Pattern)
	}
	if b.err != nil {
		return nil, nil, fmt.Errorf("call %s cannot be stored: %w", c.Log.CallID, b.err)
	}
	e.log = c.Log
	return e, append(b.buf, '}'), nil
}

func metaOf(r *agent.Record) recordMeta {
	m := recordMeta{CallID: r.CallID, Timestamp: r.Timestamp, Role: r.Role, MethodName: r.MethodName, Depth: r.Depth}
	m.OutcomeSummary.Status = r.OutcomeSummary.Status
	return m
}

// head is the assigned part of a call's entry, with the opening brace.
func (e *entry) head(b []byte) []byte {
	b = append(b, '{')
	if e.Seq > 0 {
		b = append(b, `"q":`...)
		b = strconv.AppendInt(b, int64(e.Seq), 10)
		b = append(b, ',')
	}
	if e.Counters != ([5]int64{}) {
		b = append(b, `"n":[`...)
		for _, n := range e.Counters {
			b = append(strconv.AppendInt(b, n, 10), ',')
		}
		b[len(b)-1] = ']'
		b = append(b, ',')
	}
	if len(e.Revisions) > 0 {
		b = append(b, `"v":[`...)
		for _, n := range e.Revisions {
			b = append(strconv.AppendInt(b, n, 10), ',')
		}
		b[len(b)-1] = ']'
		b = append(b, ',')
	}
	return b
}

// encoder appends members to an object; the first error stays.
type encoder struct {
	buf []byte
	err error
}

func (b *encoder) key(key string) {
	b.buf = append(b.buf, ',')
	b.buf = append(b.buf, key...)
}

func (b *encoder) value(key string, v any) {
	b.marshal(key, func() ([]byte, error) { return json.Marshal(v) })
}

func (b *encoder) marshal(key string, encode func() ([]byte, error)) json.RawMessage {
	v, err := encode()
	if err != nil {
		b.err = errors.Join(b.err, err)
		return nil
	}
	b.key(key)
	b.buf = append(b.buf, v...)
	return v
}

// raw appends JSON of unknown origin, checked and without white space.
func (b *encoder) raw(key string, v json.RawMessage) json.RawMessage {
	if v == nil || b.err != nil {
		return nil
	}
	var out bytes.Buffer
	out.Grow(len(v))
	if err := json.Compact(&out, v); err != nil {
		b.err = err
		return nil
	}
	b.key(key)
	b.buf = append(b.buf, out.Bytes()...)
	return out.Bytes()
}

// decodeEntry reads an entry of the journal. What it returns shares data.
func decodeEntry(data []byte) (*entry, error) {
	e := &entry{planned: &planned{}}
	if err := json.Unmarshal(data, e); err != nil {
		return nil, err
	}
	if e.Record != nil {
		if err := json.Unmarshal(e.Record, &e.meta); err != nil {
			return nil, err
		}
	}
	if e.Log != nil {
		if err := json.Unmarshal(e.Log, &e.log); err != nil {
			return nil, err
		}
	}
	return e, nil
}
