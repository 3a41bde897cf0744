// Package spend accounts for requests to the models. Each request reserves its maximum cost before it is sent, and is
// settled with its actual cost. A request that could exceed a cap is not sent, so concurrent requests cannot exceed it
// together.
//
// Reservations are durable before their requests are sent: after a crash, a request without a known end counts in full.
// A namespace's policy sets its caps; one more cap bounds the daemon. Days and months are in UTC.
package spend

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Options configures a Ledger.
type Options struct {
	Store store.Store // required
	// Replica returns the id of this replica if others share the store; nil means that none do.
	Replica   func() string
	Now       func() time.Time
	Logger    zerolog.Logger
	DayTokens int64   // daily cap for all namespaces together; 0 means no cap
	Prices    *Prices // nil means that tokens have no price
	// Refused is called with the kind of the cap's window for each request that was not sent; may be nil.
	Refused func(string)
}

// Ledger holds the accounts of all namespaces. It is safe for concurrent use.
type Ledger struct {
	o Options

	mu       sync.Mutex
	today    agent.Day                    // guarded by mu, as are all fields below
	days     map[agent.Day]*sum           // over all namespaces
	accounts map[agent.Namespace]*Account // those used since the start
	warned   map[cap]bool                 // caps already logged
	refused  []unrecorded                 // costs that the store has refused so far
}

// New reads the ledger of the namespaces from the store. Requests in flight when the last process ended count in full
// from now on. It starts nothing and need not be closed.
func New(ctx context.Context, o Options, namespaces ...agent.Namespace) (*Ledger, error) {
	if o.Store == nil {
		return nil, errors.New("spend: Store is required")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Refused == nil {
		o.Refused = func(string) {}
	}
	l := &Ledger{o: o, days: map[agent.Day]*sum{}, accounts: map[agent.Namespace]*Account{}, warned: map[cap]bool{}}
	l.today = agent.DayOf(o.Now())
	for _, name := range namespaces {
		if _, err := l.account(ctx, name); err != nil {
			return nil, err
		}
	}
	if err := l.readTotal(ctx); err != nil {
		return nil, err
	}
	return l, nil
}

// readTotal reads today's use of the daemon's cap. For namespaces erased today, the store has only this total.
func (l *Ledger) readTotal(ctx context.Context) error {
	c := l.daemonCap(l.today)
	if c.limit <= 0 {
		return nil
	}
	held, err := l.o.Store.Namespace(agent.DefaultNamespace)
	if err != nil {
		return err
	}
	all, err := held.UseOf(ctx, []store.Cap{c.stored(who{})})
	if err != nil {
		return fmt.Errorf("read what all namespaces have spent: %w", err)
	}
	*l.total(l.today) = sum{all[0].Used, all[0].Reserved}
	return nil
}

// shared reports whether other replicas use the same store.
func (l *Ledger) shared() bool { return l.o.Replica != nil }

// Account returns the account of a namespace, read from the store at its first use. From now on, policy returns the
// policy in force there.
func (l *Ledger) Account(ctx context.Context, name agent.Namespace, policy func() *agent.Policy) (*Account, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a, err := l.account(ctx, name)
	if err == nil {
		a.policy.Store(&policy)
		a.near.Store(nil)
	}
	return a, err
}

// Forget drops the account of an erased namespace. Its use of today still counts for the daemon.
func (l *Ledger) Forget(name agent.Namespace) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.accounts, name)
}

// Erased reports whether the account's namespace was erased.
func (a *Account) Erased(ctx context.Context) bool {
	_, _, err := a.store.Policy(ctx)
	return errors.Is(err, store.ErrGone)
}

// account returns the namespace's account, reading it at first use. The caller holds mu, or is New.
func (l *Ledger) account(ctx context.Context, name agent.Namespace) (*Account, error) {
	if a := l.accounts[name]; a != nil {
		return a, nil
	}
	held, err := l.o.Store.Namespace(name)
	if err != nil {
		return nil, err
	}
	first, _ := l.today.Month()
	spent, err := held.Spent(ctx, first-1, math.MaxInt32)
	if err != nil {
		return nil, fmt.Errorf("read what namespace %s has spent: %w", name, err)
	}
	a := &Account{ledger: l, name: name, store: held, days: map[agent.Day]*dayUse{}, read: l.o.Now()}
	a.take(spent)
	for _, o := range spent.Open {
		// Without other replicas, every open reservation belongs to a process that has ended.
		if !l.abandoned(o) {
			continue
		}
		if err := held.Forfeit(ctx, o.ID); err != nil {
			return nil, fmt.Errorf("settle what was under way in namespace %s: %w", name, err)
		}
		a.use(o.Day, who{Role: o.Role, Method: o.Method, Owner: o.Owner}).add(o.Sum(), -o.Sum())
	}
	l.accounts[name] = a
	return a, nil
}

// day returns the current day. A clock that goes back by up to a day does not reopen a window. The caller holds mu.
func (l *Ledger) day() agent.Day {
	d := agent.DayOf(l.o.Now())
	if d == l.today-1 {
		return l.today
	}
	if d != l.today {
		l.today = d
		clear(l.warned)
		for _, a := range l.accounts {
			a.forgetDetails(d)
		}
	}
	return d
}

// total returns the sum of a day over all namespaces. The caller holds mu.
func (l *Ledger) total(d agent.Day) *sum {
	s := l.days[d]
	if s == nil {
		s = &sum{}
		l.days[d] = s
	}
	return s
}

// Ratios returns, for each kind of window, the largest used share of any cap, 0 if there is none.
func (l *Ledger) Ratios() map[string]float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[string]float64{}
	for _, w := range Windows() {
		out[w] = 0
	}
	d := l.day()
	note := func(c cap, s *sum) { out[c.metric()] = max(out[c.metric()], c.ratio(s)) }
	if c := l.daemonCap(d); c.limit > 0 {
		note(c, l.total(d))
	}
	for _, a := range l.accounts {
		a.eachCap(d, note)
	}
	return out
}

// Reserved returns the number of tokens reserved now.
func (l *Ledger) Reserved() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	var n int64
	for _, s := range l.days {
		n += s.reserved
	}
	return n
}
