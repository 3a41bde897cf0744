package spend_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/spend"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// rig is a ledger over a store in memory, with its own clock.
type rig struct {
	t      *testing.T
	ctx    context.Context
	store  *storetest.Memory
	ledger *spend.Ledger
	policy atomic.Pointer[agent.Policy]
	log    bytes.Buffer
	now    atomic.Int64
	daemon int64
}

func newRig(t *testing.T, p agent.SpendPolicy) *rig {
	t.Helper()
	r := &rig{t: t, ctx: t.Context()}
	r.at("2026-11-22T12:00:00Z")
	r.store = storetest.NewMemory(r.clock)
	r.set(p)
	r.restart()
	return r
}

func (r *rig) clock() time.Time { return time.Unix(0, r.now.Load()).UTC() }

func (r *rig) at(when string) {
	r.t.Helper()
	t, err := time.Parse(time.RFC3339, when)
	if err != nil {
		r.t.Fatal(err)
	}
	r.now.Store(t.UnixNano())
}

func (r *rig) set(p agent.SpendPolicy) {
	policy := agent.DefaultPolicy()
	policy.Spend = p
	r.policy.Store(&policy)
}

// restart makes a new ledger from the store, as after a crash.
func (r *rig) restart() {
	r.t.Helper()
	var err error
	r.ledger, err = spend.New(r.ctx, spend.Options{Store: r.store, Now: r.clock, Logger: zerolog.New(&r.log),
		DayTokens: r.daemon}, "default", "acme")
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) account(name agent.Namespace) *spend.Account {
	r.t.Helper()
	a, err := r.ledger.Account(r.ctx, name, r.policy.Load)
	if err != nil {
		r.t.Fatal(err)
	}
	return a
}

// charge reserves tokens in the default namespace.
func (r *rig) charge(role, owner string, tokens int64) (func(provider.Bill), error) {
	r.t.Helper()
	return r.account("default").Charge(spend.Request{Role: role, Method: "m", Owner: owner, Model: "gpt"})(r.ctx,
		provider.Estimate{Prompt: tokens / 2, Completion: tokens - tokens/2})
}

func (r *rig) spent(role, owner string, reserved, used int64) {
	r.t.Helper()
	settle, err := r.charge(role, owner, reserved)
	if err != nil {
		r.t.Fatal(err)
	}
	settle(bill(used))
}

func bill(tokens int64) provider.Bill { return provider.Bill{Reported: true, Prompt: tokens} }

// limit returns the figures of a cap.
func (r *rig) limit(scope, window string) spend.Limit {
	r.t.Helper()
	report, err := r.account("default").Usage(r.ctx, spend.UsageQuery{By: spend.ByDay, Daemon: true})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, l := range report.Limits {
		if l.Scope == scope && l.Window == window {
			return l
		}
	}
	return spend.Limit{}
}

// Each kind of cap refuses requests that could exceed it, names itself in the error, and does not affect others.
func TestCaps(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name          string
		policy        agent.SpendPolicy
		daemon        int64
		scope, window string
		resets        string
		elsewhere     bool // another method of another owner is not affected
		tomorrow      bool
	}{
		{"day", agent.SpendPolicy{DayTokens: 1000}, 0, "namespace", "day", "2026-11-23T00:00:00Z", false, true},
		{"month", agent.SpendPolicy{MonthTokens: 1000}, 0, "namespace", "month", "2026-12-01T00:00:00Z", false, false},
		{"method", agent.SpendPolicy{MethodDayTokens: 1000}, 0, "method", "day", "2026-11-23T00:00:00Z", true, true},
		{"owner", agent.SpendPolicy{OwnerDayTokens: 1000}, 0, "owner", "day", "2026-11-23T00:00:00Z", true, true},
		{"daemon", agent.SpendPolicy{}, 1000, "daemon", "day", "2026-11-23T00:00:00Z", false, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, tt.policy)
			r.daemon = tt.daemon
			r.restart()
			r.spent("a", "alice", 900, 600)
			_, err := r.charge("a", "alice", 500)
			var over *spend.ExceededError
			if !errors.As(err, &over) {
				t.Fatalf("got %v, want a cap to refuse it", err)
			}
			wantUsed := int64(600)
			if tt.scope == "daemon" {
				wantUsed = 1000 // the use by others is not disclosed
			}
			if over.Scope != tt.scope || over.Window != tt.window || over.Limit.Limit != 1000 ||
				over.Used != wantUsed || over.ResetsAt.Format(time.RFC3339) != tt.resets {
				t.Errorf("got %+v", over)
			}
			if d := over.Details(); d["limit"] != int64(1000) || d["used"] != wantUsed || d["resets_at"] != tt.resets {
				t.Errorf("details %v", d)
			}
			for _, again := range []bool{false, true} {
				if again {
					r.restart()
				}
				if l := r.limit(tt.scope, tt.window); l.Used != 600 || l.Reserved != 0 {
					t.Errorf("after the restart: %v: %+v", again, l)
				}
			}
			if _, err := r.charge("b", "bob", 500); (err == nil) != tt.elsewhere {
				t.Errorf("elsewhere: %v", err)
			}
			r.spent("a", "alice", 400, 400)
			r.at("2026-11-23T00:00:00Z")
			if _, err := r.charge("a", "alice", 1000); (err == nil) != tt.tomorrow {
				t.Errorf("tomorrow: %v", err)
			}
			r.at("2026-12-01T00:00:00Z")
			if _, err := r.charge("a", "alice", 1000); err != nil {
				t.Errorf("next month: %v", err)
			}
		})
	}
}

// Of forty concurrent requests with room for three, three are sent, whatever each then costs.
func TestFortyAtOnce(t *testing.T) {
	t.Parallel()
	for _, p := range []agent.SpendPolicy{{DayTokens: 350}, {MonthTokens: 350}, {MethodDayTokens: 350},
		{OwnerDayTokens: 350}, {DayTokens: 1000}} {
		r := newRig(t, p)
		if p.DayTokens == 1000 {
			r.set(agent.SpendPolicy{})
			r.daemon = 350
			r.restart()
		}
		a := r.account("default")
		var sent, refused atomic.Int64
		var together, group sync.WaitGroup
		together.Add(40)
		for range 40 {
			group.Go(func() {
				settle, err := a.Charge(spend.Request{Role: "r", Method: "m", Owner: "o"})(r.ctx,
					provider.Estimate{Completion: 100})
				var over *spend.ExceededError
				switch {
				case err == nil:
					sent.Add(1)
				case errors.As(err, &over):
					refused.Add(1)
				}
				together.Done()
				together.Wait()
				if err == nil {
					settle(provider.Bill{})
				}
			})
		}
		group.Wait()
		if sent.Load() != 3 || refused.Load() != 37 {
			t.Errorf("%+v: %d were sent and %d refused", p, sent.Load(), refused.Load())
		}
	}
}

// Used and reserved tokens together never exceed a cap, as long as no request costs more than announced. Used tokens
// equal the sum of the settlements, before and after a crash.
func TestUsedIsWhatWasSettled(t *testing.T) {
	t.Parallel()
	const limit = 5000
	r := newRig(t, agent.SpendPolicy{DayTokens: limit})
	a := r.account("default")
	var settled atomic.Int64
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			random := rand.New(rand.NewPCG(7, uint64(worker)))
			for range 200 {
				most := 1 + random.Int64N(400)
				settle, err := a.Charge(spend.Request{Role: fmt.Sprint("r", random.IntN(3)), Method: "m",
					Owner: fmt.Sprint("o", random.IntN(3)), Model: "gpt"})(r.ctx, provider.Estimate{Prompt: most})
				if err != nil {
					continue
				}
				if l := r.limit("namespace", "day"); l.Used+l.Reserved > limit {
					t.Errorf("%d used and %d reserved", l.Used, l.Reserved)
				}
				switch used := random.Int64N(most + 1); random.IntN(4) {
				case 0:
					settle(provider.Bill{Free: true})
				case 1:
					settle(provider.Bill{})
					settled.Add(most)
				default:
					settle(bill(used))
					settled.Add(used)
				}
			}
		})
	}
	group.Wait()
	for range 2 {
		if l := r.limit("namespace", "day"); l.Used != settled.Load() || l.Reserved != 0 || l.Used > limit {
			t.Errorf("got %+v, want %d used", l, settled.Load())
		}
		r.restart()
	}
	report, err := r.account("default").Usage(r.ctx, spend.UsageQuery{By: spend.ByOwner})
	if err != nil {
		t.Fatal(err)
	}
	var sum int64
	for _, row := range report.Data {
		sum += row.PromptTokens + row.CompletionTokens
	}
	if sum != settled.Load() {
		t.Errorf("owners used %d, want %d", sum, settled.Load())
	}
}

// A request without a known end counts in full after the restart. A later restart does not count it again.
func TestCrashBetweenSendAndSettle(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.SpendPolicy{DayTokens: 1000, MethodDayTokens: 1000, OwnerDayTokens: 1000})
	r.spent("a", "alice", 100, 10)
	if _, err := r.charge("a", "alice", 700); err != nil {
		t.Fatal(err)
	}
	if l := r.limit("namespace", "day"); l.Used != 10 || l.Reserved != 700 {
		t.Errorf("under way: %+v", l)
	}
	for range 3 {
		r.restart()
		for _, scope := range []string{"namespace", "method", "owner"} {
			if l := r.limit(scope, "day"); l.Used != 710 || l.Reserved != 0 {
				t.Errorf("%+v", l)
			}
		}
	}
	report, err := r.account("default").Usage(r.ctx, spend.UsageQuery{By: spend.ByMethod})
	if err != nil || len(report.Data) != 1 || report.Data[0].EstimatedTokens != 700 ||
		report.Data[0].ModelRequests != 2 {
		t.Errorf("got %+v, %v", report.Data, err)
	}
}

// Days and months are in UTC. Time zones and leap days do not move them.
func TestWindows(t *testing.T) {
	t.Parallel()
	tests := []struct{ spent, at, day, month string }{ // use of the day and the month at that time
		{"2024-02-28T23:59:59Z", "2024-02-29T00:00:00Z", "0", "100"},
		{"2024-02-29T23:59:59Z", "2024-03-01T00:00:00Z", "0", "0"},
		{"2026-02-28T23:59:59Z", "2026-03-01T00:00:00Z", "0", "0"},
		{"2026-12-31T23:59:59Z", "2027-01-01T00:00:00Z", "0", "0"},
		{"2026-03-29T00:30:00+01:00", "2026-03-28T23:59:59Z", "100", "100"}, // summer time begins in Europe
		{"2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00", "100", "100"},
		{"2026-11-22T23:30:00-05:00", "2026-11-23T23:59:00Z", "100", "100"},
	}
	for _, tt := range tests {
		r := newRig(t, agent.SpendPolicy{DayTokens: 1000, MonthTokens: 1000})
		r.at(tt.spent)
		r.restart()
		r.spent("a", "alice", 100, 100)
		r.at(tt.at)
		for range 2 {
			if day, month := r.limit("namespace", "day"), r.limit("namespace",
				"month"); fmt.Sprint(day.Used) != tt.day || fmt.Sprint(month.Used) != tt.month {
				t.Errorf("%s, at %s: %d and %d used", tt.spent, tt.at, day.Used, month.Used)
			}
			r.restart()
		}
	}
}

// A clock that goes back restores no tokens. A clock that jumps ahead and returns finds the earlier use.
func TestClockGoesBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.SpendPolicy{DayTokens: 1000, OwnerDayTokens: 1000})
	r.at("2026-11-23T00:00:01Z")
	r.spent("a", "alice", 900, 900)
	r.at("2026-11-22T23:59:59Z")
	if _, err := r.charge("a", "alice", 200); err == nil {
		t.Error("a second back opened the day before")
	}
	r.at("2026-11-26T00:00:00Z")
	settle, err := r.charge("a", "alice", 200)
	if err != nil {
		t.Fatal(err)
	}
	r.at("2026-11-23T12:00:00Z")
	settle(bill(200))
	for range 2 {
		if _, err := r.charge("a", "alice", 200); err == nil {
			t.Error("a jump ahead and back opened the day again")
		}
		r.restart()
	}
}

// A cap below the use refuses requests at once. A higher one accepts them again.
func TestPolicyChanges(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.SpendPolicy{})
	r.spent("a", "alice", 900, 900)
	r.set(agent.SpendPolicy{DayTokens: 500})
	if _, err := r.charge("a", "alice", 1); err == nil {
		t.Error("passed a cap that is below what was used")
	}
	if ratio, near := r.account("default").Nearly("bob", "b", "m", false); !near || ratio != 1.8 {
		t.Errorf("ratio %v", ratio)
	}
	r.set(agent.SpendPolicy{DayTokens: 2000})
	if _, err := r.charge("a", "alice", 100); err != nil {
		t.Error(err)
	}
	if _, near := r.account("default").Nearly("bob", "b", "m", false); near {
		t.Error("warned below 80 percent")
	}
}

// At 80 percent there is one log line, a ratio for the metric and one for the header. If the server reports more than
// the estimate, the report counts.
func TestWarnings(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.SpendPolicy{DayTokens: 1000, OwnerDayTokens: 10_000})
	r.spent("a", "alice", 100, 790)
	if _, near := r.account("default").Nearly("alice", "a", "m",
		false); near || strings.Contains(r.log.String(), "80 percent are used") {
		t.Errorf("warned early: %s", r.log.String())
	}
	if !strings.Contains(r.log.String(), "reported more tokens") {
		t.Errorf("the log lacks the report of more than was asked for: %s", r.log.String())
	}
	for range 3 {
		r.spent("a", "alice", 20, 20)
	}
	if n := strings.Count(r.log.String(), "80 percent are used"); n != 1 {
		t.Errorf("%d warnings: %s", n, r.log.String())
	}
	if ratio, near := r.account("default").Nearly("bob", "b", "m", false); !near || ratio != 0.85 {
		t.Errorf("ratio %v", ratio)
	}
	if _, near := r.account("acme").Nearly("bob", "b", "m", false); near {
		t.Error("another namespace is warned")
	}
	if got := r.ledger.Ratios(); got["day"] != 0.85 || got["owner_day"] != 0.085 || got["month"] != 0 ||
		len(got) != len(spend.Windows()) {
		t.Errorf("ratios %v", got)
	}
	r.at("2026-11-23T00:00:00Z")
	if _, near := r.account("default").Nearly("bob", "b", "m", false); near {
		t.Error("warned on the next day")
	}
	r.spent("a", "alice", 900, 900)
	if n := strings.Count(r.log.String(), "80 percent are used"); n != 2 {
		t.Errorf("%d warnings in two days", n)
	}
}

// If the daemon's cap is nearly used, this is visible in all namespaces to those who may see it.
func TestWarningsOfTheDaemonsCap(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.SpendPolicy{DayTokens: 1000})
	r.daemon = 1000
	r.restart()
	for _, step := range []struct {
		more int64
		near bool
	}{{700, false}, {150, true}} {
		r.spent("a", "alice", step.more, step.more)
		for _, name := range []agent.Namespace{"default", "acme"} {
			if ratio, near := r.account(name).Nearly("bob", "b", "m",
				true); near != step.near || near && ratio != 0.85 {
				t.Errorf("in %s %v, %v; want %v", name, ratio, near, step.near)
			}
		}
	}
	if _, near := r.account("acme").Nearly("bob", "b", "m", false); near {
		t.Error("somebody who may not see it is warned of the daemon's cap")
	}
}

// Free requests are counted and pass every cap. A nil account charges nothing.
func TestFree(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.SpendPolicy{DayTokens: 100})
	r.spent("a", "alice", 100, 100)
	r.spent("a", "alice", 0, 0)
	report, err := r.account("default").Usage(r.ctx, spend.UsageQuery{By: spend.ByRole})
	if err != nil || len(report.Data) != 1 || report.Data[0].ModelRequests != 2 || report.Data[0].PromptTokens != 100 {
		t.Errorf("got %+v, %v", report.Data, err)
	}
	var none *spend.Account
	if _, near := none.Nearly("", "", "", false); near || none.Charge(spend.Request{}) != nil {
		t.Error("a nil account charges")
	}
}

// If a reservation cannot be stored, nothing is sent or reserved.
func TestStoreRefuses(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.SpendPolicy{DayTokens: 100})
	a := r.account("default")
	if err := r.store.Close(r.ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Charge(spend.Request{})(r.ctx, provider.Estimate{Prompt: 100}); !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("got %v", err)
	}
	if n := r.ledger.Reserved(); n != 0 {
		t.Errorf("%d tokens stay reserved", n)
	}
}

// Huge figures do not overflow to room below a cap.
func TestHugeReports(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.SpendPolicy{})
	for range 100 {
		r.spent("a", "alice", 10, 1<<41)
	}
	r.set(agent.SpendPolicy{DayTokens: 1_000_000})
	if _, err := r.charge("a", "alice", 1); err == nil || math.Signbit(r.ledger.Ratios()["day"]) {
		t.Errorf("got %v, %v", err, r.ledger.Ratios())
	}
}
