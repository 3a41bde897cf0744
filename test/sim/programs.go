package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/runtimetest"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// role is the role of all sessions.
const role = "clerk"

// The methods that clients call.
const (
	add    = "add"    // returns the sum of two numbers; most of its programs are wrong
	count  = "count"  // adds to a number of the context, and returns it
	note   = "note"   // adds a text to a list of the context, and returns its length
	relay  = "relay"  // calls add
	recall = "recall" // returns the number of records of the session before the call
	refuse = "refuse" // returns an authored error
)

var methods = []string{add, count, note, relay, recall, refuse}

// programs returns the Go functions that stand in for programs, by source. Each method has several, so that a later
// generation is another program. A liar's answers are wrong.
func programs() (all map[string]runtimetest.Run, facts map[string]report.Facts) {
	all, facts = map[string]runtimetest.Run{}, map[string]report.Facts{}
	for _, m := range methods {
		for i := range variants {
			all[source(m, i)] = right[m]
			facts[source(m, i)] = factsOf(m)
		}
	}
	for i := range variants {
		all[lie(i)], facts[lie(i)] = sums(1), factsOf(add)
	}
	return all, facts
}

// variants is the number of programs of each kind.
const variants = 8

func source(method string, i int) string { return fmt.Sprintf("%s, variant %d", method, i) }
func lie(i int) string                   { return fmt.Sprintf("add, one too many, variant %d", i) }

func factsOf(method string) report.Facts {
	f := report.Facts{UsesArgs: true}
	switch method {
	case count, note:
		f.ContextReads, f.ContextWrites = []string{method}, []string{method}
	case relay:
		f.UsesTools, f.Tools = true, []string{role + "." + add}
	case recall:
		f.UsesArgs, f.HistoryAccess = false, true
	}
	return f
}

// right holds the correct program of each method.
var right = map[string]runtimetest.Run{add: sums(0), count: counts, note: notes, relay: relays, recall: recalls,
	refuse: runtimetest.Raises("refused", "as it should be")}

// sums returns a program that adds two numbers and is wrong by off.
func sums(off int) runtimetest.Run {
	return func(_ context.Context, q sandbox.Request, _ sandbox.Host) sandbox.Result {
		a, b := number(q.Args, 0), number(q.Args, 1)
		return runtimetest.Value(fmt.Sprint(a + b + off))
	}
}

func counts(_ context.Context, q sandbox.Request, _ sandbox.Host) sandbox.Result {
	n := 0
	_ = json.Unmarshal(q.Context[count], &n) // absent at first
	return changes(count, fmt.Sprint(n+number(q.Args, 0)), fmt.Sprint(n+number(q.Args, 0)))
}

func notes(_ context.Context, q sandbox.Request, _ sandbox.Host) sandbox.Result {
	list := []json.RawMessage{}
	_ = json.Unmarshal(q.Context[note], &list) // absent at first
	list = append(list, q.Args[0])
	text, _ := json.Marshal(list) // of JSON values: cannot fail
	return changes(note, string(text), fmt.Sprint(len(list)))
}

// changes returns the result of a program that sets a key of the context.
func changes(key, text, value string) sandbox.Result {
	res := runtimetest.Value(value)
	res.Context = &agent.ContextChange{Set: map[string]json.RawMessage{key: json.RawMessage(text)}}
	return res
}

func relays(ctx context.Context, q sandbox.Request, h sandbox.Host) sandbox.Result {
	out := h.Call(ctx, role, add, q.Args, nil)
	if !out.OK() {
		return sandbox.Result{Authored: &sandbox.AuthoredError{Type: out.ErrorType, Message: out.ErrorMessage}}
	}
	res := runtimetest.Value(string(out.Value))
	res.Effects.Nested = 1
	return res
}

func recalls(ctx context.Context, _ sandbox.Request, h sandbox.Host) sandbox.Result {
	text, err := h.History(ctx, true, false, 0, 0)
	var records []json.RawMessage
	if err != nil || json.Unmarshal(text, &records) != nil {
		return runtimetest.Failure("execution", "the history cannot be read")
	}
	return runtimetest.Value(fmt.Sprint(len(records)))
}

func number(args []json.RawMessage, i int) (n int) {
	if i < len(args) {
		_ = json.Unmarshal(args[i], &n)
	}
	return n
}

// weather holds the current troubles of the model and of programs.
type weather struct {
	mu                sync.Mutex
	random            *rand.Rand
	away, dying, slow time.Time      // ends of the troubles; guarded by mu, as is tokens
	tokens            map[string]int // of the requests to the model, by day
}

// set begins one of the troubles.
func (w *weather) set(trouble *time.Time, until time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*trouble = until
}

// during reports whether a trouble lasts.
func (w *weather) during(trouble *time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Before(*trouble)
}

func (w *weather) draw(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.random.IntN(n)
}

// wait waits for a drawn time up to most, or until ctx ends. No two waits end at the same time, so that the clock
// decides which goroutine goes on first.
func (w *weather) wait(ctx context.Context, most time.Duration) error {
	w.mu.Lock()
	d := time.Duration(w.random.Int64N(int64(most)))
	w.mu.Unlock()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// A box runs programs, which the weather slows down and kills.
type box struct {
	*runtimetest.Box
	*weather
}

func (b *box) Run(ctx context.Context, q sandbox.Request, h sandbox.Host) sandbox.Result {
	most := 20 * time.Millisecond
	if b.during(&b.slow) {
		most = 20 * time.Second
	}
	if err := b.wait(ctx, most); err != nil {
		return sandbox.Result{Failure: &sandbox.Failure{Type: "canceled", Message: err.Error(), Ours: true}}
	}
	if b.during(&b.dying) && b.draw(2) == 0 {
		return sandbox.Result{Failure: &sandbox.Failure{Type: "runner_crash", Message: "the runner died",
			Detail: "killed", Ours: true}}
	}
	return b.Box.Run(ctx, q, h)
}

// Status takes a moment. A daemon asks for it between the starts of its store and of its maintenance, which would
// otherwise wake at the same instants, in any order.
func (b *box) Status() sandbox.Status {
	time.Sleep(137 * time.Microsecond)
	return b.Box.Status()
}

// A model writes programs: most programs of add are wrong, the others are right, and the gate refuses one in ten. The
// weather delays its replies and makes it fail.
type model struct{ *weather }

// The tokens of each request.
const (
	promptTokens     = 100
	completionTokens = 50
)

func (m *model) Name() string { return "simulated" }

func (m *model) Chat(context.Context, provider.ChatRequest) (provider.ChatReply, error) {
	return provider.ChatReply{}, &provider.Error{Type: agent.ErrProvider, Reason: "no_answer", Message: "no chat"}
}

func (m *model) Program(ctx context.Context, r provider.Request) (provider.Reply, error) {
	settle, err := r.Charge(ctx, provider.Estimate{Prompt: 2 * promptTokens, Completion: 10 * completionTokens})
	if err != nil {
		return provider.Reply{}, &provider.ChargeError{Err: err}
	}
	if m.during(&m.away) {
		err := m.wait(ctx, 3*time.Second)
		settle(provider.Bill{Free: true})
		if err != nil {
			return provider.Reply{}, err
		}
		return provider.Reply{}, &provider.Error{Type: agent.ErrProvider, Reason: "server_error",
			Message: "the model is away", Usage: agent.Usage{ModelRequests: 1}}
	}
	defer m.ask(time.Now()) // after the daemon knows the tokens, which are reserved until then
	usage := agent.Usage{ModelRequests: 1, PromptTokens: promptTokens, CompletionTokens: completionTokens}
	if err := m.wait(ctx, 5*time.Second); err != nil {
		settle(provider.Bill{})
		return provider.Reply{Usage: usage}, err
	}
	settle(provider.Bill{Reported: true, Prompt: promptTokens, Completion: completionTokens})
	return provider.Reply{Code: m.write(r.Method), Model: "simulated", Usage: usage}, nil
}

// ask counts the tokens of a request that was sent at that time.
func (m *model) ask(at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tokens[at.UTC().Format(time.DateOnly)] += promptTokens + completionTokens
}

// write returns a program of the method.
func (m *model) write(method string) string {
	n, i := m.draw(10), m.draw(variants)
	switch {
	case n == 0:
		return "no program " + fmt.Sprint(i)
	case n < 7 && method == add:
		return lie(i)
	}
	return source(strings.TrimSpace(method), i)
}
