package api

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/chain"
	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/runtime/catalog"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/runtime/overview"
	"github.com/recurgentd/recurgentd/internal/runtime/predict"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/spend"
	"github.com/recurgentd/recurgentd/internal/runtime/why"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Runtime is what the interface needs from one namespace. Its methods may be called concurrently. They return
// store.ErrNotFound for what does not exist. Packages runtime, operator, predict, files and spend implement and
// document them.
type Runtime interface {
	Sessions
	Shared
}

// Sessions are the methods that reveal data of sessions, which only their owner may see. A method belongs here if owned
// has to restrict it: owned embeds Shared only, so it does not compile without its own version.
type Sessions interface {
	// Session, as all readers do, may return data that is not durable yet: call Settled before showing it.
	Session(ctx context.Context, id string) (agent.Session, error)
	DeleteSession(ctx context.Context, id, actor string) error
	// ListSessions returns a page, and the cursor of the next page or "".
	ListSessions(ctx context.Context, q runtime.SessionQuery) (sessions []agent.Session, next string, err error)
	Context(ctx context.Context, id string) (map[string]json.RawMessage, error)
	PatchContext(ctx context.Context, id string, patch json.RawMessage, actor string) (map[string]json.RawMessage,
		error)
	History(ctx context.Context, id string, q store.HistoryQuery) (store.HistoryPage, error)
	Responds(ctx context.Context, sessionID, method string) (runtime.Introspection, error)

	// Here claims the session for this replica, before a call runs in it. The error names another owner.
	Here(ctx context.Context, id string) error

	CallView(ctx context.Context, callID string) (operator.CallView, error)
	ListCalls(ctx context.Context, q store.CallQuery) ([]agent.LogEntry, error)
	// Preview sets ValuePreview of entries, which the reader must be allowed to see.
	Preview(ctx context.Context, entries []agent.LogEntry) error
	// Cancel returns nil if the call has ended already.
	Cancel(ctx context.Context, callID, actor string) error
	Replay(ctx context.Context, callID string) (operator.ReplayReport, error)
	Why(ctx context.Context, callID string, asker why.Asker) (*why.Explanation, error)
	// CallEvents emits the events of a call after that id, until the call ends or emit fails.
	CallEvents(ctx context.Context, callID, after string, emit func(progress.Event) error) error
	// Events emits the end of calls until emit fails or ctx ends.
	Events(ctx context.Context, q operator.EventQuery, emit func(progress.Event) error) error

	// Judge records a verdict on a call. The channel, if not nil, is closed after the first attempt at a correction.
	Judge(ctx context.Context, callID string, j operator.Judgement) (operator.JudgedCall, <-chan struct{}, error)
	Verdict(ctx context.Context, callID string) (operator.JudgedCall, error)
	DropVerdict(ctx context.Context, callID, actor string, mayOperate bool) error

	Artifact(ctx context.Context, role, method string) (*agent.Artifact, error)
	// Recommendations lists only the calls in the evidence that sees allows; nil allows all.
	Recommendations(ctx context.Context, status string, sees func(ctx context.Context,
		callID string) bool) ([]operator.Advice, error)
	Examples(ctx context.Context, role, method string) ([]agent.Example, error)
	PatternReport(ctx context.Context, role string) (operator.PatternReport, error)
	Tool(ctx context.Context, role string) (operator.KnownTool, error)
	FindTools(ctx context.Context, q overview.Query) (tools []operator.KnownTool, next string, err error)
	HistoryUsage(ctx context.Context, since, until time.Time) (operator.HistoryUsage, error)
	Trends(ctx context.Context, window time.Duration) (operator.Trends, error)
	Inbox(ctx context.Context, q operator.InboxQuery) (page []operator.Waiting, next string, err error)
	SimulatePolicy(ctx context.Context, q operator.SimulationQuery) (operator.Simulation, error)
}

// Shared are the methods whose results everyone in a namespace may see, and those that check the given owner
// themselves.
type Shared interface {
	// Call runs a call and returns once its commit is durable.
	Call(ctx context.Context, q runtime.CallRequest) (runtime.CallResult, error)
	// Start runs a call asynchronously. done receives its result.
	Start(q runtime.CallRequest) (callID string, done <-chan runtime.CallResult, err error)
	CreateSession(ctx context.Context, q runtime.SessionRequest) (agent.Session, error)
	// CallOwner returns the owner of a call's session.
	CallOwner(ctx context.Context, callID string) (string, error)

	Policy() agent.Policy
	PatchPolicy(ctx context.Context, patch json.RawMessage, actor string) (agent.Policy, error)

	// PutTool reports in created whether the role was not registered before.
	PutTool(ctx context.Context, q operator.ToolPut) (t operator.ChangedTool, created bool, err error)
	DecideContract(ctx context.Context, q operator.ContractDecision) (operator.ChangedTool, error)
	ArchiveTool(ctx context.Context, role, reason, actor string) error
	Compiling() runtime.Compiling
	ByPerson(ctx context.Context, role string) bool // whether a person registered the role
	// Staleness returns a function that reports why an artifact's program may no longer do what people want, or "".
	Staleness(ctx context.Context, role string) func(a *agent.Artifact) string
	ListArtifacts(ctx context.Context, role string) ([]*agent.Artifact, error)
	ArchiveArtifact(ctx context.Context, role, method, reason, actor string) error
	PutProgram(ctx context.Context, q operator.ProgramPut) (*agent.Artifact, error)
	Operate(ctx context.Context, role, method string, o operator.Operation) (*agent.Artifact, error)

	// Stale lists tools and artifacts that were idle for that many days.
	Stale(ctx context.Context, days int) ([]store.Target, error)
	Prune(ctx context.Context, q operator.PruneRequest) (operator.PruneReport, error)
	// Restore brings back what was archived, or deleted recently.
	Restore(ctx context.Context, t store.Target, actor, reason string) (operator.RestoreReport, error)
	Audit(ctx context.Context, q store.AuditQuery) ([]agent.AuditEntry, error)
	AuditViews(ctx context.Context, entries []agent.AuditEntry) ([]operator.AuditView, error)
	AuditEntry(ctx context.Context, id string) (operator.AuditView, error)
	AuditHead(ctx context.Context) (chain.Head, error)
	// Undo returns operator.ErrAdminOnly if the request is not an admin's but has to be.
	Undo(ctx context.Context, q operator.UndoRequest) (operator.Undone, error)
	// Export writes an archive of one namespace, or of all if only is "".
	Export(ctx context.Context, w io.Writer, only agent.Namespace, actor string) error

	// InboxCounts emits the number of inbox entries, at once and after each change.
	InboxCounts(ctx context.Context, emit func(progress.Event) error) error
	ApplyRecommendation(ctx context.Context, d operator.AdviceDecision) (operator.Advice, error)
	DismissRecommendation(ctx context.Context, d operator.AdviceDecision) (operator.Advice, error)
	Predict(ctx context.Context, q predict.Query) (predict.Answer, error)
	ListSignatures(ctx context.Context, after string, limit int) ([]predict.Named, error)
	Signature(ctx context.Context, name string) (predict.Named, error)
	PutSignature(ctx context.Context, name string, raw json.RawMessage, actor string) (s predict.Named, created bool,
		err error)
	DeleteSignature(ctx context.Context, name, actor string) error

	Truth
	Files
	Effects
	Connections
	Functions() *catalog.Catalog // the tools as agents see them
	// MCP returns the handler of MCP, or nil if MCP is off. mcp.WithPrincipal sets the principal in the context.
	MCP() http.Handler
	Holdings(ctx context.Context) (*Holdings, error)
	Erased() context.Context // ends when the namespace is deleted
	Usage(ctx context.Context, q spend.UsageQuery) (spend.UsageReport, error)
	// ListStored returns a page of owners with the bytes they store, in order of their names.
	ListStored(ctx context.Context, after string, limit int) ([]store.OwnerBytes, error)
	Stored(ctx context.Context, owner string) (store.OwnerBytes, error)
	// Nearly reports whether at least 80 percent of a cap that applies to the call is used, and how much.
	Nearly(owner, role, method string, daemon bool) (ratio float64, near bool)
	// Settled waits until everything that was read so far is durable.
	Settled() error
	Version() operator.VersionInfo
	ModelStatus() (s provider.Status, asked bool) // asked is false if programs come from a recording
	// CheckModel asks the model for a test program at the owner's expense. asked is false if there is no model.
	CheckModel(ctx context.Context, owner string) (c provider.Check, asked bool, err error)
}
