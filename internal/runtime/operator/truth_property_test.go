package operator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/runtime/env"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/runtime/proof"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/runtimetest"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/sessions"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// For any sequence of verdicts, examples, failing candidates, drifts, approvals and restarts: a method that has
// answered an input never answers it with an error because of a forge, and nothing automatic breaks an example that
// held. TRUTH_SEED sets the first seed, TRUTH_ROUNDS the number of rounds.
func TestTruthHoldsWhateverComes(t *testing.T) {
	t.Parallel()
	first, rounds := number(t, "TRUTH_SEED", 1), number(t, "TRUTH_ROUNDS", 60)
	for seed := first; seed < first+rounds; seed++ {
		w := newWorld(t, uint64(seed))
		for range 60 {
			w.step()
		}
		w.stop()
		if t.Failed() {
			t.Fatalf("TRUTH_SEED=%d\n%s", seed, w.story())
		}
	}
}

func number(t *testing.T, name string, otherwise int) int {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

const inputs = 5 // fewer than the fixtures of a generation

// A spec defines a program of the world: its answer to each input is a value, "panic", or an error of its own. A
// program that fetches knows one state of the source, and fails in others.
type spec struct {
	answers [inputs]string
	fetches bool
	knows   int
}

// A world is a method with everything that can happen to it.
type world struct {
	t      *testing.T
	rand   *rand.Rand
	clock  clock
	source atomic.Int64 // state of the source; read by corrections, too
	specs  map[string]spec
	box    *runtimetest.Box
	store  store.Store
	model  *careless
	calls  *runtime.Runtime
	op     *operator.Operator

	session string
	made    []string // calls that can be judged
	served  [inputs]bool
	steps   []string
	known   map[string]*agent.Generation // every generation that served, for messages
}

// careless is a model that writes the given programs without checks.
type careless struct {
	mu   sync.Mutex
	next func() string // guarded by mu
}

func (c *careless) Name() string { return "careless" }

func (c *careless) Chat(context.Context, provider.ChatRequest) (provider.ChatReply, error) {
	return provider.ChatReply{}, &provider.Error{Type: agent.ErrProvider, Reason: "no_answer", Message: "no chat"}
}

func (c *careless) Program(context.Context, provider.Request) (provider.Reply, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return provider.Reply{Code: c.next(), Model: "careless", Usage: agent.Usage{ModelRequests: 1}}, nil
}

const sourceURL = "https://api.example/now"

// A clock that background corrections read concurrently.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) time() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(by)
}

// A source of randomness that background corrections read concurrently.
type source struct {
	mu  sync.Mutex
	pcg *rand.PCG
}

func (s *source) Uint64() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pcg.Uint64()
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, rand: rand.New(&source{pcg: rand.NewPCG(seed, 1)}),
		clock: clock{now: time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)}, specs: map[string]spec{},
		known: map[string]*agent.Generation{},
		box:   &runtimetest.Box{Programs: map[string]runtimetest.Run{}}, model: &careless{}}
	w.store = storetest.NewMemory(w.clock.time)
	fetches := w.rand.IntN(2) == 0
	for i := range 40 {
		w.write(fmt.Sprintf("program %d", i), fetches)
	}
	w.model.next = func() string { return fmt.Sprintf("program %d", w.rand.IntN(len(w.specs))) }
	w.start()
	s, err := w.calls.CreateSession(t.Context(), sessions.Request{Role: "r"})
	if err != nil {
		t.Fatal(err)
	}
	w.session = s.ID
	// the timers of corrections never fire
	w.policy(func(p *agent.Policy) { p.Backoff = agent.BackoffPolicy{BaseSeconds: 3600, MaxSeconds: 3600} })
	return w
}

// write makes a program. It answers most inputs right, some wrong, some not at all. Some programs are useless.
func (w *world) write(name string, fetches bool) {
	s := spec{fetches: fetches, knows: w.rand.IntN(3)}
	for i := range s.answers {
		switch n := w.rand.IntN(12); {
		case n < 8:
			s.answers[i] = strconv.Itoa(i * 10)
		case n < 10:
			s.answers[i] = strconv.Itoa(i*10 + n)
		case n < 11:
			s.answers[i] = "panic"
		default:
			s.answers[i] = "not_found"
		}
	}
	if w.rand.IntN(8) == 0 {
		s.answers = [inputs]string{"panic", "panic", "panic", "panic", "panic"}
	}
	w.specs[name] = s
	w.box.Programs[name] = func(_ context.Context, q sandbox.Request,
		_ sandbox.Host) sandbox.Result {
		return w.run(s, q)
	}
}

// run runs a program as a runner does, on the source or on its recording.
func (w *world) run(s spec, q sandbox.Request) sandbox.Result {
	n, _ := strconv.Atoi(string(q.Args[0]))
	state := int(w.source.Load())
	if q.Recorded != nil {
		var recorded struct{ State *int }
		if json.Unmarshal(q.Recorded, &recorded) == nil && recorded.State != nil {
			state = *recorded.State
		} else if s.fetches {
			return sandbox.Result{Failure: &sandbox.Failure{Type: agent.ErrExecution, Message: "not recorded",
				Detail: sandbox.DetailDiverged}}
		}
	}
	var res sandbox.Result
	switch answer := s.on(n, state); answer {
	case "panic":
		res = runtimetest.Failure(agent.ErrExecution, "boom")
	case "not_found":
		res.Authored = &sandbox.AuthoredError{Type: "not_found", Message: "nothing"}
	default:
		res.Value = json.RawMessage(answer)
	}
	if s.fetches {
		res.Effects = sandbox.Effects{Journal: json.RawMessage(fmt.Sprintf(
			`{"v":1,"state":%d,"asks":[{"op":"fetch","params":{"url":%q}}]}`, state, sourceURL)),
			Fetches: []sandbox.Fetch{{URL: sourceURL, Asked: sourceURL, Status: 200,
				Shape: fmt.Sprint("shape ", state)}}}
	}
	return res
}

// on returns the program's answer to the input in that state of the source.
func (s *spec) on(input, state int) string {
	if s.fetches && s.knows != state {
		return "panic"
	}
	return s.answers[input]
}

func isValue(answer string) bool { return answer != "panic" && answer != "not_found" }

func (w *world) start() {
	o := env.DefaultOptions()
	o.Store, o.Sandbox, o.Provider, o.Now = w.store, w.box, w.model, w.clock.time
	o.Metrics = telemetry.New(telemetry.NewRegistry(), telemetry.Build{})
	o.AllowImport = func(string) bool { return true }
	var err error
	if w.calls, err = runtime.New(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
	if w.op, err = operator.New(operator.Options{Store: w.store, Sandbox: w.box, Calls: w.calls, Secrets: fakeSecrets{},
		Metrics: o.Metrics, Now: o.Now}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) stop() {
	if err := w.calls.Stop(context.Background()); err != nil {
		w.t.Error(err)
	}
}

func (w *world) log(format string, args ...any) {
	w.steps = append(w.steps, fmt.Sprintf(format, args...))
}

func (w *world) story() string {
	out := ""
	for _, line := range w.steps {
		out += line + "\n"
	}
	for _, g := range w.known {
		out += fmt.Sprintf("%s %s %s %+v approved %v\n", g.ID, g.Trigger, g.Code, w.specs[g.Code], g.Approved)
	}
	return out
}

func (w *world) policy(change func(p *agent.Policy)) {
	_, err := w.calls.ChangePolicy(w.t.Context(), func(p agent.Policy) (agent.Policy, *agent.AuditEntry, error) {
		change(&p)
		return p, &agent.AuditEntry{ID: ids.New("aud"), Action: "policy.change"}, nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) artifact() *agent.Artifact {
	a, err := w.op.Artifact(w.t.Context(), "r", "m")
	if err != nil {
		return &agent.Artifact{}
	}
	return a
}

// serving returns the generation that answers calls, or nil.
func (w *world) serving() *agent.Generation {
	a := w.artifact()
	if g := a.Current(); !w.calls.Policy().ApprovalRequired || g != nil && g.Approved {
		return g
	}
	for _, g := range append(a.Lineage(), a.Generations...) {
		if g.Approved {
			return g
		}
	}
	return nil
}

// held returns the examples that the serving generation satisfies.
func (w *world) held() (ids []string) {
	g := w.serving()
	if g == nil || len(w.artifact().ActiveExamples()) == 0 {
		return nil
	}
	run, err := w.op.RunExamples(w.t.Context(), operator.ExampleQuery{Role: "r", Method: "m", Generation: g.ID})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range run.Results {
		if r.Result == proof.ExamplePassed {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

// step makes one random event happen, and checks the invariants.
func (w *world) step() {
	w.clock.advance(time.Duration(1+w.rand.IntN(90)) * time.Minute)
	for _, g := range w.artifact().Generations {
		w.known[g.ID] = g
	}
	before, held := w.serving(), w.held()
	automatic := true
	switch n := w.rand.IntN(20); {
	case n < 9:
		w.call(w.rand.IntN(inputs), before)
	case n < 12:
		w.judge()
	case n == 12:
		w.putExample()
		automatic = false
	case n == 13:
		w.operate("regenerate", "")
	case n == 14:
		w.operate("approve", "")
		automatic = false
	case n == 15:
		w.operate("rollback", "")
		automatic, w.served = false, [inputs]bool{} // a person may return to a program that answers less
	case n == 16:
		w.source.Store(w.rand.Int64N(3))
		w.log("the source is in state %d", w.source.Load())
		automatic = false
	case n == 17:
		on := w.rand.IntN(3) == 0
		w.policy(func(p *agent.Policy) { p.ApprovalRequired = on })
		w.log("approval required: %v", on)
		automatic = false
	case n == 18:
		w.stop()
		w.start()
		w.log("restart")
	default:
		w.log("the correction is tried again")
		<-w.calls.Corrections.Correct("r", "m", "me")
	}
	if automatic {
		w.check(before, held)
	}
}

// call calls the method. If the serving program answers the input, so must the call.
func (w *world) call(input int, g *agent.Generation) {
	res, err := w.calls.Call(w.t.Context(), runtime.CallRequest{SessionID: w.session, Method: "m",
		Args: []json.RawMessage{json.RawMessage(strconv.Itoa(input))}})
	if err != nil {
		w.t.Fatal(err)
	}
	var reply runtime.Reply
	if err := json.Unmarshal(res.Body, &reply); err != nil {
		w.t.Fatal(err)
	}
	w.log("%s, call %d: %s %s of %s (%s)", res.CallID, input, reply.Outcome.Value, reply.Outcome.ErrorType,
		reply.Program.Generation, reply.Program.Selection.Reason)
	if reply.Outcome.OK() {
		w.served[input] = true
		w.made = append(w.made, res.CallID)
	}
	s := spec{}
	if g != nil {
		s = w.specs[g.Code]
	}
	if g != nil && w.served[input] && isValue(s.on(input, int(w.source.Load()))) && !reply.Outcome.OK() &&
		!w.wantsError(input) {
		w.t.Errorf("input %d, that %s answers with %s, was answered with %s", input, g.ID,
			s.on(input, int(w.source.Load())), reply.Outcome.ErrorType)
	}
}

// wantsError reports whether people said that an error is right for the input or that an answer to it was wrong (then
// an example has the right answer), or requested a program that lists the error among its changed answers.
func (w *world) wantsError(input int) bool {
	a, args := w.artifact(), []json.RawMessage{json.RawMessage(strconv.Itoa(input))}
	if slices.ContainsFunc(a.Generations, func(g *agent.Generation) bool {
		return slices.ContainsFunc(g.ChangedAnswers, func(c agent.ChangedAnswer) bool {
			return c.ErrorType != "" && agent.SameInput(c.Args, c.Kwargs, args, nil)
		})
	}) {
		return true
	}
	// superseded or not, it dropped the fixtures
	calledWrong := slices.ContainsFunc(a.Verdicts, func(v agent.Verdict) bool {
		return v.Verdict == agent.VerdictWrong && agent.SameInput(v.Args, v.Kwargs, args, nil)
	})
	return calledWrong || slices.ContainsFunc(a.ActiveExamples(),
		func(x agent.Example) bool { return x.SameInput(args, nil) && x.Expect.ErrorType != "" })
}

// check compares the serving generation with the one before, if only a forge happened in between.
func (w *world) check(before *agent.Generation, held []string) {
	now := w.serving()
	if before == nil || now == nil || now.ID == before.ID {
		return
	}
	was, is := w.specs[before.Code], w.specs[now.Code]
	for i := range inputs {
		if w.served[i] && isValue(was.on(i, int(w.source.Load()))) && !isValue(is.on(i, int(w.source.Load()))) &&
			!w.wantsError(i) {
			w.t.Errorf("%s took the place of %s and answers %s to input %d, which was answered", now.ID, before.ID,
				is.on(i, int(w.source.Load())), i)
		}
	}
	still := w.held()
	for _, id := range held {
		if x := w.artifact().Example(id); x != nil && !slices.Contains(still, id) && !w.skipped(now, id) {
			w.t.Errorf("%s took the place of %s and broke the example %s of input %s", now.ID, before.ID, id, x.Args[0])
		}
	}
}

// skipped reports whether the example does not apply to the generation.
func (w *world) skipped(g *agent.Generation, id string) bool {
	run, err := w.op.RunExamples(w.t.Context(), operator.ExampleQuery{Role: "r", Method: "m", Generation: g.ID})
	if err != nil {
		w.t.Fatal(err)
	}
	return slices.ContainsFunc(run.Results, func(r proof.ExampleResult) bool {
		return r.ID == id &&
			r.Result == proof.ExampleSkipped
	})
}

// judge judges a random call right or wrong.
func (w *world) judge() {
	if len(w.made) == 0 {
		return
	}
	id := w.made[w.rand.IntN(len(w.made))]
	j := operator.Judgement{Verdict: agent.VerdictWrong, Actor: "me", MayOperate: true, Note: "look again"}
	switch w.rand.IntN(4) {
	case 0:
		j.Verdict = agent.VerdictRight
	case 1:
		j.ExpectedErrorType = "not_found"
	case 2:
		j.Expected = json.RawMessage(strconv.Itoa(10 * w.rand.IntN(inputs)))
	}
	got, tried, err := w.op.Judge(w.t.Context(), id, j)
	if err != nil {
		w.log("judge %s: %v", id, err)
		return
	}
	if tried != nil {
		<-tried
	}
	w.log("%s: %s, expected %s%s, correction %s", id, got.Verdict, j.Expected, j.ExpectedErrorType,
		got.Correction.State)
}

func (w *world) putExample() {
	input := w.rand.IntN(inputs)
	x := agent.Example{Args: []json.RawMessage{json.RawMessage(strconv.Itoa(input))},
		Expect: agent.Expectation{Value: json.RawMessage(strconv.Itoa(input * 10))}}
	if _, err := w.op.PutExamples(w.t.Context(), operator.ExamplesPut{Role: "r", Method: "m",
		Examples: []agent.Example{x}, Revision: store.AnyRevision, Actor: "me"}); err != nil {
		w.t.Fatal(err)
	}
	w.log("example: %d must give %d", input, input*10)
}

func (w *world) operate(action, generation string) {
	a, err := w.op.Operate(w.t.Context(), "r", "m", operator.Operation{Action: action, Actor: "me", Reason: "because",
		Generation: generation})
	if err != nil {
		w.log("%s: %v", action, err)
		return
	}
	if a.Correction.Pending() {
		<-w.calls.Corrections.Correct("r", "m", "me") // the operation caused another attempt
	}
	w.log("%s: current %s", action, a.CurrentID)
}
