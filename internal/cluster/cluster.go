// Package cluster has several daemons, replicas, share one store. A replica keeps itself alive in the store with one heartbeat, owns the
// sessions whose calls it runs, and forwards requests for sessions of others to their owners over HTTP/2 with mutual TLS.
//
// A replica that could not renew its heartbeat takes no calls before others may take its sessions: it measures that time with its own
// monotonic clock, from before the request that renewed it was sent. What it had begun is fenced by the store: a commit names the epoch under
// which its call ran. A session that is in memory here costs no request to the store.
//
// A request is forwarded at most once: a replica that is not the owner of what was forwarded to it answers so, and whoever sent it asks the
// store again. The package knows nothing of calls or of what requests mean.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Options configures a Cluster. Start from DefaultOptions.
type Options struct {
	Store   store.Replicas // required
	Address string         // HOST:PORT at which other replicas reach this one; "": they cannot
	Version string
	TLS     *TLS // required with Address
	Logger  zerolog.Logger

	Calls func() int64 // in flight, for ListReplicas; nil: 0

	// how long a replica outlives its last heartbeat, and its sessions stay where they are; above 0
	TTL  time.Duration
	Idle time.Duration // a session that nobody uses so long is given back; above 0
	// another replica must take a connection in this time, answer Find and Ask, and pings where it is longer than theirs; above 0
	Dial time.Duration
	Now  func() time.Time // a clock with monotonic readings
}

// DefaultOptions returns the defaults of everything that is not required. Sessions of a dead replica move within TTL.
func DefaultOptions() Options {
	return Options{Logger: zerolog.Nop(), TTL: 10 * time.Second, Idle: time.Minute, Dial: 2 * time.Second,
		Now: time.Now}
}

func (o *Options) validate() error {
	switch {
	case o.Store == nil:
		return errors.New("cluster: Store is required")
	case o.Address != "" && o.TLS == nil:
		return errors.New("cluster: TLS is required with Address")
	case o.TTL <= 0 || o.Idle <= 0 || o.Dial <= 0 || o.Now == nil:
		return errors.New("cluster: TTL, Idle and Dial must be above 0, and Now be set")
	}
	return nil
}

// ErrCutOff is returned while the replica cannot renew its heartbeat: others may have taken its sessions.
var ErrCutOff = errors.New("this replica has no heartbeat in the store")

// ErrLeaving is returned for sessions of a replica that is leaving. Nothing was run.
var ErrLeaving = errors.New("this replica is leaving")

// A Cluster is one replica among others. Its methods may be called concurrently.
type Cluster struct {
	o     Options
	peers *peers // nil without TLS

	id atomic.Pointer[[]string] // as the values of a header

	seen atomic.Int64 // replicas
	// session entries that found the session in memory; requests forwarded to others, and from others
	here, out, in atomic.Int64
	// changes that the store refused since another owned the session; times that the replica was counted as dead
	fenced, lost atomic.Int64

	end   context.CancelFunc // of the goroutines
	ended sync.WaitGroup

	mu       sync.Mutex
	renewed  time.Time      // when the request began that last renewed the heartbeat; guarded by mu
	until    time.Time      // sessions are used before this moment only; guarded by mu
	owned    map[key]*entry // guarded by mu
	leaving  bool           // guarded by mu
	forwards int            // requests, other than streams, that others are answering; guarded by mu
	quiet    chan struct{}  // closed when there are none; nil while nobody waits; guarded by mu
}

// Join makes the process a replica, and keeps it one until Leave.
func Join(ctx context.Context, o Options) (*Cluster, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	c := &Cluster{o: o, owned: map[key]*entry{}}
	if o.TLS != nil {
		c.peers = newPeers(o.TLS, o.Dial)
	}
	if err := c.join(ctx); err != nil {
		return nil, fmt.Errorf("join the other replicas: %w", err)
	}
	ctx, c.end = context.WithCancel(context.WithoutCancel(ctx))
	c.look(ctx)
	c.ended.Go(func() { c.every(ctx, o.TTL/3, c.renew) })
	c.ended.Go(func() { c.every(ctx, o.TTL, c.look) })
	c.ended.Go(func() { c.every(ctx, o.Idle/4, c.giveBackIdle) })
	return c, nil
}

func (c *Cluster) every(ctx context.Context, d time.Duration, do func(context.Context)) {
	t := time.NewTicker(d)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			do(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// join enters the store under a new id.
func (c *Cluster) join(ctx context.Context) error {
	began, id := c.o.Now(), ids.New("rep")
	r := c.self()
	r.ID = id
	if err := c.o.Store.Join(ctx, r, c.o.TTL); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.id.Store(&[]string{id})
	c.renewed, c.until = began, began.Add(c.lasts())
	return nil
}

// lasts is how long a heartbeat counts here: less than in the store, for what two clocks may differ by in that time.
func (c *Cluster) lasts() time.Duration { return c.o.TTL - c.o.TTL/10 }

// renew keeps the replica alive. One that the store counts as dead joins anew: its sessions may be another's by now.
func (c *Cluster) renew(ctx context.Context) {
	began := c.o.Now()
	ctx, cancel := context.WithTimeout(ctx, c.o.TTL/3)
	defer cancel()
	err := c.o.Store.Renew(ctx, c.self(), c.o.TTL)
	if errors.Is(err, store.ErrFenced) {
		c.o.Logger.Warn().Str("replica",
			c.ID()).Msg("the replica's time in the store was over; it joins again under another id")
		c.mu.Lock()
		c.until = time.Time{}
		c.mu.Unlock()
		c.lost.Add(1)
		err = c.join(ctx)
	} else if err == nil {
		c.mu.Lock()
		c.renewed, c.until = began, began.Add(c.lasts())
		c.mu.Unlock()
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		c.o.Logger.Warn().Err(err).Str("replica", c.ID()).Msg("the heartbeat was not renewed")
	}
}

// look counts the replicas, for metrics.
func (c *Cluster) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, c.o.TTL/3)
	defer cancel()
	if all, err := c.Replicas(ctx); err == nil {
		c.seen.Store(int64(len(all)))
	}
}

// ID is the replica's id. It is another one after the replica was counted as dead.
func (c *Cluster) ID() string { return (*c.id.Load())[0] }

// Header is the id as the values of a header, which must not be changed.
func (c *Cluster) Header() []string { return *c.id.Load() }

// self is the replica with its figures.
func (c *Cluster) self() store.Replica {
	r := store.Replica{Address: c.o.Address, Version: c.o.Version, ForwardedIn: c.in.Load(), ForwardedOut: c.out.Load()}
	if id := c.id.Load(); id != nil {
		r.ID = (*id)[0]
	}
	if c.o.Calls != nil {
		r.CallsInFlight = c.o.Calls()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r.SessionsOwned = int64(len(c.owned))
	return r
}

// Replicas returns those that are alive, by id.
func (c *Cluster) Replicas(ctx context.Context) ([]store.Replica, error) {
	return c.o.Store.ListReplicas(ctx)
}

// Ready returns nil when sessions can be used, else why not.
func (c *Cluster) Ready() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ready()
}

// ready is called with mu held.
func (c *Cluster) ready() error {
	if c.o.Now().Before(c.until) {
		return nil
	}
	return ErrCutOff
}

// Stats are figures since the start, except for the first three, which are of now.
type Stats struct {
	Replicas int64         // alive, as of the last TTL
	Sessions int64         // owned
	Age      time.Duration // of the heartbeat
	Here     int64         // times that a session was used which was in memory
	In, Out  int64         // requests that others forwarded, and that were forwarded to others
	Fenced   int64         // changes that the store refused, since another replica owned the session
	Lost     int64         // times that the replica was counted as dead
}

// Stats returns the figures.
func (c *Cluster) Stats() Stats {
	r := c.self()
	c.mu.Lock()
	age := c.o.Now().Sub(c.renewed)
	c.mu.Unlock()
	return Stats{c.seen.Load(), r.SessionsOwned, age, c.here.Load(), r.ForwardedIn, r.ForwardedOut, c.fenced.Load(),
		c.lost.Load()}
}

// Drain takes no more sessions. Those that are in use stay until they are not; then they go to who asks for them.
func (c *Cluster) Drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaving = true
}

// AwaitForwards waits until others have answered what was forwarded to them, other than streams, or until ctx ends.
func (c *Cluster) AwaitForwards(ctx context.Context) {
	c.mu.Lock()
	if c.forwards == 0 {
		c.mu.Unlock()
		return
	}
	if c.quiet == nil {
		c.quiet = make(chan struct{})
	}
	quiet := c.quiet
	c.mu.Unlock()
	select {
	case <-quiet:
	case <-ctx.Done():
	}
}

// forwarding counts n more requests that others are answering.
func (c *Cluster) forwarding(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.forwards += n; c.forwards == 0 && c.quiet != nil {
		close(c.quiet)
		c.quiet = nil
	}
}

// Leave gives back what the replica has. It is not a replica any more, and may not be used.
func (c *Cluster) Leave(ctx context.Context) error {
	c.end()
	c.ended.Wait()
	c.mu.Lock()
	c.until = time.Time{}
	clear(c.owned)
	c.mu.Unlock()
	if c.peers != nil {
		c.peers.close()
	}
	if err := c.o.Store.Leave(ctx, c.ID()); err != nil {
		return fmt.Errorf("leave the other replicas: %w", err)
	}
	return nil
}
