package spend

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
)

// Charge returns the charge function for requests on behalf of q, or nil if a is nil. The function returns an
// *ExceededError if a cap has no room for the request.
func (a *Account) Charge(q Request) provider.Charge {
	if a == nil {
		return nil
	}
	return func(ctx context.Context, most provider.Estimate) (func(provider.Bill), error) {
		r := &reservation{account: a, spend: agent.Spend{ID: ids.New("spend"), Role: q.Role, Method: q.Method,
			Owner: q.Owner, Model: q.Model, Tokens: tokensOf(most)}}
		begin := r.reserve
		if a.ledger.shared() && a.capped() {
			begin = r.reserveShared
		}
		if err := begin(ctx); err != nil {
			var over *ExceededError
			if errors.As(err, &over) {
				a.ledger.o.Refused(over.metric())
			}
			return nil, err
		}
		return r.settle, nil
	}
}

// reserve reserves room below the caps, by this process's figures, and stores the reservation.
func (r *reservation) reserve(ctx context.Context) error {
	if over := r.take(); over != nil {
		return over
	}
	if err := r.account.store.Reserve(ctx, r.spend); err != nil {
		r.settle(provider.Bill{Free: true}) // it may have been stored despite the error
		return fmt.Errorf("the model was not asked, since the cost of that could not be recorded: %w", err)
	}
	return nil
}

// metric returns the kind of the cap's window, as in Windows.
func (e *ExceededError) metric() string { return cap{scope: e.Scope, window: e.Window}.metric() }

// tokensOf returns the maximum cost of a request. All of it is an estimate.
func tokensOf(most provider.Estimate) agent.Tokens {
	return agent.Tokens{Requests: 1, Prompt: most.Prompt, Completion: most.Completion,
		Estimated: most.Prompt + most.Completion}
}

// reservation is a request that may be in flight.
type reservation struct {
	account *Account
	spend   agent.Spend // with its maximum cost
}

func (r *reservation) who() who {
	return who{Role: r.spend.Role, Method: r.spend.Method, Owner: r.spend.Owner}
}

// take reserves the maximum cost if every cap has room for it.
func (r *reservation) take() *ExceededError {
	a, l := r.account, r.account.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	r.spend.Day = l.day()
	needed := r.spend.Sum()
	if needed == 0 {
		return nil
	}
	var over *ExceededError
	var full cap
	check := func(c cap, s *sum) {
		if over == nil && s.used+s.reserved+needed > c.limit {
			over, full = c.exceeded(s, needed), c
		}
	}
	// All caps are checked under one lock, so concurrent requests cannot exceed one together.
	a.capsOf(r.spend.Day, r.who(), check)
	if c := l.daemonCap(r.spend.Day); c.limit > 0 {
		check(c, l.total(r.spend.Day))
	}
	if over != nil {
		l.warn(full, over.Used, "the model was not asked; stored programs go on")
		return over
	}
	a.use(r.spend.Day, r.who()).add(0, needed)
	return nil
}

// costing returns the request with its actual cost, by its bill.
func (r *reservation) costing(b provider.Bill) agent.Spend {
	cost := r.spend
	switch {
	case b.Free:
		cost.Tokens = agent.Tokens{}
	case b.Reported:
		cost.Tokens = agent.Tokens{Requests: 1, Prompt: b.Prompt, Cached: b.Cached, Completion: b.Completion}
	}
	return cost
}

// settle replaces the reserved cost by the actual cost.
func (r *reservation) settle(b provider.Bill) {
	cost := r.costing(b)
	r.count(cost)
	if cost.Sum() > r.spend.Sum() {
		r.account.ledger.o.Logger.Warn().Str("model", cost.Model).Int64("tokens", cost.Sum()).Int64("at_most",
			r.spend.Sum()).
			Msg("the model's server reported more tokens than the request asked for: caps can be passed by as much")
	}
	r.record(cost)
}

// record stores the actual cost. If the store refuses it, the ledger keeps it for Record.
func (r *reservation) record(cost agent.Spend) {
	// Do not use the request's context: it may have ended with the client. Until the cost is stored, the whole
	// reservation counts after a restart.
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	l := r.account.ledger
	if err := r.account.store.Settle(ctx, cost); err != nil {
		l.o.Logger.Error().Err(err).Int64("tokens",
			cost.Sum()).Msg("what a request to the model cost could not be recorded")
		l.keep(unrecorded{r.account, cost})
	}
}

// count replaces the reserved tokens by the actual ones in all sums, and warns about caps that are nearly used.
func (r *reservation) count(cost agent.Spend) {
	a, l := r.account, r.account.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	a.use(r.spend.Day, r.who()).add(cost.Sum(), -r.spend.Sum())
	if r.spend.Day != l.day() {
		return
	}
	a.capsOf(r.spend.Day, r.who(), l.warnNear)
	if c := l.daemonCap(r.spend.Day); c.limit > 0 {
		l.warnNear(c, l.total(r.spend.Day))
	}
	a.near.Store(nil)
}

// warnNear warns about a cap that is nearly used. The caller holds mu.
func (l *Ledger) warnNear(c cap, s *sum) {
	if c.ratio(s) >= nearly {
		l.warn(c, s.used, "80 percent are used")
	}
}

// warn logs each cap once per window and kind of event. The caller holds mu.
func (l *Ledger) warn(c cap, used int64, what string) {
	key := c
	key.window += what
	if l.warned[key] || len(l.warned) >= maxWarned {
		return
	}
	l.warned[key] = true
	l.o.Logger.Warn().Str("namespace", string(c.namespace)).Str("scope", c.scope).Str("window", c.window).Str("of",
		strings.ToValidUTF8(c.name, "?")).
		Int64("limit", c.limit).Int64("used", used).Time("resets_at", c.resets()).Str("what",
		what).Msg("a cap of tokens is nearly used, or reached")
}

// maxWarned bounds the warnings per day, because clients choose the names of methods and owners.
const maxWarned = 1000
