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

// Runtime is what the interface asks of one namespace.
type Runtime interface {
	Sessions
	Shared
}

// Sessions is what is asked about sessions and what belongs to them, which are their owner's, and about what shows them. A method that is added here has to be
// added to owned, too, or nothing compiles.
type Sessions interface {
	Session(ctx context.Context, id string) (agent.Session, error)
	DeleteSession(ctx context.Context, id, actor string) error
	ListSessions(ctx context.Context, q runtime.SessionQuery) (sessions []agent.Session, next string, err error)
	Context(ctx context.Context, id string) (map[string]json.RawMessage, error)
	PatchContext(ctx context.Context, id string, patch json.RawMessage, actor string) (map[string]json.RawMessage,
		error)
	History(ctx context.Context, id string, q store.HistoryQuery) (store.HistoryPage, error)
	Responds(ctx context.Context, sessionID, method string) (runtime.Introspection, error)

	// Here claims the session for this replica, which is to run a call in it; the error names another owner.
	Here(ctx context.Context, id string) error

	CallView(ctx context.Context, callID string) (operator.CallView, error)
	ListCalls(ctx context.Context, q store.CallQuery) ([]agent.LogEntry, error)
	Preview(ctx context.Context, entries []agent.LogEntry) error
	Cancel(ctx context.Context, callID, actor string) error
	Replay(ctx context.Context, callID string) (operator.ReplayReport, error)
	Why(ctx context.Context, callID string, asker why.Asker) (*why.Explanation, error)
	CallEvents(ctx context.Context, callID, after string, emit func(progress.Event) error) error
	Events(ctx context.Context, q operator.EventQuery, emit func(progress.Event) error) error

	Judge(ctx context.Context, callID string, j operator.Judgement) (operator.JudgedCall, <-chan struct{}, error)
	Verdict(ctx context.Context, callID string) (operator.JudgedCall, error)
	DropVerdict(ctx context.Context, callID, actor string, mayOperate bool) error

	Artifact(ctx context.Context, role, method string) (*agent.Artifact, error)
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

// Shared is what everybody in a namespace shares, and what checks the owner that it is given itself.
type Shared interface {
	Call(ctx context.Context, q runtime.CallRequest) (runtime.CallResult, error)
	Start(q runtime.CallRequest) (callID string, done <-chan runtime.CallResult, err error)
	CreateSession(ctx context.Context, q runtime.SessionRequest) (agent.Session, error)
	CallOwner(ctx context.Context, callID string) (string, error)

	Policy() agent.Policy
	PatchPolicy(ctx context.Context, patch json.RawMessage, actor string) (agent.Policy, error)

	PutTool(ctx context.Context, q operator.ToolPut) (t operator.ChangedTool, created bool, err error)
	DecideContract(ctx context.Context, q operator.ContractDecision) (operator.ChangedTool, error)
	ArchiveTool(ctx context.Context, role, reason, actor string) error
	Compiling() runtime.Compiling
	ByPerson(ctx context.Context, role string) bool // a person registered the role
	// why what answers may not do what people want of the method
	Staleness(ctx context.Context, role string) func(a *agent.Artifact) string
	ListArtifacts(ctx context.Context, role string) ([]*agent.Artifact, error)
	ArchiveArtifact(ctx context.Context, role, method, reason, actor string) error
	PutProgram(ctx context.Context, q operator.ProgramPut) (*agent.Artifact, error)
	Operate(ctx context.Context, role, method string, o operator.Operation) (*agent.Artifact, error)

	Stale(ctx context.Context, days int) ([]store.Target, error)
	Prune(ctx context.Context, q operator.PruneRequest) (operator.PruneReport, error)
	Restore(ctx context.Context, t store.Target, actor, reason string) (operator.RestoreReport, error)
	Audit(ctx context.Context, q store.AuditQuery) ([]agent.AuditEntry, error)
	AuditViews(ctx context.Context, entries []agent.AuditEntry) ([]operator.AuditView, error)
	AuditEntry(ctx context.Context, id string) (operator.AuditView, error)
	AuditHead(ctx context.Context) (chain.Head, error)
	Undo(ctx context.Context, q operator.UndoRequest) (operator.Undone, error)
	Export(ctx context.Context, w io.Writer, only agent.Namespace, actor string) error // only: "" for all namespaces

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
	Functions() *catalog.Catalog // what agents see
	// serves them to the principal that mcp.WithPrincipal has put into the context; nil: not found
	MCP() http.Handler
	Holdings(ctx context.Context) (*Holdings, error)
	Erased() context.Context // ends when the namespace is deleted
	Usage(ctx context.Context, q spend.UsageQuery) (spend.UsageReport, error)
	ListStored(ctx context.Context, after string, limit int) ([]store.OwnerBytes, error)
	Stored(ctx context.Context, owner string) (store.OwnerBytes, error)
	Nearly(owner, role, method string, daemon bool) (ratio float64, near bool)
	Settled() error
	Version() operator.VersionInfo
	ModelStatus() (s provider.Status, asked bool)
	CheckModel(ctx context.Context, owner string) (c provider.Check, asked bool, err error)
}
