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
