package spend_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/spend"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// Replicas cannot exceed a cap together: of forty requests over three of them, with room for three, three are sent.
func TestReplicasKeepCaps(t *testing.T) {
	t.Parallel()
	const each, room = 1000, 3*1000 + 999
	for name, tt := range map[string]struct {
		policy agent.SpendPolicy
		daemon int64
	}{
		"day": {policy: agent.SpendPolicy{DayTokens: room}}, "month": {policy: agent.SpendPolicy{MonthTokens: room}},
		"method": {policy: agent.SpendPolicy{MethodDayTokens: room}},
		"owner":  {policy: agent.SpendPolicy{OwnerDayTokens: room}}, "daemon": {daemon: room},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storetest.NewMemory(time.Now)
			policy := agent.DefaultPolicy()
			policy.Spend = tt.policy
			var accounts []*spend.Account
			for i := range 3 {
				l, err := spend.New(t.Context(), spend.Options{Store: s,
					Replica: func() string { return fmt.Sprint("rep_", i) }, DayTokens: tt.daemon, Now: noon},
					agent.DefaultNamespace)
				if err != nil {
					t.Fatal(err)
				}
				of := agent.DefaultNamespace
				if tt.daemon > 0 {
					of = agent.Namespace(fmt.Sprint("ns-", i))
					if _, err := s.CreateNamespace(t.Context(), of, nil); err != nil {
						t.Fatal(err)
					}
				}
				a, err := l.Account(t.Context(), of, func() *agent.Policy { return &policy })
				if err != nil {
					t.Fatal(err)
				}
				accounts = append(accounts, a)
			}
			if got := forty(t, accounts, each); got != 3 {
				t.Errorf("got %d requests sent, want 3", got)
			}
			if got := forty(t, accounts, each); got != 0 {
				t.Errorf("once it is used: got %d requests sent, want 0", got)
			}
			if got := forty(t, accounts, 300); got != 3 {
				t.Errorf("of smaller ones, with room for three: got %d requests sent, want 3", got)
			}
		})
	}
}

// forty makes forty concurrent requests, settles those that were sent at their maximum cost, and returns their number.
func forty(t *testing.T, accounts []*spend.Account, tokens int64) int64 {
	t.Helper()
	var sent atomic.Int64
	var group sync.WaitGroup
	for i := range 40 {
		charge := accounts[i%len(accounts)].Charge(spend.Request{Role: "r", Method: "m", Owner: "ann"})
		group.Go(func() {
			settle, err := charge(t.Context(), provider.Estimate{Prompt: tokens})
			var over *spend.ExceededError
			switch {
			case err == nil:
				sent.Add(1)
				settle(provider.Bill{Reported: true, Prompt: tokens})
			case !errors.As(err, &over):
				t.Errorf("got %v, want that a cap is used up", err)
			}
		})
	}
	group.Wait()
	return sent.Load()
}

// A starting replica leaves the reservations of others alone and counts them. A reservation unsettled for hours is
// spent.
func TestReplicasReservations(t *testing.T) {
	t.Parallel()
	s := storetest.NewMemory(time.Now)
	policy := agent.DefaultPolicy()
	policy.Spend.DayTokens = 1500
	account := func() *spend.Account {
		l, err := spend.New(t.Context(), spend.Options{Store: s, Replica: func() string { return "rep_1" }, Now: noon},
			agent.DefaultNamespace)
		if err != nil {
			t.Fatal(err)
		}
		a, err := l.Account(t.Context(), agent.DefaultNamespace, func() *agent.Policy { return &policy })
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	charge := func(a *spend.Account) (func(provider.Bill), error) {
		return a.Charge(spend.Request{Role: "r", Method: "m", Owner: "ann"})(context.Background(),
			provider.Estimate{Prompt: 1000})
	}
	settle, err := charge(account())
	if err != nil {
		t.Fatal(err)
	}
	second := account()
	if _, err := charge(second); err == nil {
		t.Error("what another replica reserved was given away")
	}
	settle(provider.Bill{Reported: true, Prompt: 400})
	settle, err = charge(second)
	if err != nil {
		t.Errorf("after it was settled with less: got %v", err)
	} else {
		settle(provider.Bill{Reported: true, Prompt: 100})
	}
	n, err := s.Namespace(agent.DefaultNamespace)
	if err != nil {
		t.Fatal(err)
	}
	spent, err := n.Spent(t.Context(), 0, 1<<30)
	if err != nil || len(spent.Open) != 0 || len(spent.Rows) != 1 || spent.Rows[0].Models[0].Sum() != 500 {
		t.Errorf("got %+v, %v; want 500 tokens and nothing open", spent, err)
	}
}

// noon is far from the end of a day, when caps reset.
func noon() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }
