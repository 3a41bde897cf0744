package storetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// asking is one of several replicas that reserve tokens.
type asking struct {
	*rig
	n       store.Namespace
	replica string
	ids     *atomic.Int64
}

// asking returns replicas with these ids, each with its own handle.
func (r *rig) asking(replicas ...string) (out []asking) {
	ids := new(atomic.Int64)
	for _, id := range replicas {
		_, n := r.another()
		out = append(out, asking{r, n, id, ids})
	}
	r.joined(replicas...)
	return out
}

// reserve reserves tokens and returns the reservation, or nil if a cap has no room.
func (a asking) reserve(tokens int64, caps ...store.Cap) *agent.Spend {
	a.Helper()
	s := agent.Spend{ID: fmt.Sprintf("spend_%03d", a.ids.Add(1)), Day: agent.DayOf(a.clock.now()), Role: "calculator",
		Method: "add", Owner: "alice", Model: "m",
		Tokens: agent.Tokens{Requests: 1, Prompt: tokens}}
	err := a.n.ReserveWithin(a.ctx, s, a.replica, caps)
	var full *store.CapError
	if err != nil && !errors.As(err, &full) {
		a.Errorf("got %v, want a reservation or that a cap is used up", err)
	}
	if err != nil {
		return nil
	}
	return &s
}

// capsOf returns one cap of each kind, by name.
func capsOf(day agent.Day, limit int64) map[string]store.Cap {
	first, next := day.Month()
	return map[string]store.Cap{
		"day":    {Scope: store.ScopeNamespace, First: day, Last: day, Limit: limit},
		"month":  {Scope: store.ScopeNamespace, First: first, Last: next - 1, Limit: limit},
		"method": {Scope: store.ScopeMethod, Role: "calculator", Method: "add", First: day, Last: day, Limit: limit},
		"owner":  {Scope: store.ScopeOwner, Owner: "alice", First: day, Last: day, Limit: limit},
		"daemon": {Scope: store.ScopeDaemon, First: day, Last: day, Limit: limit},
	}
}

// caps checks that a cap counts use and reservations in its window, for its method, owner or namespace, or for all
// namespaces if it is the daemon's.
func caps(t *testing.T, r *rig) {
	day := agent.DayOf(r.clock.now())
	one := agent.Spend{ID: "spend_a", Day: day, Role: "calculator", Method: "add", Owner: "alice", Model: "m",
		Tokens: agent.Tokens{Prompt: 60, Completion: 40}}
	other := one
	other.ID, other.Method, other.Owner = "spend_b", "mul", "bob"
	early := one
	first, _ := day.Month()
	if early.ID, early.Day = "spend_c", first; first == day {
		early.Day++
	}
	acme := r.in("acme")
	for _, s := range []agent.Spend{one, other, early} {
		r.spent(r.s, s)
	}
	r.spent(acme, one)
	r.ok(r.s.Reserve(r.ctx, one))
	r.ok(acme.Reserve(r.ctx, agent.Spend{ID: "spend_d", Day: day, Tokens: agent.Tokens{Prompt: 7}}))
	want := map[string]store.Use{"day": {Used: 200, Reserved: 100}, "month": {Used: 300, Reserved: 100},
		"method": {Used: 100, Reserved: 100}, "owner": {Used: 100, Reserved: 100}, "daemon": {Used: 300, Reserved: 107}}
	r.everyWay(func() {
		for name, c := range capsOf(day, 0) {
			got, err := r.s.UseOf(r.ctx, []store.Cap{c})
			if r.ok(err); got[0] != want[name] {
				t.Errorf("%s: got %+v, want %+v", name, got[0], want[name])
			}
			c.Limit = want[name].Used + want[name].Reserved + 9
			var full *store.CapError
			err = r.s.ReserveWithin(r.ctx, agent.Spend{ID: "spend_e", Day: day, Role: "calculator", Method: "add",
				Owner: "alice", Tokens: agent.Tokens{Prompt: 10}}, "",
				[]store.Cap{{Scope: store.ScopeNamespace, First: day, Last: day, Limit: 1 << 40}, c})
			if !errors.As(err, &full) || full.Index != 1 || full.Use != want[name] {
				t.Errorf("%s, one token more than there are: got %v (%+v)", name, err, full)
			}
		}
		if spent, err := r.s.Spent(r.ctx, day, day); err != nil || len(spent.Open) != 1 {
			t.Errorf("what was refused left %+v, %v", spent.Open, err)
		}
	})
}

// capsOfErased checks that the tokens of a namespace erased today still count for the daemon's cap of today, and for no
// other cap.
func capsOfErased(t *testing.T, r *rig) {
	day := agent.DayOf(r.clock.now())
	spent := agent.Spend{ID: "spend_a", Day: day, Role: "calculator", Method: "add", Owner: "alice", Model: "m",
		Tokens: agent.Tokens{Requests: 1, Prompt: 150, Completion: 50}}
	before := spent
	before.ID, before.Day = "spend_b", day-1
	r.spent(r.s, spent)
	for round, name := range []agent.Namespace{"acme", "beta", "acme"} {
		n := r.in(name)
		for _, s := range []agent.Spend{spent, before} {
			r.spent(n, s)
		}
		r.ok(n.Reserve(r.ctx, agent.Spend{ID: "spend_c", Day: day, Tokens: agent.Tokens{Prompt: 100}}))
		if round == 1 && r.h.Reopen != nil {
			r.use(r.h.Reopen(t, r.store, false)) // so its use is in its file
		}
		r.ok(r.store.EraseNamespace(r.ctx, name, nil))
	}
	used := func(c store.Cap) int64 {
		t.Helper()
		got, err := r.s.UseOf(r.ctx, []store.Cap{c})
		r.ok(err)
		return got[0].Used + got[0].Reserved
	}
	r.everyWay(func() {
		for name, c := range capsOf(day, 0) {
			want := int64(200)
			if name == "daemon" {
				want = 1100
			}
			if got := used(c); got != want {
				t.Errorf("%s: got %d, want %d", name, got, want)
			}
		}
		if got := used(capsOf(day+1, 0)["daemon"]); got != 0 {
			t.Errorf("on the next day: got %d", got)
		}
	})
}

// capsOfReplicas checks that replicas together neither exceed a cap nor reject a request while there is room. Of forty
// concurrent requests with room for three, three succeed, whatever chunks of the cap the replicas held before, even if
// one of them has died or left with its chunk.
func capsOfReplicas(t *testing.T, r *rig) {
	replicas := r.asking("a", "b", "c")
	day := agent.DayOf(r.clock.now())
	forty := func(want int64, tokens int64, what string, caps ...store.Cap) (kept []*agent.Spend) {
		t.Helper()
		var mu sync.Mutex
		var group sync.WaitGroup
		for i := range 40 {
			group.Go(func() {
				if s := replicas[i%len(replicas)].reserve(tokens, caps...); s != nil {
					mu.Lock()
					defer mu.Unlock()
					kept = append(kept, s)
				}
			})
		}
		if group.Wait(); int64(len(kept)) != want {
			t.Errorf("%s: %d of forty were reserved, want %d", what, len(kept), want)
		}
		return kept
	}
	all := capsOf(day, 1<<40)
	for name, c := range capsOf(day, 0) {
		uses, err := r.s.UseOf(r.ctx, []store.Cap{c})
		r.ok(err)
		c.Limit = uses[0].Used + uses[0].Reserved + 100_999 // each replica's first reservation takes a chunk of it
		for _, a := range replicas {
			if a.reserve(32_000, c, all["daemon"], all["month"]) == nil {
				t.Errorf("%s: refused what there is room for", name)
			}
		}
		kept := forty(4, 1_000, name, c) // 4,999 tokens are left
		for _, s := range kept {
			s.Prompt = 1
			r.ok(replicas[0].n.Settle(r.ctx, *s))
		}
		forty(4, 1_000, name+", once they cost little", c)
		lower := c
		lower.Limit -= 3_000
		forty(0, 1, name+", once the cap is lower", lower)
		c.Limit += 3_004
		forty(3, 1_000, name+", once it is higher", c)
	}
	c := capsOf(day+1, 10_000)["day"]
	r.clock.advance(24 * time.Hour)
	if replicas[0].reserve(1, c) == nil || replicas[1].reserve(1, c) == nil || replicas[2].reserve(1, c) == nil {
		t.Error("refused on a new day")
	}
	r.ok(r.store.Leave(r.ctx, "a"))
	if r.h.Elapse != nil {
		r.h.Elapse(t, r.store, 2*time.Minute) // b and c are dead now
	}
	late := replicas[2]
	r.ok(r.store.Join(r.ctx, store.Replica{ID: "d"}, time.Minute))
	replicas = replicas[:1]
	replicas[0].replica = "d"
	forty(9, 1_000, "after the others died", c)
	if late.reserve(998, c) != nil {
		t.Error("a replica that was counted as dead used what others have by now")
	}
	if late.reserve(997, c) == nil {
		t.Error("the last tokens are nobody's")
	}
}
