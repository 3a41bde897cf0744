// Package store defines what recurgentd stores and what it guarantees about that data. CommitCall, the central
// operation, writes everything that a call leaves behind or nothing, and an acknowledged commit survives a kill of the
// process and a power cut. A session's history is ordered and gapless. An artifact's counters equal the sum of the
// acknowledged commits. The cost of an operation does not grow with the amount of stored data. Package storetest checks
// these guarantees for every implementation: package disk, package postgres and, for tests, Memory in this package,
// which keeps nothing once the process ends.
//
// Package store knows nothing about HTTP, models, the meaning of contracts or how programs run. The interface exposes
// neither paths nor files, so a networked store can implement it. It offers revisions for compare-and-swap, a change
// feed for caches, and leases for forging.
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

// Errors that a Store returns, usually wrapped. Compare them with errors.Is.
var (
	ErrNotFound = errors.New("not found")
	ErrExists   = errors.New("exists already")
	ErrConflict = errors.New("changed meanwhile")          // a revision did not match
	ErrReadOnly = errors.New("the store cannot write now") // full disk or failed fsync; reads still work
	ErrInUse    = errors.New("in use by another process")
	ErrGone     = errors.New("deleted or expired")
	ErrFull     = errors.New("no room left") // for a file's bytes; other writes still work
	ErrTooMany  = errors.New("the maximum number is reached")
	ErrDamaged  = errors.New("the stored data is damaged") // a file's bytes differ from those that were stored

	// ErrAway means that a remote store cannot be reached or does not answer. It matches ErrReadOnly, but reads fail
	// too.
	ErrAway = fmt.Errorf("%w: the database does not answer", ErrReadOnly)
)

// MaxTrail is the maximum number of audit entries that are read at once, from the newest on.
const MaxTrail = 1 << 20

// Store is safe for concurrent use.
type Store interface {
	// Namespace returns the content of the namespace with that name. A namespace exists from its first write on; until
	// then reads find nothing. It returns an error if the name is not valid or the content cannot be read.
	Namespace(name agent.Namespace) (Namespace, error)
	Namespaces
	Replicas

	// Ready returns nil if the store accepts writes, otherwise the reason why it does not.
	Ready() error
	// Settled waits until everything that readers have seen so far is as durable as its commits promise. Readers see a
	// call as soon as it has its place in the order of commits, which is before it is durable. Code that shows others
	// what it read calls Settled first. It returns ErrReadOnly if the store could not make the data durable.
	Settled() error
	// Stats returns figures for metrics. It is cheap.
	Stats() Stats
	// Watch calls changed for every change after the cursor, in feed order, until stop is called. The cursor "" stands
	// for now. Changes are those of artifacts, tools, connections, the policy, calls, candidates and namespaces; see
	// the kinds of Change. changed must be quick and must not use the store. ErrGone means that the feed does not reach
	// back to the cursor: the caller must watch from now on and read everything again.
	Watch(from Cursor, changed func(Change)) (stop func(), err error)
	// Close stops accepting writes and writes everything out until ctx ends. The next open replays what is not in place
	// by then. Close may be called twice.
	Close(ctx context.Context) error
}

// Namespace is the content of one namespace. Nothing of another namespace can be read or changed through it. It is safe
// for concurrent use. Returned values are shared and must not be changed. Methods that write return after the change is
// durable. An error means that nothing changed, with two exceptions: the context ended while the change was being
// written, or the sync of a call failed (ErrReadOnly). Such a call is kept if the store recovers.
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

// Sessions stores sessions with their contexts and histories.
type Sessions interface {
	// CreateSession stores a new session with its context. ErrExists if the id is taken.
	CreateSession(ctx context.Context, s agent.Session, sessionContext map[string]json.RawMessage) error
	// Session returns a session. ErrNotFound.
	Session(ctx context.Context, id string) (agent.Session, error)
	// ListSessions returns at most limit sessions by id, newest first, because ids sort by age. It starts after the id
	// after; "" means the start.
	ListSessions(ctx context.Context, after string, limit int) ([]agent.Session, error)
	// DeleteSession deletes the session and erases its arguments and values everywhere: in the log, effects, fixtures,
	// patterns and the bodies of audit entries that name it in SessionID. audit is the entry for the deletion; nil
	// means none. ErrNotFound.
	DeleteSession(ctx context.Context, id string, audit *agent.AuditEntry) error

	// Context returns the values of the session's context by top-level key. The map belongs to the caller; its values
	// are shared.
	Context(ctx context.Context, sessionID string) (map[string]json.RawMessage, error)
	// ChangeContext changes the context outside of a call and returns the whole context. fence is as in CallCommit:
	// ErrFenced. audit is the entry for the change; nil means none.
	ChangeContext(ctx context.Context, sessionID string, fence int64, c agent.ContextChange,
		audit *agent.AuditEntry) (map[string]json.RawMessage, error)

	// History returns a page of a session's records. ErrNotFound.
	History(ctx context.Context, sessionID string, q HistoryQuery) (HistoryPage, error)
}

// HistoryQuery selects records. The zero value selects the oldest 100, in ascending order.
type HistoryQuery struct {
	After int // a seq: records above it when ascending, below it when Desc (0: from the end)
	Limit int // 0 means 100
	Scan  int // maximum number of records read for a page, which may then end early with Next set; 0 means no limit
	// Bytes is the maximum size of a page's records. A page always holds its first record, however large, and may end
	// early with Next set. 0 means no limit.
	Bytes  int
	Desc   bool
	Depth0 bool // depth-0 records only

	Method, Status, Role string    // exact matches; "" matches any
	Since, Until         time.Time // [Since, Until); zero means unbounded
}

// HistoryPage is a page of a session's history.
type HistoryPage struct {
	Records []json.RawMessage // one record each, as stored
	Next    int               // the After of the next page; 0 on the last page
	Size    int               // number of records in the session
}

// Calls commits calls and returns them.
type Calls interface {
	// CommitCall makes all of c durable or nothing. Before writing it sets Record.Seq, Log.ConversationHistorySize and
	// Log's artifact counters in c. Concurrent commits share one write to disk. ErrNotFound if the session does not
	// exist; ErrFenced if it is not owned under c.Fence; ErrConflict if an artifact change was decided on another state
	// of its artifact, see agent.ArtifactChange.Decided.
	CommitCall(ctx context.Context, c *CallCommit) error

	// Call returns a committed call. ErrNotFound.
	Call(ctx context.Context, callID string) (Call, error)
	// Previews returns the beginnings of the values of these calls by call id, as Preview makes them. Calls that do not
	// exist, have no value, or whose value has expired are left out.
	Previews(ctx context.Context, callIDs []string) (map[string]string, error)
	// ListCalls returns log entries, newest first, starting after the call q.Before.
	ListCalls(ctx context.Context, q CallQuery) ([]agent.LogEntry, error)
	// CallsAfter returns at most limit log entries that follow the call after, oldest first; "" means the start of the
	// log. Like CallQuery.Stable, it leaves out calls before which another call may still appear. ErrNotFound if the
	// log does not hold the call.
	CallsAfter(ctx context.Context, after string, limit int) ([]agent.LogEntry, error)
	// Replay returns the reply that was committed under the key. ErrNotFound if there is none.
	Replay(ctx context.Context, key string) (Idempotent, error)
	// Content returns a stored result. ErrNotFound if it is missing or was evicted.
	Content(ctx context.Context, ref string) (json.RawMessage, error)
	// Patterns returns a role's pattern events, oldest first, at most PatternsKept.
	Patterns(ctx context.Context, role string) ([]agent.PatternEvent, error)
	// Evidence returns the aggregated outcomes of a method's calls. They outlive the call log. Without calls the
	// evidence is empty.
	Evidence(ctx context.Context, role, method string) (agent.MethodEvidence, error)
	// AllEvidence returns the evidence of methods with a remarkable call or a verdict, sorted by role and method.
	AllEvidence(ctx context.Context) ([]agent.MethodEvidence, error)
}

// CallCommit is everything that a call leaves behind. Zero fields store nothing.
type CallCommit struct {
	SessionID string
	Record    agent.Record
	Context   *agent.ContextChange
	Artifacts []agent.ArtifactChange
	Tools     []ToolChange
	Pattern   *agent.PatternEvent
	Log       agent.LogEntry
	Outcome   agent.Outcome   // the whole outcome, kept for Policy.Retention.ValueHours
	Reply     json.RawMessage // the client's reply, kept under Key
	Effects   json.RawMessage // the effect journal, opaque to the store
	Content   *Content
	Key       *Idempotent // its Reply is taken from the field Reply above
	Files     []NewFile   // files that the call's value refers to

	// Fence is the epoch under which the call's replica owns the session. 0 skips the check.
	Fence int64
	// Repeated marks a commit whose earlier CommitCall may have succeeded without an acknowledgement. If it did, this
	// one changes nothing, sets in c what the first one assigned, and returns nil, whatever Fence is. Log.CallID
	// identifies the call.
	Repeated bool

	// Ordered, if not nil, is called by CommitCall before it returns, once the call has its place in the order of
	// commits and readers see it. The call may not be durable yet, but no later commit can outlive it: if it is lost,
	// so are all commits that could have read it.
	Ordered func()
}

// Content is a result kept for follow-up calls under its reference. The store keeps Value without copying it, so it
// must not change.
type Content struct {
	Ref   string          `json:"ref"` // content:<hex>
	Value json.RawMessage `json:"value"`
}

// Idempotent is a reply kept under a client's key for KeyLife.
type Idempotent struct {
	Key      string          `json:"key"`       // made by the caller from principal, session and the client's key
	BodyHash string          `json:"body_hash"` // hash of the request that the reply answers
	CallID   string          `json:"call_id"`
	Reply    json.RawMessage `json:"reply"`
}

// Call is a committed call as it can be read back.
type Call struct {
	Log     agent.LogEntry
	Outcome *agent.Outcome  // nil if its value has expired
	Effects json.RawMessage // nil if there are none or they have expired
}

// Artifacts stores programs.
type Artifacts interface {
	// Artifact returns the artifact. ErrNotFound if there is none, or if the stored one was corrupt and has been moved
	// aside.
	Artifact(ctx context.Context, role, method string) (*agent.Artifact, error)
	// ChangeArtifact applies an operator's change together with its audit entry, if the artifact has that revision, and
	// returns the changed artifact. ErrNotFound, ErrConflict.
	ChangeArtifact(ctx context.Context, revision int64, c agent.ArtifactChange,
		audit *agent.AuditEntry) (*agent.Artifact, error)
	// ListArtifacts returns a role's artifacts, sorted by method.
	ListArtifacts(ctx context.Context, role string) ([]*agent.Artifact, error)
	// Program returns the source with that checksum ("sha256:<hex>"). It need not be current, but an artifact or the
	// call log must still refer to it. ErrNotFound.
	Program(ctx context.Context, checksum string) (string, error)
}

// Registry stores the registered tools, the policy and the audit trail.
type Registry interface {
	// Tool returns the registered tool of the role. ErrNotFound.
	Tool(ctx context.Context, role string) (agent.Tool, error)
	// ListTools returns at most limit tools, sorted by role, starting after the role after.
	ListTools(ctx context.Context, after string, limit int) ([]agent.Tool, error)
	// RankTools returns at most limit registered tools for a prompt, best first: tools in use before stale ones, then
	// by success rate times recency, then by lifecycle state. Its cost does not grow with the number of tools.
	RankTools(ctx context.Context, now time.Time, limit int) ([]RankedTool, error)
	// RankedTool returns a registered tool with its rank at that time. ErrNotFound.
	RankedTool(ctx context.Context, role string, now time.Time) (RankedTool, error)
	// PutTool registers the role or replaces its contracts. ErrConflict if the stored tool has another revision; 0
	// means that the tool must be new.
	PutTool(ctx context.Context, t agent.Tool, revision int64, audit *agent.AuditEntry) (agent.Tool, error)

	// Policy returns the policy and its revision, which grows with each change. Revision 0 is the default policy.
	Policy(ctx context.Context) (p agent.Policy, revision int64, err error)
	// SetPolicy replaces the policy if it has that revision. ErrConflict if it was changed since it was read.
	SetPolicy(ctx context.Context, p agent.Policy, revision int64, audit *agent.AuditEntry) error

	// Audit returns audit entries, newest first.
	Audit(ctx context.Context, q AuditQuery) ([]agent.AuditEntry, error)
	// AuditHead returns the end of the trail's chain; see package chain. Its number is 0 while no entry is linked.
	AuditHead(ctx context.Context) (chain.Head, error)
	// AppendAudit adds an entry and links it into the chain, in the order of the commits.
	AppendAudit(ctx context.Context, e agent.AuditEntry) error
}

// RankedTool is a tool with the figures that ranked it.
type RankedTool struct {
	Tool    agent.Tool
	Methods []string // those with an artifact, sorted
	Score   float64
	State   string // the best lifecycle state among its artifacts; "" if it has none
}

// Maintenance archives, restores, removes and expires.
type Maintenance interface {
	// Stale lists tools and artifacts that have not been used since before.
	Stale(ctx context.Context, before time.Time) ([]Target, error)
	// Archive takes the targets out of use and keeps them byte for byte; Restore brings them back. Remove does the same
	// as Archive, but after DeletedLife its targets cannot be restored any more, and the next Expire frees their bytes.
	// An empty Method means the tool and all its artifacts. For a target with Restored set, Archive takes away only the
	// program that this operation restored below a newer one; ErrConflict if that program answers calls now.
	//
	// Restore brings back the latest archived version. If the target's From or the audit entry's Undoes names an
	// operation, it brings back the version that this operation took away; ErrNotFound if that one was restored already
	// or is gone. If a newer artifact has the name, the program comes back below it, as agent.Artifact.RestoreBelow
	// does, and the archive keeps the version. A newer tool stays as it is. ErrExists if a target brings nothing back.
	Archive(ctx context.Context, targets []Target, audit agent.AuditEntry) error
	Restore(ctx context.Context, targets []Target, audit agent.AuditEntry) error
	Remove(ctx context.Context, targets []Target, audit agent.AuditEntry) error
	// Archived returns nil if the archive holds what an operation took away from each target: the one of that audit
	// entry or, if set, of the target's From. Otherwise ErrNotFound names the first missing target, which was restored
	// or is gone. An empty Method means the tool alone.
	Archived(ctx context.Context, targets []Target, auditID string) error
	// Expire applies the policy's retention and ends what was removed DeletedLife ago. It returns the number of deleted
	// sessions.
	Expire(ctx context.Context, now time.Time) (int, error)
}

// An Exporter can write an archive while the store is in use. Memory does not implement it.
type Exporter interface {
	// Export writes an archive of the namespace only, or of all namespaces if only is "". ErrNotFound if the namespace
	// does not exist.
	Export(ctx context.Context, w io.Writer, only agent.Namespace) error
}

// Stats are figures of all namespaces of a store together. Counters start when the store is opened; gauges are current.
type Stats struct {
	Commits, Fsyncs, JournalBytes, Quarantined int64
	CheckpointLagEntries                       int64 // gauge: journal entries that are not in the files yet
	Sessions, Tools                            int64 // gauges

	Artifacts map[string]int // gauge: by lifecycle state
	Stored    Bytes          // gauge
}
