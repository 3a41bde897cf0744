// Package api is the REST interface: it decodes requests, calls the runtime, and encodes replies. A tool's failure is an
// ordinary outcome in a reply of status 200. A protocol fault is a problem detail (RFC 9457) with a stable code, a hint
// that the client can act on and, for a faulty body, JSON pointers into it. A request that is refused here has written
// nothing.
//
// Input is bounded and read strictly (package strict), names are checked before they are used, and where no tokens guard
// the daemon, only requests that name this machine as their host are answered. Only this package knows status codes. It
// knows nothing of stores, runners or models.
package api

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/chain"
	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/runtime/catalog"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/runtime/predict"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
	"github.com/recurgentd/recurgentd/internal/runtime/tier"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Runtime is what the interface asks of one namespace.
type Runtime interface {
	Call(ctx context.Context, q runtime.CallRequest) (runtime.CallResult, error)
	Start(q runtime.CallRequest) (callID string, done <-chan runtime.CallResult, err error)
	Cancel(callID string) error
	Replay(ctx context.Context, callID string) (operator.ReplayReport, error)
	CallView(ctx context.Context, callID string) (operator.CallView, error)
	ListCalls(ctx context.Context, q store.CallQuery) ([]agent.LogEntry, error)

	CreateSession(ctx context.Context, q runtime.SessionRequest) (agent.Session, error)
	Session(ctx context.Context, id string) (agent.Session, error)
	DeleteSession(ctx context.Context, id, actor string) error
	ListSessions(ctx context.Context, after string, limit int) ([]agent.Session, error)
	Context(ctx context.Context, id string) (map[string]json.RawMessage, error)
	PatchContext(ctx context.Context, id string, patch json.RawMessage) (map[string]json.RawMessage, error)
	History(ctx context.Context, id string, q store.HistoryQuery) (store.HistoryPage, error)
	Responds(ctx context.Context, sessionID, method string) (runtime.Introspection, error)

	Policy() agent.Policy
	PatchPolicy(ctx context.Context, patch json.RawMessage, actor string) (agent.Policy, error)

	Tool(ctx context.Context, role string) (operator.KnownTool, error)
	ListTools(ctx context.Context, after string, limit int) ([]operator.KnownTool, error)
	PutTool(ctx context.Context, q operator.ToolPut) (t agent.Tool, created bool, err error)
	ArchiveTool(ctx context.Context, role, reason, actor string) error
	Artifact(ctx context.Context, role, method string) (*agent.Artifact, error)
	NativeState(a *agent.Artifact) tier.View
	ListArtifacts(ctx context.Context, role string) ([]*agent.Artifact, error)
	ArchiveArtifact(ctx context.Context, role, method, reason, actor string) error
	PutProgram(ctx context.Context, q operator.ProgramPut) (*agent.Artifact, error)
	Operate(ctx context.Context, role, method string, o operator.Operation) (*agent.Artifact, error)

	Stale(ctx context.Context, days int) ([]store.Target, error)
	Prune(ctx context.Context, q operator.PruneRequest) (operator.PruneReport, error)
	Restore(ctx context.Context, t store.Target, actor, reason string) error
	Audit(ctx context.Context, q store.AuditQuery) ([]agent.AuditEntry, error)
	AuditHead(ctx context.Context) (chain.Head, error)
	Undo(ctx context.Context, q operator.UndoRequest) (agent.AuditEntry, error)
	Export(ctx context.Context, w io.Writer, actor string) error

	CallEvents(ctx context.Context, callID, after string, emit func(progress.Event) error) error
	Events(ctx context.Context, after string, emit func(progress.Event) error) error

	Recommendations(ctx context.Context, status string) ([]operator.Advice, error)
	ApplyRecommendation(ctx context.Context, d operator.AdviceDecision) (operator.Advice, error)
	DismissRecommendation(ctx context.Context, d operator.AdviceDecision) (operator.Advice, error)
	PatternReport(ctx context.Context, role string) (operator.PatternReport, error)
	HistoryUsage(ctx context.Context, since, until time.Time) (operator.HistoryUsage, error)
	Trends(ctx context.Context, window time.Duration) (operator.Trends, error)

	Predict(ctx context.Context, q predict.Query) (predict.Answer, error)
	ListSignatures(ctx context.Context, after string, limit int) ([]predict.Named, error)
	Signature(ctx context.Context, name string) (predict.Named, error)
	PutSignature(ctx context.Context, name string, raw json.RawMessage, actor string) (s predict.Named, created bool, err error)
	DeleteSignature(ctx context.Context, name, actor string) error

	Truth
	Files
	Effects
	Connections
	Functions() *catalog.Catalog // what agents see
	MCP() http.Handler           // serves them to the principal that mcp.WithPrincipal has put into the context; nil: not found
	Holdings(ctx context.Context) (*Holdings, error)
	Erased() context.Context // ends when the namespace is deleted
	Settled() error
	Version() operator.VersionInfo
}

// server answers requests. Its fields are set once by New.
type server struct {
	o        Options
	log      zerolog.Logger
	hosts    map[string]bool
	origin   *http.CrossOriginProtection
	problems map[string]prometheus.Counter // by code
	fixed    fixedHeaders
	replies  *replies
	shares   *shares

	table *table // of operations

	docs       []byte // the reference page
	docsPolicy string // its content security policy

	requestPrefix string // of request ids made here
	requests      atomic.Uint64
}

// fixedHeaders are header values, and an end, that every reply shares, so that setting them allocates nothing.
type fixedHeaders struct {
	noStore, noSniff, json []string
	ok, failed             []string // Recurgent-Outcome
	newline                []byte
}

// New returns the handler of the whole interface.
func New(o Options) (http.Handler, error) {
	s, err := newServer(o)
	if err != nil {
		return nil, err
	}
	return s.table.router, nil
}

func newServer(o Options) (*server, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	s := &server{o: o, log: o.Logger, origin: http.NewCrossOriginProtection(), hosts: map[string]bool{"localhost": true},
		problems: map[string]prometheus.Counter{}, replies: newReplies(o.MaxReplies, replyTurn), shares: newShares(o),
		fixed: fixedHeaders{noStore: []string{"no-store"}, noSniff: []string{"nosniff"}, json: []string{"application/json"},
			ok: []string{agent.StatusOK}, failed: []string{agent.StatusError}, newline: []byte("\n")}}
	var err error
	if s.docs, s.docsPolicy, err = docsPage(o.OpenAPI); err != nil {
		return nil, err
	}
	for _, h := range o.Hosts {
		s.hosts[canonicalHost(h)] = true
	}
	for _, k := range problemKinds() {
		s.problems[k.code] = o.Metrics.Problem(k.code)
	}
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	s.requestPrefix = "req_" + hex.EncodeToString(b[:]) + "_"
	s.table = s.routes()
	return s, s.table.err
}
