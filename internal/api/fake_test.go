package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	document "github.com/recurgentd/recurgentd/api"
	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/chain"
	"github.com/recurgentd/recurgentd/internal/api/apitest"
	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/runtime/catalog"
	"github.com/recurgentd/recurgentd/internal/runtime/env"
	"github.com/recurgentd/recurgentd/internal/runtime/files"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/runtime/overview"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
	"github.com/recurgentd/recurgentd/internal/runtime/proof"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/selection"
	"github.com/recurgentd/recurgentd/internal/runtime/sessions"
	"github.com/recurgentd/recurgentd/internal/runtime/spend"
	"github.com/recurgentd/recurgentd/internal/runtime/verify"
	"github.com/recurgentd/recurgentd/internal/runtime/why"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// fake is a runtime that records its requests and returns what the test has set. It knows one session, one call, one
// tool and one artifact.
type fake struct {
	usage spend.UsageQuery
	spent float64 // used share of a cap
	mu    sync.Mutex
	asked []string // names of the called methods, in order; guarded by mu
	err   error    // result of every method, if set

	effects   operator.EffectsPut
	call      runtime.CallRequest
	result    runtime.CallResult
	done      chan runtime.CallResult // of Start
	session   sessions.Request
	patch     json.RawMessage
	history   store.HistoryQuery
	calls     store.CallQuery
	entries   []agent.LogEntry
	put       agent.Tool
	wanted    int64
	program   string
	operation operator.Operation
	pruned    operator.PruneRequest
	connected operator.ConnectionPut
	judgement operator.Judgement
	ready     error
	found     overview.Query
	stored    []store.OwnerBytes
	simulated operator.SimulationQuery
	unsettled error
	panics    bool
	recorded  bool // no model is configured
}

const (
	knownSession = "sess_06gzqwq081srb0e6zx42fm96t4"
	knownCall    = "call_06gzqwq081srb0e6zx42fm96t5"
)

var at = time.Date(2026, 11, 21, 2, 10, 0, 0, time.UTC)

func (f *fake) note(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, name)
	if f.panics {
		panic("a bug of ours with a secret in it")
	}
	return f.err
}

func (f *fake) known(name, id, known string) error {
	if err := f.note(name); err != nil {
		return err
	}
	if id != known {
		return fmt.Errorf("look up %s: %w", id, store.ErrNotFound)
	}
	return nil
}

func reply1(role, method string) runtime.Reply {
	return runtime.Reply{CallID: knownCall, SessionID: knownSession, TraceID: "4bf92f3577b34da6a3ce929d0e0e4736",
		Role: role, Method: method,
		Outcome: agent.Outcome{Status: agent.StatusOK, Value: json.RawMessage("5"), ToolRole: role,
			MethodName: method},
		Program: runtime.Program{Source: agent.SourceGenerated, Generation: "gen-1", Checksum: agent.Checksum("x"),
			Trigger: "initial_forge", Selection: agent.Selection{Decision: "forge", Reason: "missing"}},
		Attempts: 1, DurationMs: 1.5, Usage: agent.Usage{ModelRequests: 1, PromptTokens: 10, CompletionTokens: 5}}
}

func (f *fake) Call(_ context.Context, q runtime.CallRequest) (runtime.CallResult, error) {
	if err := f.known("Call", q.SessionID, knownSession); err != nil && !q.Ephemeral {
		return runtime.CallResult{}, err
	}
	f.call = q
	if f.result.Body != nil {
		return f.result, nil
	}
	body, err := json.Marshal(reply1("calculator", q.Method))
	return runtime.CallResult{Body: body, CallID: knownCall, OK: true}, err
}

func (f *fake) Start(q runtime.CallRequest) (string, <-chan runtime.CallResult, error) {
	if err := f.known("Start", q.SessionID, knownSession); err != nil {
		return "", nil, err
	}
	f.call = q
	return knownCall, f.done, nil
}

func (f *fake) Why(_ context.Context, id string, asker why.Asker) (*why.Explanation, error) {
	in := why.Input{Asker: asker, Policy: &agent.Policy{}, PolicyNow: &agent.Policy{}, Select: selection.Select}
	in.Call.Log = agent.LogEntry{CallID: id, Role: "r", Method: "m", OutcomeStatus: agent.StatusRunning}
	return why.Explain(&in), f.known("Why", id, knownCall)
}

func (f *fake) Replay(_ context.Context, id string) (operator.ReplayReport, error) {
	return operator.ReplayReport{CallID: id, Replayable: true, Equal: true, Recorded: "value 5", Replayed: "value 5"},
		f.known("Replay", id, knownCall)
}
func (f *fake) Cancel(_ context.Context, id, _ string) error { return f.known("Cancel", id, knownCall) }

func (f *fake) Settled() error { return f.unsettled }

func (f *fake) CallView(_ context.Context, id string) (operator.CallView, error) {
	o := reply1("calculator", "add").Outcome
	return operator.CallView{LogEntry: logEntry(id), Outcome: &o}, f.known("CallView", id, knownCall)
}

func logEntry(id string) agent.LogEntry {
	return agent.LogEntry{Timestamp: agent.FormatTime(at), Runtime: "go", CallID: id,
		OutcomeStatus: agent.StatusRunning, Role: "calculator", Method: "add"}
}

func (f *fake) ListCalls(_ context.Context, q store.CallQuery) ([]agent.LogEntry, error) {
	f.calls = q
	return f.entries[:min(len(f.entries), q.Limit)], f.note("ListCalls")
}

func (f *fake) Preview(context.Context, []agent.LogEntry) error { return f.note("Preview") }

func (f *fake) aSession() agent.Session {
	return agent.Session{ID: knownSession, Role: "calculator", Owner: "local", CreatedAt: at, UpdatedAt: at,
		Contract: &agent.Contract{Purpose: "count"}, Metadata: map[string]string{"a": "b"}, Revision: 1}
}

func (f *fake) CreateSession(_ context.Context, q sessions.Request) (agent.Session, error) {
	f.session = q
	return f.aSession(), f.note("CreateSession")
}

func (f *fake) Session(_ context.Context, id string) (agent.Session, error) {
	return f.aSession(), f.known("Session", id, knownSession)
}

func (f *fake) DeleteSession(_ context.Context, id, _ string) error {
	return f.known("DeleteSession", id, knownSession)
}

// CallOwner returns the owner of the session.
func (f *fake) CallOwner(_ context.Context, id string) (string, error) {
	return "local", f.known("CallOwner", id, knownCall)
}

func (f *fake) ListSessions(_ context.Context, q sessions.Query) ([]agent.Session, string, error) {
	limit := q.Limit
	return []agent.Session{f.aSession(), f.aSession()}[:min(2, limit)], "", f.note("ListSessions")
}

func (f *fake) Context(_ context.Context, id string) (map[string]json.RawMessage, error) {
	return nil, f.known("Context", id, knownSession)
}

func (f *fake) PatchContext(_ context.Context, id string, patch json.RawMessage,
	_ string) (map[string]json.RawMessage, error) {
	f.patch = patch
	return map[string]json.RawMessage{"value": json.RawMessage("9007199254740993")},
		f.known("PatchContext", id, knownSession)
}

func (f *fake) History(_ context.Context, id string, q store.HistoryQuery) (store.HistoryPage, error) {
	f.history = q
	p := store.HistoryPage{Size: 2}
	if q.After == 0 {
		r, _ := json.Marshal(agent.Record{CallID: knownCall, Seq: 1, Timestamp: agent.FormatTime(at),
			Speaker: agent.SpeakerUser, Role: "r", MethodName: "m",
			Args: []json.RawMessage{}, Kwargs: json.RawMessage("{}"),
			OutcomeSummary: agent.OutcomeSummary{Status: "ok", OK: true, ValueClass: "number"}})
		p.Records, p.Next = []json.RawMessage{r}, 1
	}
	return p, f.known("History", id, knownSession)
}

func (f *fake) Responds(_ context.Context, id, _ string) (runtime.Introspection, error) {
	return runtime.Introspection{}, f.known("Responds", id, knownSession)
}

func (f *fake) Policy() agent.Policy { return agent.DefaultPolicy() }

func (f *fake) PatchPolicy(_ context.Context, patch json.RawMessage, _ string) (agent.Policy, error) {
	f.patch = patch
	return agent.DefaultPolicy(), f.note("PatchPolicy")
}

func aTool(role string) agent.Tool {
	return agent.Tool{Role: role, Contract: agent.Contract{Purpose: "count",
		Deliverable: json.RawMessage(`{"type":"number"}`)},
		Methods: map[string]agent.Contract{"add": {Acceptance: json.RawMessage(`["right"]`)}}, CreatedAt: at,
		LastUsedAt: at, Revision: 7}
}

// earlierRole was stored without normalization.
const earlierRole = "cafe\u0301"

func (f *fake) Tool(_ context.Context, role string) (operator.KnownTool, error) {
	known := "calculator"
	if role == earlierRole {
		known = earlierRole
	}
	return operator.KnownTool{Tool: aTool(role), Score: 0.5, LifecycleState: agent.StateProbation},
		f.known("Tool", role, known)
}

func (f *fake) FindTools(_ context.Context, q overview.Query) ([]operator.KnownTool, string, error) {
	f.found = q
	if q.After == "nowhere" {
		return nil, "", overview.ErrCursor
	}
	health := &overview.Health{Methods: 1, FailureCount: 1, LastFailure: &overview.LastFailure{Method: "add",
		Class: agent.ClassIntrinsic, Reason: "a private text", At: &at}}
	return []operator.KnownTool{{Tool: aTool("calculator"), Score: 0.5, LifecycleState: agent.StateProbation,
		Health: health}}, "more", f.note("FindTools")
}

func (f *fake) Inbox(ctx context.Context, q operator.InboxQuery) ([]operator.Waiting, string, error) {
	if q.After == "nowhere" {
		return nil, "", overview.ErrCursor
	}
	e := operator.CorrectionEvidence{Generation: "gen-1", Correction: agent.Correction{State: agent.CorrectionFailed},
		Wrong: []agent.Verdict{}, WrongCount: 1}
	if q.Sees == nil || q.Sees(ctx, knownCall) {
		e.Wrong = append(e.Wrong, agent.Verdict{CallID: knownCall, SessionID: knownSession, Verdict: agent.VerdictWrong,
			State: agent.ExampleActive, At: at, Args: []json.RawMessage{}, Kwargs: json.RawMessage("{}")})
	}
	return []operator.Waiting{{ID: "wait_1", Kind: overview.Correction, Role: "calculator", Method: "add",
		Since: agent.FormatTime(at), Summary: "x", Evidence: e,
		Operations: []operator.InboxOperation{{Name: "again", Method: "POST",
			Path: "/v1/tools/calculator/methods/add/regenerate", Body: json.RawMessage("{}"),
			Scopes: []string{"operate"}, Scope: "operate"}}}}, "", f.note("Inbox")
}

func (f *fake) SimulatePolicy(_ context.Context, q operator.SimulationQuery) (operator.Simulation, error) {
	f.simulated = q
	run := agent.Selection{Decision: agent.DecideRun, Reason: "healthy", Generation: "gen-1"}
	return operator.Simulation{Changed: []operator.ChangedCall{{CallID: knownCall, Role: "calculator", Method: "add",
		Was: run, WouldBe: run}}, LookedAt: 1}, f.note("SimulatePolicy")
}

func (f *fake) PutTool(_ context.Context, q operator.ToolPut) (operator.ChangedTool, bool, error) {
	f.put, f.wanted = agent.Tool{Role: q.Role, Contract: q.Contract, Methods: q.Methods}, q.Revision
	return operator.ChangedTool{Tool: aTool(q.Role)}, q.Revision == 0, f.note("PutTool")
}

func (f *fake) DecideContract(_ context.Context, q operator.ContractDecision) (operator.ChangedTool, error) {
	return operator.ChangedTool{Tool: aTool(q.Role)}, f.known("DecideContract", q.ID, "prop_known")
}

func (f *fake) ArchiveTool(_ context.Context, role, _, _ string) error {
	return f.known("ArchiveTool", role, "calculator")
}

func anArtifact(role, method string) *agent.Artifact {
	var a *agent.Artifact
	a = a.Apply(agent.ArtifactChange{Role: role, MethodName: method, At: at, Result: agent.ClassOK,
		SessionID: knownSession,
		Generation: &agent.Generation{ID: "gen-1", Trigger: "initial_forge", Code: "package tool",
			CodeChecksum: agent.Checksum("package tool"), Dependencies: []string{"recurgent"}, CreatedAt: at,
			Fixtures: []agent.Fixture{{CallID: knownCall, Value: json.RawMessage(`"a private value"`)}}}})
	return a
}

func (f *fake) Artifact(_ context.Context, role, method string) (*agent.Artifact, error) {
	return anArtifact(role, method), f.known("Artifact", role, "calculator")
}

func (f *fake) ByPerson(context.Context, string) bool { return false }

func (f *fake) Staleness(context.Context, string) func(*agent.Artifact) string {
	return func(*agent.Artifact) string { return "" }
}

func (f *fake) ListArtifacts(_ context.Context, role string) ([]*agent.Artifact, error) {
	return []*agent.Artifact{anArtifact(role, "add"), anArtifact(role, "mul")},
		f.known("ListArtifacts", role, "calculator")
}

func (f *fake) ArchiveArtifact(_ context.Context, role, _, _, _ string) error {
	return f.known("ArchiveArtifact", role, "calculator")
}

func (f *fake) PutProgram(_ context.Context, q operator.ProgramPut) (*agent.Artifact, error) {
	f.program = q.Source
	return anArtifact(q.Role, q.Method), f.note("PutProgram")
}

func (f *fake) Operate(_ context.Context, role, method string, o operator.Operation) (*agent.Artifact, error) {
	f.operation = o
	return anArtifact(role, method), f.known("Operate", role, "calculator")
}

func (f *fake) Stale(_ context.Context, _ int) ([]store.Target, error) { return nil, f.note("Stale") }

func (f *fake) Prune(_ context.Context, q operator.PruneRequest) (operator.PruneReport, error) {
	f.pruned = q
	return operator.PruneReport{DryRun: q.DryRun, Mode: q.Mode, Targets: []store.Target{{Role: "old", LastUsedAt: at}}},
		f.note("Prune")
}

func (f *fake) Restore(_ context.Context, t store.Target, _, _ string) (operator.RestoreReport, error) {
	return operator.RestoreReport{Restored: t}, f.known("Restore", t.Role, "old")
}

func (f *fake) AuditHead(context.Context) (chain.Head, error) { return chain.Head{}, nil }

func (f *fake) Audit(_ context.Context, q store.AuditQuery) ([]agent.AuditEntry, error) {
	if q.Principal != "" && q.Principal != "local" || q.Before != "" {
		return nil, f.note("Audit")
	}
	return []agent.AuditEntry{{ID: "audit_1", Timestamp: agent.FormatTime(at), Actor: "local", Action: "tool.put",
		Target: "calculator"}}, f.note("Audit")
}

func (f *fake) AuditViews(_ context.Context, entries []agent.AuditEntry) (views []operator.AuditView, err error) {
	for _, e := range entries {
		views = append(views, operator.AuditView{AuditEntry: e, UndoneBy: "audit_2"})
	}
	return views, nil
}

func (f *fake) AuditEntry(_ context.Context, id string) (operator.AuditView, error) {
	return operator.AuditView{AuditEntry: agent.AuditEntry{ID: id, Timestamp: agent.FormatTime(at), Actor: "local",
			Action: "tool.put", Target: "calculator"}, UndoRefused: "the policy was changed again since"},
		f.known("AuditEntry", id, "audit_1")
}

func (f *fake) InboxCounts(_ context.Context, emit func(progress.Event) error) error {
	return emit(progress.Event{Type: operator.InboxWaiting, Data: json.RawMessage(`{"waiting":3}`)})
}

func (f *fake) Undo(_ context.Context, q operator.UndoRequest) (operator.Undone, error) {
	id, reason, actor := q.AuditID, q.Reason, q.Actor
	if id == "audit_connection" && !q.Admin {
		return operator.Undone{}, operator.ErrAdminOnly
	}
	if id == "audit_gone" {
		return operator.Undone{}, &agent.InputError{Code: "cannot_undo", Detail: "it is undone already"}
	}
	return operator.Undone{AuditEntry: agent.AuditEntry{ID: "audit_2", Timestamp: agent.FormatTime(at), Actor: actor,
		Action: "artifact.undo", Target: "calculator.add", Reason: reason, Undoes: id}}, f.known("Undo", id, "audit_1")
}

func (f *fake) CallEvents(_ context.Context, callID, after string, emit func(progress.Event) error) error {
	if err := f.known("CallEvents", callID, knownCall); err != nil {
		return err
	}
	return emit(progress.Event{ID: "finished", Type: progress.Finished,
		Data: json.RawMessage(`{"call_id":"` + callID + `","after":"` + after + `"}`)})
}

func (f *fake) Events(_ context.Context, q operator.EventQuery, emit func(progress.Event) error) error {
	if err := f.known("Events", "", ""); err != nil {
		return err
	}
	q.Listens()
	return emit(progress.Event{ID: "call_1", Type: progress.Finished,
		Data: json.RawMessage(`{"after":"` + q.After + `"}`)})
}

func (f *fake) Export(_ context.Context, w io.Writer, _ agent.Namespace, _ string) error {
	if err := f.known("Export", "", ""); err != nil {
		return err
	}
	_, err := io.WriteString(w, "archive")
	return err
}

func (f *fake) Here(_ context.Context, id string) error { return f.known("Here", id, knownSession) }

func (f *fake) Ready() error { return f.ready }
func (f *fake) ModelStatus() (provider.Status, bool) {
	return provider.Status{Model: "m", BaseURL: "http://h/v1",
		LastError: &provider.Failure{At: at, Status: 401, Message: "no"}, LastOK: at}, !f.recorded
}

func (f *fake) CheckModel(context.Context, string) (provider.Check, bool, error) {
	return provider.Check{OK: true,
			Steps: []provider.Step{{Name: provider.StepReached, Result: provider.StepOK, Detail: "http://h/v1"}}},
		!f.recorded, f.note("CheckModel")
}

func (f *fake) Version() operator.VersionInfo {
	return operator.VersionInfo{Name: "recurgentd", Engine: "auto", Tier: "engine",
		Native: operator.NativeTier{State: "off", Why: "no toolchain"}, Store: "disk", Durability: "always",
		Sandbox: sandbox.Status{Level: sandbox.LevelFull}}
}

// Functions is the catalog of the default namespace: see one.
func (f *fake) Functions() *catalog.Catalog { return nil }
func (f *fake) MCP() http.Handler           { return nil }
func (f *fake) Erased() context.Context     { return context.Background() }
func (f *fake) Holdings(context.Context) (*Holdings, error) {
	return &Holdings{Sessions: 3, Tools: 2, Methods: 5, Connections: 1}, f.note("Holdings")
}

// one serves every namespace with the same Runtime: the default one, and those that were created.
type one struct {
	Runtime
	tools  *catalog.Catalog
	mcp    http.Handler
	erased context.Context // of all namespaces

	mu   sync.Mutex
	made map[agent.Namespace]bool
	held int               // uses that were not ended
	used []agent.Namespace // in order
}

func only(t testing.TB, run Runtime) *one {
	return &one{Runtime: run, tools: newTools(t), erased: context.Background(),
		made: map[agent.Namespace]bool{agent.DefaultNamespace: true}}
}

func (o *one) Functions() *catalog.Catalog { return o.tools }
func (o *one) MCP() http.Handler           { return o.mcp }
func (o *one) Erased() context.Context     { return o.erased }

func (o *one) Use(_ context.Context, name agent.Namespace, named bool) (Runtime, func(), error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if named && !o.made[name] {
		return nil, nil, store.ErrNotFound
	}
	o.held++
	o.used = append(o.used, name)
	return o, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.held--
	}, nil
}

func (o *one) Ready() error { return o.Runtime.(interface{ Ready() error }).Ready() }

func (o *one) ListNamespaces(_ context.Context, after agent.Namespace,
	limit int) (all []store.NamespaceInfo, err error) {
	for _, name := range slices.Sorted(maps.Keys(o.made)) {
		if name > after && len(all) < limit {
			all = append(all, store.NamespaceInfo{Name: name, CreatedAt: at})
		}
	}
	return all, nil
}

func (o *one) Namespace(_ context.Context, name agent.Namespace) (store.NamespaceInfo, error) {
	if !o.made[name] {
		return store.NamespaceInfo{}, store.ErrNotFound
	}
	return store.NamespaceInfo{Name: name}, nil
}

func (o *one) CreateNamespace(_ context.Context, name agent.Namespace, _, _ string) (store.NamespaceInfo, error) {
	if o.made[name] {
		return store.NamespaceInfo{}, store.ErrExists
	}
	o.made[name] = true
	return store.NamespaceInfo{Name: name, CreatedAt: at}, nil
}

func (o *one) EraseNamespace(_ context.Context, name agent.Namespace, _, _ string) error {
	if name == agent.DefaultNamespace {
		return store.ErrDefault
	}
	if !o.made[name] {
		return store.ErrNotFound
	}
	delete(o.made, name)
	return nil
}

// rig is a served interface, with a client whose exchanges are compared with the document.
type rig struct {
	t      testing.TB
	fake   *fake
	url    string
	client *http.Client
	seen   *apitest.Recorder
	reg    *prometheus.Registry
}

func newRig(t testing.TB, change func(*Options)) *rig {
	t.Helper()
	f := &fake{done: make(chan runtime.CallResult, 1)}
	reg := telemetry.NewRegistry()
	o := DefaultOptions()
	o.Namespaces, o.Registry, o.Metrics, o.OpenAPI = only(t, f), reg, telemetry.New(reg, telemetry.Build{}),
		document.OpenAPI
	if change != nil {
		change(&o)
	}
	h, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	v := apitest.Validator(t)
	return &rig{t: t, fake: f, url: server.URL, client: &http.Client{Transport: v}, seen: v, reg: reg}
}

// answer is a reply with its body.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a answer) json(t testing.TB) map[string]any {
	t.Helper()
	m := map[string]any{}
	if err := json.Unmarshal(a.body, &m); err != nil {
		t.Fatalf("status %d: the body is no JSON object: %.200s", a.status, a.body)
	}
	return m
}

// ask sends a request. Header lines are "Name: value". A body is application/json unless a header differs.
func (g *rig) ask(method, path, body string, header ...string) answer {
	g.t.Helper()
	r, err := http.NewRequestWithContext(g.t.Context(), method, g.url+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	if body == "" {
		r.Body, r.ContentLength = http.NoBody, 0
	} else {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		if name == "Host" {
			r.Host = value
			continue
		}
		if value == "" {
			r.Header.Del(name)
			continue
		}
		if name == "Content-Type" {
			r.Header.Del(name) // the header line replaces it
		}
		r.Header.Add(name, value)
	}
	res, err := g.client.Do(r)
	if err != nil {
		g.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, bytes.TrimSpace(b)}
}

func (f *fake) Judge(_ context.Context, id string, j operator.Judgement) (operator.JudgedCall, <-chan struct{}, error) {
	f.judgement = j
	return operator.JudgedCall{CallID: id, Role: "calculator", Method: "add", Verdict: j.Verdict, State: "active",
			Expected: j.Expected, Correction: agent.Correction{State: agent.CorrectionNone}}, nil,
		f.known("Judge", id, knownCall)
}

func (f *fake) Verdict(_ context.Context, id string) (operator.JudgedCall, error) {
	return operator.JudgedCall{CallID: id, Role: "calculator", Method: "add", Verdict: agent.VerdictRight,
		State: "active", Correction: agent.Correction{State: agent.CorrectionNone}}, f.known("Verdict", id, knownCall)
}

func (f *fake) DropVerdict(_ context.Context, id, _ string, _ bool) error {
	return f.known("DropVerdict", id, knownCall)
}

func (f *fake) Effects(context.Context, string, string) (operator.MethodEffects, error) {
	return knownEffects(), f.note("Effects")
}

func (f *fake) PutEffects(_ context.Context, q operator.EffectsPut) (operator.MethodEffects, error) {
	f.mu.Lock()
	f.effects = q
	f.mu.Unlock()
	return knownEffects(), f.note("PutEffects")
}

func knownEffects() operator.MethodEffects {
	did := agent.Effects{Hosts: []string{"api.example.org"}, Methods: []string{"GET"}, Tools: []string{},
		Files: []string{}}
	return operator.MethodEffects{Role: "calculator", MethodName: "add",
		Manifest: agent.Manifest{Effects: did, Revision: 3}, Origin: "observed", Policy: "observe",
		Generations: []operator.GenerationEffects{{ID: "gen-1", Current: true, Did: &did, NamedHosts: []string{},
			NewHosts: []string{}, Lacks: agent.Effects{Hosts: []string{}, Methods: []string{}, Tools: []string{},
				Files: []string{}}}}}
}

func (f *fake) Examples(context.Context, string, string) ([]agent.Example, error) {
	return []agent.Example{}, f.note("Examples")
}

func (f *fake) PutExamples(_ context.Context, q operator.ExamplesPut) ([]agent.Example, error) {
	list := q.Examples
	for i := range list {
		list[i].ID, list[i].State = "ex_known", agent.ExampleActive
	}
	return list, errors.Join(agent.CheckExamples(list, nil), f.note("PutExamples"))
}

func (f *fake) DecideExample(_ context.Context, q operator.ExampleDecision) ([]agent.Example, error) {
	return []agent.Example{}, f.known("DecideExample", q.ID, "ex_known")
}

func (f *fake) RunExamples(context.Context, operator.ExampleQuery) (operator.ExampleRun, error) {
	return operator.ExampleRun{Results: []proof.ExampleResult{}}, f.note("RunExamples")
}

func (f *fake) Try(context.Context, operator.TryRequest) (operator.TryReport, error) {
	return operator.TryReport{Outcome: agent.Outcome{Status: agent.StatusOK, Value: json.RawMessage("5")},
		Fixtures: operator.FixtureSummary{Changed: []verify.ChangedFixture{}}}, f.note("Try")
}

func (f *fake) BrokenExamples(context.Context, string, string, string) ([]string, error) {
	return nil, nil
}

// newTools returns a catalog of calculator.add, which takes a and b, and of free.form, whose interface is unknown.
func newTools(t testing.TB) *catalog.Catalog {
	t.Helper()
	p, shelf := agent.DefaultPolicy(), storetest.NewMemory(time.Now)
	held, err := shelf.Namespace(agent.DefaultNamespace)
	if err != nil {
		t.Fatal(err)
	}
	add := &agent.Interface{Summary: "Add two numbers.",
		Parameters: []agent.Parameter{{Name: "a", Type: "number", Required: true},
			{Name: "b", Type: "number", Required: true}}}
	for _, m := range []struct {
		role, name string
		takes      *agent.Interface
	}{{"calculator", "add", add}, {"free", "form", nil}} {
		if _, err := held.PutTool(t.Context(), agent.Tool{Role: m.role}, store.AnyRevision, nil); err != nil {
			t.Fatal(err)
		}
		c := agent.ArtifactChange{Role: m.role, MethodName: m.name, At: at,
			Generation: &agent.Generation{ID: "gen-1", Interface: m.takes}}
		if _, err := held.ChangeArtifact(t.Context(), store.AnyRevision, c, nil); err != nil {
			t.Fatal(err)
		}
	}
	c, err := catalog.New(catalog.Options{Store: shelf, Policy: func() *agent.Policy { return &p },
		Serving: func(a *agent.Artifact) (*agent.Generation, string) { return a.Current(), "" }})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (f *fake) Compiling() env.Compiling { return env.Compiling{Why: "no compiler"} }

const knownFile = "file_06gzqwq081srb0e6zx42fm96t6"

const aFileText = "a,b\n1,2\n"

// aFile is the only file of the fake.
func aFile() agent.File {
	return agent.File{ID: knownFile, Name: "sales.csv", MediaType: "text/csv", Bytes: int64(len(aFileText)),
		SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(aFileText))), Owner: "local", CreatedAt: at,
		ExpiresAt: at.Add(time.Hour)}
}

func (f *fake) Upload(_ context.Context, x agent.File, body io.Reader) (agent.File, error) {
	data, err := io.ReadAll(body)
	x.ID, x.SHA256, x.CreatedAt, x.Bytes = knownFile, aFile().SHA256, at, int64(len(data))
	return x, errors.Join(err, f.note("Upload"))
}

func (f *fake) File(_ context.Context, _, id string) (agent.File, error) {
	return aFile(), f.known("File", id, knownFile)
}

func (f *fake) OpenFile(ctx context.Context, _, id string) (*files.Reader, error) {
	return files.NewReader(ctx, aFile(), struct {
		io.ReaderAt
		io.Closer
	}{strings.NewReader(aFileText), io.NopCloser(nil)}), f.known("OpenFile", id, knownFile)
}

func (f *fake) ListFiles(context.Context, string, string, int) ([]agent.File, error) {
	return []agent.File{aFile(), aFile()}, f.note("ListFiles")
}

func (f *fake) DeleteFile(_ context.Context, _, id, _ string) error {
	return f.known("DeleteFile", id, knownFile)
}
