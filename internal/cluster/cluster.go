// Package cluster lets several daemons, called replicas, share one store. A replica keeps itself alive in the store
// with a heartbeat, owns the sessions whose calls it runs, and forwards requests for other sessions to their owners
// over HTTP/2 with mutual TLS.
//
// A replica that cannot renew its heartbeat stops accepting calls before the store lets others take its sessions. It
// measures that time with its own monotonic clock, starting before it sends the request that renews the heartbeat. The
// store fences calls that had already begun: a commit names the epoch under which its call ran. Using a session that is
// already in memory costs no request to the store.
//
// A request is forwarded at most once. A replica that receives a forwarded request for a session of another owner says
// so in its reply, and the sender asks the store again. The package knows nothing about calls or the meaning of
// requests.
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
	Address string         // HOST:PORT at which other replicas reach this one; "" means they cannot
	Version string
	TLS     *TLS // required with Address
	Logger  zerolog.Logger

	Calls func() int64 // returns the calls in flight, for ListReplicas; nil counts as 0

	// how long a replica, and its ownership of sessions, outlives its last heartbeat; above 0
	TTL  time.Duration
	Idle time.Duration // a session is given back after being unused for this long; above 0
	// bounds connecting to another replica, Find and Ask; replaces the default ping interval if it is longer; above 0
	Dial time.Duration
	Now  func() time.Time // a clock with monotonic readings; required
}

// DefaultOptions returns the defaults of all options that are not required. Sessions of a dead replica can move after
// TTL.
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

// ErrCutOff means that the replica cannot renew its heartbeat, so others may have taken its sessions.
var ErrCutOff = errors.New("this replica has no heartbeat in the store")

// ErrLeaving means that the replica is leaving and takes no more sessions. Nothing was run.
var ErrLeaving = errors.New("this replica is leaving")

// A Cluster is one replica among others. Its methods may be called concurrently.
type Cluster struct {
	o     Options
	peers *peers // nil without TLS

	id atomic.Pointer[[]string] // the current id as header values, see Header; nil until join

	seen atomic.Int64 // replicas alive at the last look
	// uses of a session that was already in memory; requests forwarded to others; requests forwarded by others
	here, out, in atomic.Int64
	// commits that the store refused because another replica owned the session; how often the replica was counted as
	// dead
	fenced, lost atomic.Int64

	end   context.CancelFunc // of the goroutines that Join starts
	ended sync.WaitGroup

	mu       sync.Mutex
	renewed  time.Time      // start of the request that last renewed the heartbeat; guarded by mu
	until    time.Time      // sessions may be used only before this moment; guarded by mu
	owned    map[key]*entry // guarded by mu
	leaving  bool           // guarded by mu
	forwards int            // requests other than streams that other replicas are answering; guarded by mu
	quiet    chan struct{}  // closed when forwards reaches 0; nil while nobody waits; guarded by mu
}

// Join registers the process as a replica and keeps it alive until Leave. The end of ctx does not end the membership.
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

// every calls do every d until ctx ends.
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

// join registers the replica in the store under a new id.
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

// lasts returns how long a heartbeat counts here. It is a tenth less than in the store, to allow for the drift of two
// clocks.
func (c *Cluster) lasts() time.Duration { return c.o.TTL - c.o.TTL/10 }

// renew renews the heartbeat. A replica that the store counts as dead joins again under a new id, because others may
// own its sessions by now.
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

// look counts the live replicas, for metrics.
func (c *Cluster) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, c.o.TTL/3)
	defer cancel()
	if all, err := c.Replicas(ctx); err == nil {
		c.seen.Store(int64(len(all)))
	}
}

// ID returns the replica's id. It changes if the store counted the replica as dead and it joined again.
func (c *Cluster) ID() string { return (*c.id.Load())[0] }

// Header returns the id as header values, ready to be put into a header map. The caller must not change the slice.
func (c *Cluster) Header() []string { return *c.id.Load() }

// self returns this replica's entry for the store, with its current figures.
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

// Replicas returns the live replicas, sorted by id.
func (c *Cluster) Replicas(ctx context.Context) ([]store.Replica, error) {
	return c.o.Store.ListReplicas(ctx)
}

// Ready returns nil if sessions can be used, and ErrCutOff otherwise. It is cheap: it asks only the clock.
func (c *Cluster) Ready() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ready()
}

// ready is Ready with mu held.
func (c *Cluster) ready() error {
	if c.o.Now().Before(c.until) {
		return nil
	}
	return ErrCutOff
}

// Stats are counters since the start, except for Replicas, Sessions and Age, which are current.
type Stats struct {
	Replicas int64         // alive when last counted, at most one TTL ago
	Sessions int64         // owned
	Age      time.Duration // of the last successful heartbeat
	Here     int64         // uses of a session that was already in memory
	In, Out  int64         // requests forwarded by others, and to others
	Fenced   int64         // commits refused because another replica owned the session
	Lost     int64         // how often the replica was counted as dead
}

// Stats returns the current statistics.
func (c *Cluster) Stats() Stats {
	r := c.self()
	c.mu.Lock()
	age := c.o.Now().Sub(c.renewed)
	c.mu.Unlock()
	return Stats{c.seen.Load(), r.SessionsOwned, age, c.here.Load(), r.ForwardedIn, r.ForwardedOut, c.fenced.Load(),
		c.lost.Load()}
}

// Drain stops taking sessions. A session in use stays until its last user leaves. It is given back when it is requested
// here again, or by Leave.
func (c *Cluster) Drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaving = true
}

// AwaitForwards waits until other replicas have answered all requests that were forwarded to them, except streams, or
// until ctx ends.
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

// forwarding adds n to the number of requests that other replicas are answering.
func (c *Cluster) forwarding(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.forwards += n; c.forwards == 0 && c.quiet != nil {
		close(c.quiet)
		c.quiet = nil
	}
}

// Leave ends the replica's membership and gives its sessions back. The Cluster must not be used afterwards.
func (c *Cluster) Leave(ctx context.Context) error {
	c.end()
	c.ended.Wait()
	// No session may be used here any more before the store frees them.
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
