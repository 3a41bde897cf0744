package disk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/jsonenc"
	"github.com/recurgentd/recurgentd/internal/store"
)

// entry is one commit in the journal: the requested change, and a few figures that the store assigned. Replaying
// entries in order onto the files yields the files as they would have been. The keys are short because every call
// writes them.
type entry struct {
	// The fields up to Grown are assigned when the entry is planned.
	//
	// Unsure is the first lsn that was not known to be durable when this entry was written. 0 means that all earlier
	// entries were.
	Unsure   uint64   `json:"w,omitempty"`
	Seq      int      `json:"q,omitempty"` // of the record
	Counters [5]int64 `json:"n,omitzero"`  // the log entry's counters of the artifact
	// revision of each changed artifact after the change; 0 means that it was gone
	Revisions []int64 `json:"v,omitempty"`
	// growth that a replay cannot compute; see grow
	Grown []grown `json:"g,omitempty"`

	At      int64                `json:"t"`            // Unix milliseconds
	NS      agent.Namespace      `json:"ns,omitempty"` // "" for the default one
	Session string               `json:"s,omitempty"`
	Record  json.RawMessage      `json:"r,omitempty"` // with "seq":0
	Context *agent.ContextChange `json:"c,omitempty"`
	Log     json.RawMessage      `json:"l,omitempty"` // compact JSON: see encodeShortLog
	Outcome json.RawMessage      `json:"o,omitempty"`
	Effects json.RawMessage      `json:"e,omitempty"`
	Reply   json.RawMessage      `json:"y,omitempty"`
	Key     *replyKey            `json:"k,omitempty"`
	Content *store.Content       `json:"d,omitempty"`

	Artifacts []agent.ArtifactChange `json:"a,omitempty"`
	Tools     []store.ToolChange     `json:"u,omitempty"`
	Pattern   *agent.PatternEvent    `json:"p,omitempty"`

	Create *created          `json:"create,omitempty"`
	Delete []string          `json:"delete,omitempty"` // ids of sessions
	Put    *agent.Tool       `json:"tool,omitempty"`   // the whole tool as it is from now on
	Policy *agent.Policy     `json:"policy,omitempty"`
	Audit  *agent.AuditEntry `json:"audit,omitempty"`
	Move   *move             `json:"move,omitempty"`

	Files     []agent.File `json:"files,omitempty"`
	FilesGone []string     `json:"files_gone,omitempty"` // ids

	Connect    *agent.Connection `json:"connection,omitempty"` // the whole connection as it is from now on
	Disconnect string            `json:"disconnect,omitempty"` // name of a deleted connection

	Make  agent.Namespace `json:"create_namespace,omitempty"`
	Erase agent.Namespace `json:"erase_namespace,omitempty"`
	// tokens that the erased namespace used or had reserved on that day; set with Erase
	Spent int64 `json:"erased_tokens,omitempty"`

	Reserve *agent.Spend `json:"reserve,omitempty"` // the most that a model request can cost
	Settle  *agent.Spend `json:"settle,omitempty"`  // the actual cost of a model request

	*planned `json:"-"`
}

// replyKey is the idempotency key of a call, with what is needed to answer a repeated request.
type replyKey struct {
	Key      string `json:"k"`
	BodyHash string `json:"h,omitempty"`
	CallID   string `json:"c,omitempty"`
}

// created is a new session with its context.
type created struct {
	Session agent.Session              `json:"session"`
	Context map[string]json.RawMessage `json:"context,omitempty"`
}

// move moves tools and artifacts to the archive or back.
type move struct {
	Kind    string         `json:"kind"` // archive or restore; earlier versions also wrote remove, for good
	Targets []store.Target `json:"targets"`
	Stamp   string         `json:"stamp,omitempty"` // ends the names of the archive's files
	Files   []string       `json:"files,omitempty"` // files of the archive that are restored
}

// planned holds what was computed for an entry before it is written, and what is applied afterwards.
type planned struct {
	namespace *namespace
	lsn       uint64
	session   *session
	record    []byte // the line of history.jsonl, without a newline
	meta      recordMeta
	call      *pendingCall // nil for an entry without a call
	artifacts []*artifact
	tools     []*agent.Tool
	restored  []archived
	away      []archived
	skipLog   bool // during replay: the log has the call already

	// For calls: the commit to wait for, and room for what most calls change.
	waits commit
	room  struct {
		artifacts [1]*artifact
		tools     [1]*agent.Tool
		revisions [1]int64
	}
}

// recordMeta holds the members of a record that queries look at.
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

// name returns the namespace of the entry.
func (e *entry) name() agent.Namespace {
	if e.NS == "" {
		return agent.DefaultNamespace
	}
	return e.NS
}

func (e *entry) at() time.Time { return time.UnixMilli(e.At).UTC() }

var seqZero = []byte(`"seq":0,`)

// withSeq returns the line of a record with its seq set. The record was encoded with seq 0. The first match is the key:
// only the call id precedes it, and quotes in an id are escaped.
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

func metaOf(r *agent.Record) recordMeta {
	m := recordMeta{CallID: r.CallID, Timestamp: r.Timestamp, Role: r.Role, MethodName: r.MethodName, Depth: r.Depth}
	m.OutcomeSummary.Status = r.OutcomeSummary.Status
	return m
}

// decodeEntry decodes an entry of the journal. The result refers to data. It refuses names and ids that no store gives.
func decodeEntry(data []byte) (*entry, error) {
	if e := decodeCreation(data); e != nil {
		return e, e.checkNames()
	}
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
		e.call = &pendingCall{}
		if err := json.Unmarshal(e.Log, &e.call.log); err != nil {
			return nil, err
		}
	}
	return e, e.checkNames()
}

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

// decodeCreation decodes an entry that creates a session and has only the usual members, in the order in which they are
// written. After a crash most entries of a journal are of this kind, and package json takes five times as long for one.
// decodeCreation returns nil for any other entry.
func decodeCreation(text []byte) *entry {
	c := cursor{rest: text}
	both := &struct {
		entry
		planned
	}{}
	e := &both.entry
	// Create is kept after decoding, so it is allocated on its own.
	e.planned, e.Create = &both.planned, &created{}
	s := &e.Create.Session
	c.take(`{"t":`)
	e.At = c.number()
	if c.has(`,"ns":`) {
		e.NS = agent.Namespace(c.text())
	}
	c.take(`,"s":`)
	e.Session = c.text()
	c.take(`,"create":{"session":{"id":`)
	if id := c.quoted(); string(id) == e.Session {
		s.ID = e.Session
	} else {
		s.ID = string(id)
	}
	c.take(`,"role":`)
	s.Role = c.text()
	c.take(`,"debug":`)
	s.Debug = c.flag()
	if c.has(`,"owner":`) {
		s.Owner = c.text()
	}
	if c.has(`,"ephemeral":`) {
		s.Ephemeral = c.flag()
	}
	c.take(`,"created_at":`)
	s.CreatedAt = c.time()
	c.take(`,"updated_at":`)
	s.UpdatedAt = c.time()
	c.take(`,"history_size":`)
	s.HistorySize = int(c.number())
	c.take(`,"revision":`)
	s.Revision = c.number()
	c.take(`}}}`)
	if c.bad || len(c.rest) > 0 {
		return nil
	}
	return e
}

// A cursor reads JSON with known members. It sets bad if the text differs from what is expected, even in a way that is
// valid JSON.
type cursor struct {
	rest []byte
	bad  bool
}

// has reports whether the text goes on with want, and skips it if so.
func (c *cursor) has(want string) bool {
	if len(c.rest) < len(want) || string(c.rest[:len(want)]) != want {
		return false
	}
	c.rest = c.rest[len(want):]
	return true
}

// take skips want, or sets bad.
func (c *cursor) take(want string) { c.bad = c.bad || !c.has(want) }

// quoted returns a string of printable ASCII without escapes.
func (c *cursor) quoted() []byte {
	c.take(`"`)
	end := bytes.IndexByte(c.rest, '"')
	if c.bad || end < 0 {
		c.bad = true
		return nil
	}
	s := c.rest[:end]
	for _, b := range s {
		if b < ' ' || b > '~' || b == '\\' {
			c.bad = true
			return nil
		}
	}
	c.rest = c.rest[end+1:]
	return s
}

func (c *cursor) text() string { return string(c.quoted()) }

// number reads a non-negative integer.
func (c *cursor) number() int64 {
	end := 0
	for end < len(c.rest) && c.rest[end] >= '0' && c.rest[end] <= '9' {
		end++
	}
	digits := c.rest[:end]
	n, err := strconv.ParseInt(string(digits), 10, 64)
	c.bad = c.bad || err != nil || end > 1 && digits[0] == '0'
	c.rest = c.rest[end:]
	return n
}

func (c *cursor) flag() bool {
	if c.has("true") {
		return true
	}
	c.take("false")
	return false
}

func (c *cursor) time() (t time.Time) {
	if err := t.UnmarshalText(c.quoted()); err != nil {
		c.bad = true
	}
	return t
}
