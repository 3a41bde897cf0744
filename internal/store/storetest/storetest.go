// Package storetest tests the guarantees of store.Store. Every implementation must pass its suite: acknowledged data is
// there, commits are atomic, histories are ordered and gapless, counters equal the sum of the commits, deleted sessions
// leave nothing behind, and limits hold.
//
// It knows nothing of files. Failures that only a disk can have (torn writes, kills, full disks) are tested in package
// disk.
package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Harness opens stores of one implementation. Open is required.
type Harness struct {
	// Open returns a new, empty store that uses the clock now. It is closed when the test ends.
	Open func(t *testing.T, now func() time.Time) store.Store
	// Reopen returns the same store, opened again after a clean stop or, with kill, after a kill. nil means that the
	// store lives in memory only.
	Reopen func(t *testing.T, s store.Store, kill bool) store.Store
	// Another opens a second handle on the same data, as another process would. nil means that there is only one
	// handle.
	Another func(t *testing.T, s store.Store) store.Store
	// Elapse lets time pass for leases, candidates and replicas. nil means that their time is that of Open's clock.
	Elapse func(t *testing.T, s store.Store, d time.Duration)
}

// Run runs the suite. Each test has its own store.
func Run(t *testing.T, h Harness) {
	for _, c := range []struct {
		name string
		test func(*testing.T, *rig)
	}{
		{"Sessions", sessions}, {"SessionsPage", sessionsPage}, {"Contexts", contexts},
		{"ContextsAreTheCallers", contextsAreTheCallers},
		{"Commit", commit}, {"CommitWithoutSession", commitWithoutSession}, {"CommitAssignsSeq", commitAssignsSeq},
		{"CommitConcurrently", commitConcurrently}, {"CommitRefused", commitRefused}, {"HistoryPages", historyPages},
		{"HistoryFilters", historyFilters}, {"HistoryFilterPairs", historyFilterPairs}, {"HistoryLooks", historyLooks},
		{"HistoryBytes", historyBytes}, {"HistoryTimes", historyTimes},
		{"HistoryKeepsUnknownKeys", historyKeepsUnknownKeys}, {"Calls", calls}, {"CallsPage", callsPage},
		{"CallsOfOwner", callsOfOwner}, {"Corrections", corrections},
		{"ValuesExpire", valuesExpire}, {"DebugExpires", debugExpires}, {"Replies", replies},
		{"ContentBounded", contentBounded}, {"ContentBytes", contentBytes}, {"Patterns", patterns},
		{"Counters", counters}, {"Artifacts", artifacts}, {"MadeFor", madeFor},
		{"ArtifactRevisions", artifactRevisions}, {"ArtifactGone", artifactGone},
		{"ArtifactUndo", artifactUndo}, {"Programs", programs}, {"OddNames", oddNames}, {"Tools", tools},
		{"ToolRevisions", toolRevisions}, {"Ranking", ranking},
		{"Policy", policy}, {"PolicyRaces", policyRaces}, {"Connections", connections},
		{"ConnectionsChange", connectionsChange}, {"Spending", spending}, {"Settles", settles},
		{"Forfeits", forfeits}, {"Caps", caps},
		{"CapsOfErased", capsOfErased}, {"CapsOfReplicas", capsOfReplicas}, {"Audit", audit},
		{"AuditChain", auditChain}, {"AuditErased", auditErased}, {"Watch", watch},
		{"WatchResumes", watchResumes}, {"WatchCalls", watchCalls}, {"WatchOperations", watchOperations},
		{"Leases", leases}, {"LeaseLost", leaseLost}, {"LeaseEnds", leaseEnds}, {"LeaseWaits", leaseWaits},
		{"Candidates", candidates},
		{"Replicas", replicas}, {"Ownership", ownership}, {"Yielding", yielding}, {"Fences", fences},
		{"Repeats", repeats}, {"RepeatsConcurrently", repeatsConcurrently}, {"Adoptions", adoptions},
		{"AdoptionRaces", adoptionRaces},
		{"ArchiveAndRestore", archiveAndRestore}, {"RestoreTools", restoreTools}, {"RestoreOf", restoreOf},
		{"RestoreBelow", restoreBelow}, {"RestoreRole", restoreRole},
		{"Remove", remove}, {"DeletedEnds", deletedEnds}, {"DeletedForgets", deletedForgets}, {"Stale", stale},
		{"DeleteErases", deleteErases}, {"Expire", expire}, {"ExpireEphemeral", expireEphemeral},
		{"CloseTwice", closeTwice},
		{"Model", model}, {"Namespaces", namespaces}, {"EmptyNamespaces", emptyNamespaces},
		{"WatchNamespaces", watchNamespaces}, {"SpacesList", spacesList}, {"SpacesErase", spacesErase},
		{"SpacesDue", spacesDue},
		{"Files", files}, {"FilesGo", filesGo}, {"FileBytes", fileBytes}, {"FilesOfCalls", filesOfCalls},
		{"RepeatsWithFiles", repeatsWithFiles},
		{"Stored", stored}, {"StoredApart", storedApart},
	} {
		t.Run(c.name, func(t *testing.T) {
			clock := &clock{at: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)}
			r := &rig{T: t, h: h, clock: clock, ctx: t.Context()}
			r.use(h.Open(t, clock.now))
			c.test(t, r)
		})
	}
}

// rig is the fixture of a test.
type rig struct {
	*testing.T
	h     Harness
	store store.Store
	s     store.Namespace // the store's default namespace
	clock *clock
	ctx   context.Context
	n     int // number of calls made
}

// use makes the test continue with the store.
func (r *rig) use(s store.Store) { r.store, r.s = s, Default(r.T, s) }

// Default returns the default namespace of a store.
func Default(t testing.TB, s store.Store) store.Namespace {
	t.Helper()
	ns, err := s.Namespace(agent.DefaultNamespace)
	if err != nil {
		t.Fatal(err)
	}
	return ns
}

// everyWay runs the check now and, if the store can be reopened, again after a kill and after clean stops.
func (r *rig) everyWay(check func()) {
	r.Helper()
	check()
	if r.h.Reopen == nil {
		return
	}
	for _, kill := range []bool{true, false, false} { // the second clean stop finds nothing to write
		r.use(r.h.Reopen(r.T, r.store, kill))
		check()
	}
}

// another returns a second handle on the store, and its default namespace.
func (r *rig) another() (store.Store, store.Namespace) {
	r.Helper()
	if r.h.Another == nil {
		return r.store, r.s
	}
	s := r.h.Another(r.T, r.store)
	return s, Default(r.T, s)
}

// elapse advances all clocks.
func (r *rig) elapse(d time.Duration) {
	r.Helper()
	r.clock.advance(d)
	if r.h.Elapse != nil {
		r.h.Elapse(r.T, r.store, d)
	}
}

// watch watches the store from the cursor.
func (r *rig) watch(s store.Store, from store.Cursor, changed func(store.Change)) (stop func()) {
	r.Helper()
	stop, err := s.Watch(from, changed)
	r.ok(err)
	return stop
}

// ok fails the test on an error.
func (r *rig) ok(err error) {
	r.Helper()
	if err != nil {
		r.Fatalf("got error %v", err)
	}
}

// session creates a session with that id.
func (r *rig) session(id string) string {
	r.Helper()
	r.ok(r.s.CreateSession(r.ctx, agent.Session{ID: id, Role: "calculator", Owner: "local", CreatedAt: r.clock.now(),
		UpdatedAt: r.clock.now()}, nil))
	return id
}

// call returns the commit of a successful call of calculator.add, for the test to modify.
func (r *rig) call(session string) *store.CallCommit {
	r.n++
	return NewCommit(session, fmt.Sprintf("call_%06d", r.n), r.clock.now())
}

// NewCommit returns the commit of a successful call of calculator.add in the session.
func NewCommit(session, id string, now time.Time) *store.CallCommit {
	args, kwargs := []json.RawMessage{json.RawMessage(`"` + session + ` argument"`)},
		json.RawMessage(`{"key":"`+session+` keyword"}`)
	o := agent.Outcome{Status: agent.StatusOK, Value: json.RawMessage(`"` + session + ` value"`),
		ToolRole: "calculator", MethodName: "add"}
	at := agent.FormatTime(now)
	return &store.CallCommit{
		SessionID: session,
		Record: agent.Record{CallID: id, Timestamp: at, Speaker: agent.SpeakerUser, Role: "calculator",
			MethodName: "add", Args: args, Kwargs: kwargs,
			OutcomeSummary: agent.Summarize(o), TraceID: "trace", DurationMs: 1.5, ProgramSource: agent.SourcePersisted,
			ArtifactHit: true},
		Log: agent.LogEntry{Timestamp: at, Runtime: "go", SessionID: session, TraceID: "trace", CallID: id,
			Role: "calculator", Method: "add",
			Args: args, Kwargs: kwargs, OutcomeStatus: o.Status, OutcomeValueClass: "string",
			ProgramSource: agent.SourcePersisted, ArtifactHit: true,
			ContractSource: "none", ContractFingerprint: agent.FingerprintNone,
			AttemptFailures: []agent.AttemptFailure{}, HistoryRecordAppended: true},
		Outcome: o,
		Effects: json.RawMessage(`{"note":"` + session + ` effect"}`),
	}
}

// Forged changes the commit so that it also stores calculator.add, forged for this call. It returns c.
func Forged(c *store.CallCommit, code string) *store.CallCommit {
	at, _ := time.Parse(time.RFC3339, c.Record.Timestamp)
	c.Artifacts = append(c.Artifacts, agent.ArtifactChange{Role: c.Record.Role, MethodName: c.Record.MethodName, At: at,
		Generation: NewGeneration("gen-1", code, at),
		Result:     agent.ClassOK, SessionID: c.SessionID})
	return c
}

// NewGeneration returns a generation with that code.
func NewGeneration(id, code string, at time.Time) *agent.Generation {
	return &agent.Generation{ID: id, Trigger: "initial_forge", Code: code, CodeChecksum: agent.Checksum(code),
		Owner: "ann", Dependencies: []string{"strings"},
		ContractFingerprint: agent.FingerprintNone, CheckedFingerprint: agent.FingerprintNone,
		RuntimeVersion: agent.ABI, CreatedAt: at, Cacheable: true}
}

// commit commits the call and fails the test on an error. It returns c.
func (r *rig) commit(c *store.CallCommit) *store.CallCommit {
	r.Helper()
	r.ok(r.s.CommitCall(r.ctx, c))
	return c
}

// records returns a session's whole history. See Records.
func (r *rig) records(session string) []agent.Record {
	r.Helper()
	return Records(r.T, r.s, session)
}

// Records reads a session's whole history, page by page, and checks that it is ordered and gapless.
func Records(t testing.TB, s store.Namespace, session string) []agent.Record {
	t.Helper()
	var out []agent.Record
	q := store.HistoryQuery{Limit: 7}
	for {
		page, err := s.History(context.Background(), session, q)
		if err != nil {
			t.Fatalf("history of %s: %v", session, err)
		}
		for _, raw := range page.Records {
			var rec agent.Record
			if err := json.Unmarshal(raw, &rec); err != nil {
				t.Fatalf("record %s: %v", raw, err)
			}
			if out = append(out, rec); rec.Seq != len(out) {
				t.Fatalf("got seq %d at place %d", rec.Seq, len(out))
			}
		}
		if page.Next == 0 {
			if page.Size != len(out) {
				t.Fatalf("got size %d of a history with %d records", page.Size, len(out))
			}
			return out
		}
		q.After = page.Next
	}
}

// clock is a clock that tests set.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// sameJSON reports whether two values have the same JSON encoding.
func sameJSON(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}
