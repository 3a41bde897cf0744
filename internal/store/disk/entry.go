package disk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// entry is one commit in the journal: what was asked for, and the few figures that the store assigned. Replaying
// entries in order onto the files gives what the files would be. The keys are short because every call writes them.
type entry struct {
	// Assigned when the entry is planned.
	// first lsn that was not known to be on disk when this was written; 0: all before it were
	Unsure    uint64   `json:"w,omitempty"`
	Seq       int      `json:"q,omitempty"` // of the record
	Counters  [5]int64 `json:"n,omitzero"`  // the log's artifact counters
	Revisions []int64  `json:"v,omitempty"` // of each changed artifact, afterwards
	Grown     []grown  `json:"g,omitempty"`

	At      int64                `json:"t"`            // Unix milliseconds
	NS      agent.Namespace      `json:"ns,omitempty"` // "" for the default one
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

	Files     []agent.File `json:"files,omitempty"`
	FilesGone []string     `json:"files_gone,omitempty"` // ids

	Connect    *agent.Connection `json:"connection,omitempty"` // as it is from now on
	Disconnect string            `json:"disconnect,omitempty"` // the name of a connection that is deleted

	Make  agent.Namespace `json:"create_namespace,omitempty"`
	Erase agent.Namespace `json:"erase_namespace,omitempty"`
	// with Erase: what that one used and had reserved on the same day
	Spent int64 `json:"erased_tokens,omitempty"`

	Reserve *agent.Spend `json:"reserve,omitempty"` // what a model request costs at most
	Settle  *agent.Spend `json:"settle,omitempty"`  // what it cost

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
	Kind    string         `json:"kind"` // archive, restore; remove, for good, of earlier versions
	Targets []store.Target `json:"targets"`
	Stamp   string         `json:"stamp,omitempty"` // of the archive's files
	Files   []string       `json:"files,omitempty"` // of the archive, that come back
}

// planned is what is worked out for an entry before it is written, and applied afterwards.
type planned struct {
	namespace *namespace
	lsn       uint64
	session   *session
	record    []byte // the line of history.jsonl, without its end
	meta      recordMeta
	call      *pendingCall // nil for an entry without a call
	artifacts []*artifact
	tools     []*agent.Tool
	restored  []archived
	away      []archived
	skipLog   bool // on recovery: the session is deleted further on

	// Of a call: what waits for its place, and room for what most calls change.
	waits commit
	room  struct {
		artifacts [1]*artifact
		tools     [1]*agent.Tool
		revisions [1]int64
	}
}

// recordMeta is the part of a record that queries look at.
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

// name is the namespace of the entry.
func (e *entry) name() agent.Namespace {
	if e.NS == "" {
		return agent.DefaultNamespace
	}
	return e.NS
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

func metaOf(r *agent.Record) recordMeta {
	m := recordMeta{CallID: r.CallID, Timestamp: r.Timestamp, Role: r.Role, MethodName: r.MethodName, Depth: r.Depth}
	m.OutcomeSummary.Status = r.OutcomeSummary.Status
	return m
}

// decodeEntry reads an entry of the journal. What it returns shares data.
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
