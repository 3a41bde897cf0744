package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/env"
	"github.com/recurgentd/recurgentd/internal/runtime/forge"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/runtimetest"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/sessions"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// A sharedRig has several runtimes over one store, each with a model of its own, as replicas have.
type sharedRig struct {
	*testing.T
	store  *storetest.Memory
	box    *runtimetest.Box
	ahead  time.Duration // of the store's clock
	ahMu   sync.Mutex
	all    []*Runtime
	models []*runtimetest.Model
}

func newSharedRig(t *testing.T, n int, box *runtimetest.Box, programs map[string][]string) *sharedRig {
	t.Helper()
	g := &sharedRig{T: t, box: box}
	g.store = storetest.NewMemory(func() time.Time {
		g.ahMu.Lock()
		defer g.ahMu.Unlock()
		return time.Now().Add(g.ahead)
	})
	for range n {
		of := map[string][]string{}
		for k, v := range programs {
			of[k] = slices.Clone(v)
		}
		r, model := scripted(t, box, of, func(o *env.Options) { o.Store, o.Shared = g.store, true })
		g.all, g.models = append(g.all, r), append(g.models, model)
	}
	return g
}

// jump lets the store's clock jump.
func (g *sharedRig) jump(d time.Duration) {
	g.ahMu.Lock()
	defer g.ahMu.Unlock()
	g.ahead += d
}

func (g *sharedRig) requests(key string) (n int) {
	for _, m := range g.models {
		n += m.Count(key, "")
	}
	return n
}

// cold starts n calls of r.m, each in its own session, spread over all replicas. It returns a function that waits for
// the replies.
func (g *sharedRig) cold(n int) (wait func() []Reply) {
	g.Helper()
	replies := make([]Reply, n)
	var group sync.WaitGroup
	for i := range n {
		r := g.all[i%len(g.all)]
		s, err := r.CreateSession(g.Context(), sessions.Request{Role: "r"})
		if err != nil {
			g.Fatal(err)
		}
		group.Go(func() {
			res, err := r.Call(g.Context(), CallRequest{SessionID: s.ID, Method: "m",
				Args: []json.RawMessage{json.RawMessage("1")}})
			if err == nil {
				err = json.Unmarshal(res.Body, &replies[i])
			}
			if err != nil {
				g.Errorf("call %d: %v", i, err)
			}
		})
	}
	return func() []Reply { group.Wait(); return replies }
}

func (g *sharedRig) artifact() *agent.Artifact {
	g.Helper()
	a, err := g.all[0].env.Store.Artifact(g.Context(), "r", "m")
	if err != nil {
		g.Fatal(err)
	}
	return a
}

// wantGenerations checks that the artifact has n generations with distinct IDs, and that each call counts once.
func (g *sharedRig) wantGenerations(n int, calls int64) {
	g.Helper()
	a := g.artifact()
	names := map[string]bool{}
	for _, gen := range a.Generations {
		names[gen.ID] = true
	}
	if len(a.Generations) != n || len(names) != n || a.Sequence != n || a.SuccessCount != calls {
		g.Errorf("got %d generations with %d names, sequence %d, %d successes; want %d generations and %d successes",
			len(a.Generations), len(names), a.Sequence,
			a.SuccessCount, n, calls)
	}
}

func wantOK(t *testing.T, replies []Reply, value string) {
	t.Helper()
	for i, reply := range replies {
		if string(reply.Outcome.Value) != value {
			t.Errorf("call %d: got %s, %s %s; want %s", i, reply.Outcome.Value, reply.Outcome.ErrorType,
				reply.Outcome.ErrorMessage, value)
		}
	}
}

func oneProgram() (*runtimetest.Box, map[string][]string) {
	return &runtimetest.Box{Programs: map[string]runtimetest.Run{"one": runtimetest.Returns("1")}},
		map[string][]string{"r.m": {"one"}}
}

// Cold calls of one method on several replicas make one model request. The other replicas run the same program, which
// is stored once.
func TestReplicasForgeOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box, programs := oneProgram()
		g := newSharedRig(t, 3, box, programs)
		answer := make(chan struct{})
		for _, m := range g.models {
			m.Block = answer
		}
		wait := g.cold(16)
		synctest.Wait()
		if n := g.requests("r.m"); n != 1 {
			t.Errorf("got %d model requests under way, want 1", n)
		}
		close(answer)
		replies := wait()
		wantOK(t, replies, "1")
		paid := 0
		for _, reply := range replies {
			paid += reply.Usage.ModelRequests
		}
		if n := g.requests("r.m"); n != 1 || paid != 1 {
			t.Errorf("got %d model requests, of which the calls report %d; want 1", n, paid)
		}
		g.wantGenerations(1, 16)
	})
}

// A replica that loses its lease gives up, and runs the program that is forged under the next lease, whoever holds
// that. This costs one more request.
func TestReplicaLosesFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box, programs := oneProgram()
		g := newSharedRig(t, 2, box, programs)
		g.models[0].Block = make(chan struct{}) // hangs
		first := g.cold(1)
		synctest.Wait()
		g.models[0].Block = nil // for the next request, should it be of that replica again
		g.all = g.all[1:]
		second := g.cold(3)
		synctest.Wait()
		if n := g.requests("r.m"); n != 1 {
			t.Errorf("before the lease was lost: got %d model requests, want 1", n)
		}
		g.jump(time.Hour)
		wantOK(t, second(), "1")
		wantOK(t, first(), "1")
		if n := g.requests("r.m"); n != 2 {
			t.Errorf("got %d model requests, want 2", n)
		}
		g.wantGenerations(1, 4)
	})
}

// When the call that leads ends, and with it its flight, another replica forges.
func TestLeaderLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box, programs := oneProgram()
		g := newSharedRig(t, 2, box, programs)
		g.models[0].Block = make(chan struct{})
		s, err := g.all[0].CreateSession(t.Context(), sessions.Request{Role: "r"})
		if err != nil {
			t.Fatal(err)
		}
		leader, id := g.all[0], ids.New("call")
		ended := make(chan error)
		go func() {
			_, err := leader.Call(t.Context(), CallRequest{CallID: id, SessionID: s.ID, Method: "m"})
			ended <- err
		}()
		synctest.Wait()
		g.all = g.all[1:]
		second := g.cold(3)
		synctest.Wait()
		leader.CancelRunning(id)
		<-ended
		wantOK(t, second(), "1")
		if n := g.requests("r.m"); n != 2 {
			t.Errorf("got %d model requests, want 2", n)
		}
	})
}

// Another replica's candidate in the store is not trusted: the gate checks it, and if it does not pass, a program is
// forged.
func TestHostileCandidates(t *testing.T) {
	good, _ := json.Marshal(forge.SharedCandidate{Reply: provider.Reply{Code: "one", Model: "other"},
		CreatedAt: time.Now()})
	refused, _ := json.Marshal(forge.SharedCandidate{Reply: provider.Reply{Code: "evil"}, CreatedAt: time.Now()})
	timeless, _ := json.Marshal(forge.SharedCandidate{Reply: provider.Reply{Code: "evil"}})
	for name, tt := range map[string]struct {
		text     string
		requests int
	}{
		"good": {string(good), 0}, "refused by the gate": {string(refused), 1}, "without a time": {string(timeless), 1},
		"garbage": {"\x00{", 1}, "null": {"null", 1},
		"of another type": {`{"reply": 7}`, 1}, "empty": {"", 1},
		"huge": {`{"reply":{"Code":"` + string(make([]byte, forge.MaxCandidate)) + `"}}`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				box, programs := oneProgram()
				box.Programs["evil"] = runtimetest.Returns("666")
				box.Refused = map[string]*sandbox.Failure{"evil": {Type: agent.ErrInvalidCode, Message: "no"}}
				g := newSharedRig(t, 1, box, programs)
				key := forge.SharedKey(&forge.Request{Kind: provider.KindForge, For: &call.Selection{
					Call: &call.Call{Role: "r", Method: "m"}, Terms: call.Terms{Checked: agent.FingerprintNone}}})
				if err := g.all[0].env.Store.PutCandidate(t.Context(), key, []byte(tt.text), time.Hour); err != nil {
					t.Fatal(err)
				}
				wantOK(t, g.cold(2)(), "1")
				if n := g.requests("r.m"); n != tt.requests {
					t.Errorf("got %d model requests, want %d", n, tt.requests)
				}
				g.wantGenerations(1, 2)
			})
		})
	}
}

// A program that nobody stored does not stay in the way of the next forge.
func TestCandidateWithdrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := &runtimetest.Box{Programs: map[string]runtimetest.Run{"bad": runtimetest.Breaks(agent.ErrExecution,
			"boom"), "one": runtimetest.Returns("1")}}
		g := newSharedRig(t, 2, box, nil)
		g.models[0].Programs = map[string][]string{"r.m": {"bad"}}
		g.models[1].Programs = map[string][]string{"r.m": {"one"}}
		both := g.all
		g.all = both[:1]
		for _, reply := range g.cold(1)() {
			if reply.Outcome.OK() {
				t.Fatalf("got %s of a program that fails", reply.Outcome.Value)
			}
		}
		synctest.Wait()
		g.all = both[1:]
		wantOK(t, g.cold(1)(), "1")
	})
}

// A stored program is not the result of the next forge: somebody wants another one, on this replica or on another.
func TestReplicasForgeAgain(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, r *Runtime){
		"asked for": func(t *testing.T, r *Runtime) {
			why := "suspect"
			operate(t, r, agent.ArtifactChange{Role: "r", MethodName: "m", ForceRegenerate: &why})
		},
		"archived": func(t *testing.T, r *Runtime) {
			if err := r.env.Store.Archive(t.Context(), []store.Target{{Role: "r", Method: "m"}},
				agent.AuditEntry{ID: ids.New("aud")}); err != nil {
				t.Fatal(err)
			}
		},
	} {
		for replica := range 2 {
			t.Run(fmt.Sprint(name, ", replica ", replica), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					box := &runtimetest.Box{Programs: map[string]runtimetest.Run{"one": runtimetest.Returns("1"),
						"two": runtimetest.Returns("2")}}
					g := newSharedRig(t, 2, box, nil)
					g.models[0].Programs = map[string][]string{"r.m": {"one", "two"}}
					g.models[1].Programs = map[string][]string{"r.m": {"two"}}
					both := g.all
					g.all = both[:1]
					wantOK(t, g.cold(1)(), "1")
					change(t, both[replica])
					g.all = both[replica : replica+1]
					wantOK(t, g.cold(1)(), "2")
				})
			})
		}
	}
}

// Replicas that adopt programs of one method at the same time never use an ID twice.
func TestReplicasNameGenerations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := &runtimetest.Box{Programs: map[string]runtimetest.Run{}, Facts: map[string]report.Facts{}}
		g := newSharedRig(t, 4, box, nil)
		for i, m := range g.models { // programs that ignore their arguments are not shared: each call forges its own
			source := fmt.Sprint("of replica ", i)
			box.Programs[source], box.Facts[source] = runtimetest.Returns("1"), report.Facts{}
			m.Programs = map[string][]string{"r.m": {source}}
		}
		wantOK(t, g.cold(4)(), "1")
		a := g.artifact()
		names := map[string]bool{}
		for _, gen := range a.Generations {
			names[gen.ID] = true
		}
		if len(names) != len(a.Generations) || a.Sequence != 4 || a.SuccessCount != 4 {
			t.Errorf("got %d generations with %d names, sequence %d, %d successes; want sequence 4 and 4 successes",
				len(a.Generations), len(names), a.Sequence, a.SuccessCount)
		}
	})
}

// overtaking is a store in which another replica adopts a program whenever this one is about to.
type overtaking struct {
	*storetest.Memory
	times int
}

type overtakingNamespace struct {
	store.Namespace
	s *overtaking
}

func (s *overtaking) Namespace(name agent.Namespace) (store.Namespace, error) {
	n, err := s.Memory.Namespace(name)
	return &overtakingNamespace{n, s}, err
}

func (n *overtakingNamespace) CommitCall(ctx context.Context, c *store.CallCommit) error {
	if len(c.Artifacts) > 0 && c.Artifacts[0].Generation != nil && n.s.times > 0 {
		n.s.times--
		now, err := n.Artifact(ctx, "r", "m")
		if err != nil {
			now = &agent.Artifact{}
		}
		g := agent.Generation{ID: now.NextGenerationID(), Trigger: "initial_forge", Code: "theirs",
			CodeChecksum: agent.Checksum(fmt.Sprint("theirs", n.s.times))}
		if _, err := n.ChangeArtifact(ctx, store.AnyRevision, agent.ArtifactChange{Role: "r", MethodName: "m",
			Generation: &g}, nil); err != nil {
			return err
		}
	}
	return n.Namespace.CommitCall(ctx, c)
}

// An adoption that another replica overtook is decided again, a bounded number of times. Then the call is committed
// without it.
func TestOvertakenAdoption(t *testing.T) {
	for times, want := range map[int]string{0: "gen-1", 1: "gen-2", adoptionTries - 1: "gen-4", adoptionTries: "",
		100: ""} {
		box, programs := oneProgram()
		s := &overtaking{storetest.NewMemory(time.Now), times}
		r, _ := scripted(t, box, programs, func(o *env.Options) { o.Store = s })
		id, call := conversation(t, r, sessions.Request{Role: "r"})
		reply := call("m", 1)
		if string(reply.Outcome.Value) != "1" || reply.Program.Generation != want {
			t.Errorf("overtaken %d times: got %s by %q, want 1 by %q", times, reply.Outcome.Value,
				reply.Program.Generation, want)
		}
		a, err := r.env.Store.Artifact(t.Context(), "r", "m")
		if err != nil {
			t.Fatal(err)
		}
		if tries := min(times, adoptionTries); want == "" && a.Sequence != tries || want != "" && a.CurrentID != want ||
			a.Find(a.CurrentID) == nil {
			t.Errorf("overtaken %d times: got %s, sequence %d", times, a.CurrentID, a.Sequence)
		}
		if a.SuccessCount != 1 {
			t.Errorf("overtaken %d times: %d calls count as answered, want 1", times, a.SuccessCount)
		}
		page, err := r.env.Store.History(t.Context(), id, store.HistoryQuery{})
		if err != nil || page.Size != 1 {
			t.Errorf("overtaken %d times: got %d records, %v; want 1", times, page.Size, err)
		}
	}
}

// A policy that one replica changes is in force in the others.
func TestReplicasFollowPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box, programs := oneProgram()
		g := newSharedRig(t, 3, box, programs)
		synctest.Wait()
		before := g.all[0].PolicyInForce()
		heard := make([][]int, len(g.all)) // the depths in force when each noticed a change
		for i, r := range g.all {
			r.OnPolicy(func() { heard[i] = append(heard[i], r.Policy().DelegationDepth) })
		}
		patchPolicy(t, g.all[1], `{"delegation_depth": 3}`)
		synctest.Wait()
		if got := fmt.Sprint(heard); got != "[[3] [3] [3]]" {
			t.Errorf("at the change they had the depths %s, want each 3, once", got)
		}
		for i, r := range g.all {
			if got := r.Policy().DelegationDepth; got != 3 {
				t.Errorf("replica %d: got depth %d, want 3", i, got)
			}
		}
		if before == g.all[0].PolicyInForce() {
			t.Error("the policy changed, its address did not")
		}
		patchPolicy(t, g.all[2], `{"delegation_depth": 4}`)
		if got := g.all[2].Policy().DelegationDepth; got != 4 {
			t.Errorf("where it was changed: got depth %d, want 4 at once", got)
		}
	})
}

// A reply that another replica left says what it said to the one that asked: nothing is not null.
func TestSharedReplyHasNoNull(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(forge.SharedCandidate{Reply: provider.Reply{Code: "package tool"}})
	if err != nil {
		t.Fatal(err)
	}
	var got forge.SharedCandidate
	if err := json.Unmarshal(text, &got); err != nil || got.Reply.SolverShape != nil || !got.Reply.Declaration.Empty() {
		t.Errorf("%s is read as %+v (%v)", text, got.Reply, err)
	}
}

// A caller that repeats a verdict on a replica other than the one that corrects the method waits for the running
// attempt there.
func TestCorrectingElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewMemory(time.Now)
		shared := func(o *env.Options) { o.Store, o.Shared = s, true }
		a, model, _ := wrongly(t, corrections(nil), []string{"one", "two"}, "2", shared)
		b, _ := scripted(t, corrections(nil), nil, shared)
		read := func() *agent.Artifact { return artifactOf(t, b, "r", "m") }
		ctx, leave := context.WithCancel(t.Context())
		if b.Corrections.Correcting(ctx, read()) != nil {
			t.Error("nothing runs yet, and there is something to wait for")
		}
		model.Block = make(chan struct{})
		tried := a.Corrections.Correct("r", "m", "ada")
		synctest.Wait() // the model is asked
		there, left := b.Corrections.Correcting(t.Context(), read()), b.Corrections.Correcting(ctx, read())
		if there == nil || left == nil {
			close(model.Block)
			t.Fatal("there is nothing to wait for at the other replica")
		}
		leave()
		<-left
		select {
		case <-there:
			t.Error("the attempt at the other replica counts as ended while it runs")
		case <-time.After(time.Minute):
		}
		close(model.Block)
		<-tried
		<-there
		if c := read().Correction; c.State != agent.CorrectionAdopted {
			t.Errorf("the correction is %s after the wait", agent.Encoded(c))
		}
	})
}
