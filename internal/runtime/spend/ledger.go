// Package spend keeps account of what the models are asked. Each request reserves what it costs at most before it is sent,
// and is settled with what it cost. A request that could pass a cap is not sent: concurrent requests cannot pass it
// together, whatever they are for.
//
// Reservations are durable before their requests are sent, so that a request whose end nobody saw counts in full. The caps
// of a namespace are its policy's; one more bounds the daemon. Days and months are those of UTC.
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
	Store     store.Store   // required
	Replica   func() string // the id of this one, where others use the store, too; nil: none do
	Now       func() time.Time
	Logger    zerolog.Logger
	DayTokens int64        // of all namespaces together on a day; 0: no cap
	Prices    *Prices      // nil: tokens have no price
	Refused   func(string) // is called with the window of the cap for each request that was not sent; may be nil
}

// Ledger is the account of all namespaces. It is safe for concurrent use.
type Ledger struct {
	o Options

	mu       sync.Mutex
	today    agent.Day                    // guarded by mu, as all below
	days     map[agent.Day]*sum           // of all namespaces
	accounts map[agent.Namespace]*Account // those that were used since the start
	warned   map[cap]bool                 // logged already
}

// New makes a ledger of what the store holds of the namespaces. Requests that were under way when the last process ended count in
// full from here on.
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

// readTotal reads what counts today for the cap of the daemon: of namespaces that were erased today the store has only that.
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

// shared reports whether other replicas use the store, too.
func (l *Ledger) shared() bool { return l.o.Replica != nil }

// Account returns the account of a namespace, whose policy in force policy returns from now on.
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

// Forget drops the account of a namespace that was erased. What it spent today still counts for the daemon.
func (l *Ledger) Forget(name agent.Namespace) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.accounts, name)
}

// Erased reports whether the namespace was erased whose account this is.
func (a *Account) Erased(ctx context.Context) bool {
	_, _, err := a.store.Policy(ctx)
	return errors.Is(err, store.ErrGone)
}

// account returns the namespace's account, and reads it at first use. The caller holds mu, or is New.
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

// day returns the day that counts now. A clock that goes back by a day or less opens no window again. The caller holds mu.
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

// total returns the daemon's sum of a day. The caller holds mu.
func (l *Ledger) total(d agent.Day) *sum {
	s := l.days[d]
	if s == nil {
		s = &sum{}
		l.days[d] = s
	}
	return s
}

// Ratios returns, for each kind of window, the largest share that is used of a cap, 0 where there is none.
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

// Reserved returns the tokens that are reserved now.
func (l *Ledger) Reserved() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	var n int64
	for _, s := range l.days {
		n += s.reserved
	}
	return n
}
