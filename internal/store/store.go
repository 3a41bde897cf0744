// Package store defines what recurgentd stores and the promises about it. Its core is one operation per call: CommitCall
// is all or nothing, and what it has acknowledged survives a kill and a power cut. A session's history is gapless and in
// order; an artifact's counters equal the sum of the acknowledged commits; costs do not grow with what is stored.
// storetest states these promises as tests that every implementation passes: Memory here, package disk and package postgres.
//
// It knows nothing of HTTP, of models, of what contracts mean or of running programs. The interface names no paths and
// no files, so that a networked store can implement it: revisions for compare-and-swap, a change feed for caches, leases
// for forging.
package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/chain"
)

// Errors that callers ask for with errors.Is.
var (
	ErrNotFound = errors.New("not found")
	ErrExists   = errors.New("exists already")
	ErrConflict = errors.New("changed meanwhile")          // a revision did not match
	ErrReadOnly = errors.New("the store cannot write now") // full disk, failed fsync: reads go on
	ErrInUse    = errors.New("in use by another process")
	ErrGone     = errors.New("deleted or expired")
	ErrFull     = errors.New("no room left") // for a file's bytes; everything else goes on
	ErrTooMany  = errors.New("there are as many as there can be")
	ErrDamaged  = errors.New("what is stored is damaged") // the bytes of a file are not those that came

	// ErrAway is the ErrReadOnly of a store elsewhere that cannot be reached or does not answer: reads fail, too.
	ErrAway = fmt.Errorf("%w: the database does not answer", ErrReadOnly)
)

// MaxTrail bounds how much of the audit trail is read at once: its newest entries.
const MaxTrail = 1 << 20

// Store is safe for concurrent use.
type Store interface {
	// Namespace returns what the namespace of that name holds. It exists from its first write on; until then reads find
	// nothing. The error says that the name is not valid, or that what it holds cannot be read.
	Namespace(name agent.Namespace) (Namespace, error)
	Namespaces
	Replicas

	// Ready returns nil, or why the store cannot take writes now.
	Ready() error
	// Settled returns when everything that readers have been shown so far is as durable as its commits promise. Readers see a call from its
	// place in the order on, which is before it is durable: who shows others what it read waits here first. The error is ErrReadOnly.
	Settled() error
	// Stats are figures for metrics; cheap.
	Stats() Stats
	// Watch calls changed for every change behind the cursor ("" for those from now on), in the order of the feed, until stop is called: of an
	// artifact, a tool, a connection or the policy, for calls, candidates and erased namespaces. changed must be quick, and must not use the store.
	// ErrGone: the feed does not reach back to the cursor; who watches from now on has to read everything anew.
	Watch(from Cursor, changed func(Change)) (stop func(), err error)
	// Close takes no more writes and writes everything out, until ctx ends: what is not in its place then is replayed
	// when the store is opened again. It may be called twice.
	Close(ctx context.Context) error
}

// Namespace is everything that one namespace holds: nothing of another can be read or changed through it. It is safe
// for concurrent use. Values that it returns are shared: they must not be changed. Methods that write return after the
// change is durable; an error means that nothing was changed, except when the context ended while the change was being
// written, and for a call whose sync failed (ErrReadOnly): that is kept if the store recovers.
type Namespace interface {
	Sessions
	Owners
	Leases
	Calls
	Artifacts
	Registry
	Connections
	Maintenance
	Files
	Storage
	Spending
}

// Sessions holds the sessions, their contexts and their histories.
type Sessions interface {
	CreateSession(ctx context.Context, s agent.Session, sessionContext map[string]json.RawMessage) error // ErrExists
	Session(ctx context.Context, id string) (agent.Session, error)                                       // ErrNotFound
	// ListSessions returns sessions by id, which is by age, newest first, after the id after ("" for the start).
	ListSessions(ctx context.Context, after string, limit int) ([]agent.Session, error)
	// DeleteSession erases the session and its arguments and values everywhere: log, effects, fixtures, patterns, and the bodies of audit
	// entries that name it in SessionID. audit is the entry of the deletion, nil for none.
	DeleteSession(ctx context.Context, id string, audit *agent.AuditEntry) error // ErrNotFound

	// Context returns the session's context by top-level key: the caller's own map of shared values.
	Context(ctx context.Context, sessionID string) (map[string]json.RawMessage, error)
	// ChangeContext changes it outside a call and returns the whole. fence is as in CallCommit: ErrFenced. audit is the entry of the change, nil for none.
	ChangeContext(ctx context.Context, sessionID string, fence int64, c agent.ContextChange,
		audit *agent.AuditEntry) (map[string]json.RawMessage, error)

	// History pages through a session's records.
	History(ctx context.Context, sessionID string, q HistoryQuery) (HistoryPage, error)
}

// HistoryQuery selects records. The zero value is the oldest 100, ascending.
type HistoryQuery struct {
	After int // seq: greater than it when ascending, less than it when Desc (0: from the end)
	Limit int // 0 means 100
	Scan  int // records read for a page, at most: the page may end, with Next, before it is full; 0 for no bound
	// of a page's records, at most, unless its first one alone is larger: it may end before it is full, too; 0 for no bound
	Bytes  int
	Desc   bool
	Depth0 bool // depth-0 records only

	Method, Status, Role string    // equal to; "" for any
	Since, Until         time.Time // zero for any
}

// HistoryPage is a part of a history.
type HistoryPage struct {
	Records []json.RawMessage // each one record, as stored
	Next    int               // the After of the next page; 0 when this is the last
	Size    int               // records in the session
}

// Calls takes and answers calls.
type Calls interface {
	// CommitCall makes all of c durable or nothing. It assigns Record.Seq and, with it, Log.ConversationHistorySize
	// and Log's artifact counters, before it writes; they are set in c when it returns. Concurrent commits share one
	// write to disk. ErrNotFound when the session is gone; ErrFenced when it is not owned under c.Fence; ErrConflict when an artifact change was
	// decided on another state of its artifact: see agent.ArtifactChange.Decided.
	CommitCall(ctx context.Context, c *CallCommit) error

	// Call returns one committed call. ErrNotFound.
	Call(ctx context.Context, callID string) (Call, error)
	// Previews returns the beginnings of the values of these calls by their ids, as Preview makes them. It leaves out calls without a value, those
	// whose value has expired and those that are not there.
	Previews(ctx context.Context, callIDs []string) (map[string]string, error)
	// ListCalls returns log entries, newest first, that end before the call id before ("" for the newest).
	ListCalls(ctx context.Context, q CallQuery) ([]agent.LogEntry, error)
	// CallsAfter returns at most limit log entries behind that of the call after ("" for the log's first ones), oldest first. It leaves out calls
	// before which another one may still appear, as CallQuery.Stable does. ErrNotFound when the log does not hold the call.
	CallsAfter(ctx context.Context, after string, limit int) ([]agent.LogEntry, error)
	// Replay returns the reply that was committed under the key, ErrNotFound when there is none.
	Replay(ctx context.Context, key string) (Idempotent, error)
	// Content returns a stored result, ErrNotFound when it is missing or evicted.
	Content(ctx context.Context, ref string) (json.RawMessage, error)
	// Patterns returns a role's pattern events, oldest first, at most 50.
	Patterns(ctx context.Context, role string) ([]agent.PatternEvent, error)
	// Evidence returns the aggregated outcomes of a method's calls, which outlive the call log. Without any it is empty.
	Evidence(ctx context.Context, role, method string) (agent.MethodEvidence, error)
	// AllEvidence returns the evidence of the methods with a remarkable call or a verdict, sorted by role and method.
	AllEvidence(ctx context.Context) ([]agent.MethodEvidence, error)
}

// CallCommit is everything a call leaves behind. Zero fields leave nothing.
type CallCommit struct {
	SessionID string
	Record    agent.Record
	Context   *agent.ContextChange
	Artifacts []agent.ArtifactChange
	Tools     []ToolChange
	Pattern   *agent.PatternEvent
	Log       agent.LogEntry
	Outcome   agent.Outcome   // the whole outcome, kept for Policy.Retention.ValueHours
	Reply     json.RawMessage // what the client gets, kept under Idempotency
	Effects   json.RawMessage // the effect journal, opaque to the store
	Content   *Content
	Key       *Idempotent // Reply is taken from the field above
	Files     []NewFile   // that its value refers to

	// Fence is the epoch under which the call's replica owns the session; 0 is not compared.
	Fence int64
	// Repeated says that a CommitCall of this call may have succeeded: nobody knows whether it arrived. If it did, this one changes nothing,
	// assigns what the first one assigned, and returns nil, whatever Fence is. Log.CallID names the call.
	Repeated bool

	// Ordered is called by CommitCall, before it returns, once the call has its place in the order of commits and readers see it: what reads
	// it now and is committed later is lost with it if it is lost. nil: nobody asks.
	Ordered func()
}

// Content is a result kept for follow-ups, under its reference. The store keeps the value itself: it must not change any more.
type Content struct {
	Ref   string          `json:"ref"` // content:<hex>
	Value json.RawMessage `json:"value"`
}

// Idempotent is a reply kept under a client's key for 24 hours.
type Idempotent struct {
	Key      string          `json:"key"`       // scoped by the caller: principal, session, key
	BodyHash string          `json:"body_hash"` // of the request it answers
	CallID   string          `json:"call_id"`
	Reply    json.RawMessage `json:"reply"`
}

// Call is a committed call, as it can be read again.
type Call struct {
	Log     agent.LogEntry
	Outcome *agent.Outcome  // nil when its value has expired
	Effects json.RawMessage // nil when there are none or they have expired
}

// Artifacts holds the programs.
type Artifacts interface {
	// Artifact returns the artifact, ErrNotFound when there is none, or when what is stored of it was corrupt: it
	// has then been moved aside.
	Artifact(ctx context.Context, role, method string) (*agent.Artifact, error)
	// ChangeArtifact applies an operator's change, compared with the revision, together with its audit entry, and
	// returns the artifact. ErrNotFound, ErrConflict.
	ChangeArtifact(ctx context.Context, revision int64, c agent.ArtifactChange,
		audit *agent.AuditEntry) (*agent.Artifact, error)
	// ListArtifacts returns a role's artifacts by method.
	ListArtifacts(ctx context.Context, role string) ([]*agent.Artifact, error)
	// Program returns the source with that checksum ("sha256:<hex>"), current or not, for as long as an artifact or
	// the call log refers to it. ErrNotFound.
	Program(ctx context.Context, checksum string) (string, error)
}

// Registry holds the known tools, the policy and the audit trail.
type Registry interface {
	Tool(ctx context.Context, role string) (agent.Tool, error)
	// ListTools returns tools by role after the role after.
	ListTools(ctx context.Context, after string, limit int) ([]agent.Tool, error)
	// RankTools returns at most limit known tools for a prompt, best first by the rank of the last score change:
	// success rate times recency, lifecycle first. Its cost does not grow with the number of tools.
	RankTools(ctx context.Context, now time.Time, limit int) ([]RankedTool, error)
	// RankedTool returns a known tool with its rank at that time. ErrNotFound when there is none.
	RankedTool(ctx context.Context, role string, now time.Time) (RankedTool, error)
	// PutTool registers the role or changes its contract. ErrConflict when the revision is not the tool's
	// (0: the tool must be new).
	PutTool(ctx context.Context, t agent.Tool, revision int64, audit *agent.AuditEntry) (agent.Tool, error)

	// Policy returns the policy with its revision, which grows with each change: 0 is that of the default policy, which nobody changed.
	Policy(ctx context.Context) (p agent.Policy, revision int64, err error)
	// SetPolicy replaces the policy that has the revision. ErrConflict when it has another: somebody changed it since it was read.
	SetPolicy(ctx context.Context, p agent.Policy, revision int64, audit *agent.AuditEntry) error

	// Audit returns entries, newest first.
	Audit(ctx context.Context, q AuditQuery) ([]agent.AuditEntry, error)
	// AuditHead returns where the trail's chain ends: see package chain. Its number is 0 when no entry is linked.
	AuditHead(ctx context.Context) (chain.Head, error)
	// AppendAudit adds an entry. The store links it, as it does those of other operations, in the order of the commits.
	AppendAudit(ctx context.Context, e agent.AuditEntry) error
}

// RankedTool is a tool with the figures that ranked it.
type RankedTool struct {
	Tool    agent.Tool
	Methods []string // with an artifact
	Score   float64
	State   string // the best lifecycle state among its artifacts
}

// Maintenance archives, restores, removes and expires.
type Maintenance interface {
	// Stale lists tools and artifacts not used since before.
	Stale(ctx context.Context, before time.Time) ([]Target, error)
	// Archive moves the targets out of the way, byte for byte; Restore brings them back. Remove does what Archive does, and DeletedLife later they
	// are gone for good: nothing restores them, and the next Expire takes their bytes.
	// An empty Method means the tool and all its artifacts. Of a target with Restored, Archive takes away what that operation brought back below a newer
	// program; ErrConflict where it is the current program by now.
	//
	// Restore brings back the latest archived version or, if the target's From or the audit entry's Undoes names an operation, the version that this
	// operation took away; ErrNotFound if that was restored already, or is gone. Below a newer artifact of the name it brings back the program, as
	// agent.Artifact.RestoreBelow does, and the archive keeps the version; a newer tool stays as it is. ErrExists where a target brings nothing back.
	Archive(ctx context.Context, targets []Target, audit agent.AuditEntry) error
	Restore(ctx context.Context, targets []Target, audit agent.AuditEntry) error
	Remove(ctx context.Context, targets []Target, audit agent.AuditEntry) error
	// Archived returns ErrNotFound, with the first target of which the archive does not hold what the operation of that audit entry, or of the target's From,
	// moved there: it was restored, or is gone. An empty Method means the tool alone.
	Archived(ctx context.Context, targets []Target, auditID string) error
	// Expire applies the policy's retention, and ends what was removed DeletedLife ago. It returns how many sessions went.
	Expire(ctx context.Context, now time.Time) (int, error)
}

// An Exporter can write an archive while the store is in use. Memory is none.
type Exporter interface {
	// Export writes an archive of everything or, where only names a namespace, of that one: of what it holds, and of nothing else. ErrNotFound.
	Export(ctx context.Context, w io.Writer, only agent.Namespace) error
}

// Stats are figures of a store, of all namespaces together, since it was opened; gauges are of now.
type Stats struct {
	Commits, Fsyncs, JournalBytes, Quarantined int64
	CheckpointLagEntries                       int64 // gauge: entries in the journal that the files do not hold yet
	Sessions, Tools                            int64 // gauges

	Artifacts map[string]int // gauge: by lifecycle state
	Stored    Bytes          // gauge
}
