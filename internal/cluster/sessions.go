package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// An ElsewhereError means that another replica owns the session. Nothing was run.
type ElsewhereError struct{ Owner store.Ownership }

func (e *ElsewhereError) Error() string {
	return fmt.Sprintf("the session belongs to replica %s at %s", e.Owner.Replica, e.Owner.Address)
}

type key struct {
	namespace agent.Namespace
	session   string
}

// An entry is a session that the replica owns or is requesting from the store. Its fields are guarded by Cluster.mu.
type entry struct {
	of store.Owners
	// the replica id under which the session is owned; if it differs from the current id, ownership is lost
	replica string
	epoch   int64
	users   int
	busy    bool          // a goroutine is requesting the session from the store or giving it back
	since   time.Time     // when its last user left
	changed chan struct{} // closed at the next change; nil while nobody waits
}

// wait returns a channel that is closed when the entry changes.
func (e *entry) wait() <-chan struct{} {
	if e.changed == nil {
		e.changed = make(chan struct{})
	}
	return e.changed
}

// wake wakes all goroutines that wait for a change. The caller holds Cluster.mu.
func (e *entry) wake() {
	if e.changed != nil {
		close(e.changed)
		e.changed = nil
	}
}

// Sessions manages the ownership of the sessions of one namespace. Its methods may be called concurrently.
type Sessions struct {
	c     *Cluster
	name  agent.Namespace
	store store.Owners
}

// Sessions returns the sessions of the namespace, whose owners are kept in the given store.
func (c *Cluster) Sessions(name agent.Namespace, of store.Owners) *Sessions {
	return &Sessions{c: c, name: name, store: of}
}

// Enter claims the session for this replica and returns the epoch that commits must name. Each successful Enter needs
// one Leave. It waits while another goroutine claims or gives back the session. An *ElsewhereError names another owner;
// store.ErrNotFound means that the session does not exist; ErrCutOff and ErrLeaving mean that this replica takes no
// sessions now.
func (s *Sessions) Enter(ctx context.Context, session string) (epoch int64, err error) {
	k := key{s.name, session}
	for {
		epoch, wait, err := s.c.enter(k, s.store)
		if err != nil || epoch > 0 {
			return epoch, err
		}
		if wait == nil {
			return s.ask(ctx, k)
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// enter counts one more user of a session that is already owned and returns its epoch. Otherwise epoch is 0: the caller
// waits for the channel and tries again, or asks the store if the channel is nil.
func (c *Cluster) enter(k key, of store.Owners) (epoch int64, wait <-chan struct{}, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.ready(); err != nil {
		return 0, nil, err
	}
	e := c.owned[k]
	switch {
	case e == nil && c.leaving:
		return 0, nil, ErrLeaving
	case e == nil:
		c.owned[k] = &entry{of: of, busy: true}
		return 0, nil, nil
	case e.busy:
		return 0, e.wait(), nil
	case e.replica == c.ID() && !c.leaving:
		e.users++
		c.here.Add(1)
		return e.epoch, nil, nil
	// Ownership is lost or is to be given back. The calls in progress end first, to keep the session's calls in order.
	case e.users > 0:
		return 0, e.wait(), nil
	}
	e.busy = true
	return 0, nil, nil
}

// Create creates a session that this replica owns and uses until Leave, and returns the epoch that commits must name.
// It returns store.ErrExists if the session exists; other errors are those of Enter.
func (s *Sessions) Create(ctx context.Context, session agent.Session,
	sessionContext map[string]json.RawMessage) (epoch int64, err error) {
	c, k, e := s.c, key{s.name, session.ID}, &entry{of: s.store, busy: true}
	c.mu.Lock()
	err = c.ready()
	switch {
	case err != nil:
	case c.leaving:
		err = ErrLeaving
	case c.owned[k] != nil:
		err = store.ErrExists
	default:
		c.owned[k] = e
	}
	c.mu.Unlock()
	if err != nil {
		return 0, err
	}
	got, err := s.store.CreateOwned(ctx, session, sessionContext, c.ID())
	if errors.Is(err, store.ErrFenced) {
		err = ErrCutOff
	}
	c.settle(k, e, got)
	return got.Epoch, err
}

// ask claims the session in the store, or gives it back if the replica is leaving. The caller has set the entry busy;
// ask resets it.
func (s *Sessions) ask(ctx context.Context, k key) (int64, error) {
	c, id := s.c, s.c.ID()
	c.mu.Lock()
	e := c.owned[k]
	had, leaving := store.Ownership{Replica: e.replica, Epoch: e.epoch}, c.leaving
	c.mu.Unlock()
	if leaving {
		err := ErrLeaving
		if had.Epoch > 0 {
			if gone := s.store.Disown(ctx, map[string]store.Ownership{k.session: had}); gone != nil {
				err = gone
			}
		}
		c.settle(k, e, store.Ownership{})
		return 0, err
	}
	got, err := s.store.Own(ctx, k.session, id)
	switch {
	case errors.Is(err, store.ErrFenced): // the next heartbeat joins again
		err = ErrCutOff
	case err == nil && got.Replica != id:
		err = &ElsewhereError{got}
	}
	if err != nil {
		got = store.Ownership{}
	}
	c.settle(k, e, got)
	return got.Epoch, err
}

// settle ends the busy state of the entry. If the session is owned now, the caller counts as its first user; otherwise
// the entry is removed.
func (c *Cluster) settle(k key, e *entry, got store.Ownership) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.busy = false
	if got.Epoch > 0 {
		e.replica, e.epoch, e.users = got.Replica, got.Epoch, 1
	} else if c.owned[k] == e {
		delete(c.owned, k)
	}
	e.wake()
}

// giveBackIdle gives back sessions that were unused for Options.Idle. The replica that is asked for one next takes it.
func (c *Cluster) giveBackIdle(ctx context.Context) {
	for _, g := range c.idle() {
		ctx, cancel := context.WithTimeout(ctx, c.o.TTL)
		err := g.of.Disown(ctx, g.owned)
		cancel()
		if err != nil && !errors.Is(err, context.Canceled) {
			c.o.Logger.Warn().Err(err).Int("sessions",
				len(g.owned)).Msg("idle sessions were not given back; they go when the replica leaves")
		}
		for k, e := range g.entries {
			c.settle(k, e, store.Ownership{})
		}
	}
}

// given groups sessions of one namespace that are being given back together.
type given struct {
	of      store.Owners
	owned   map[string]store.Ownership
	entries map[key]*entry
}

// idle marks the idle entries busy and returns them by namespace. The caller must settle each of them.
func (c *Cluster) idle() map[agent.Namespace]*given {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, all := c.o.Now(), map[agent.Namespace]*given{}
	for k, e := range c.owned {
		if e.busy || e.users > 0 || now.Sub(e.since) < c.o.Idle {
			continue
		}
		e.busy = true
		g := all[k.namespace]
		if g == nil {
			g = &given{e.of, map[string]store.Ownership{}, map[key]*entry{}}
			all[k.namespace] = g
		}
		g.owned[k.session], g.entries[k] = store.Ownership{Replica: e.replica, Epoch: e.epoch}, e
	}
	return all
}

// Leave ends one use of the session that Enter or Create began.
func (s *Sessions) Leave(session string) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	e := s.c.owned[key{s.name, session}]
	if e == nil { // the replica has left
		return
	}
	if e.users--; e.users == 0 {
		e.since = s.c.o.Now()
		e.wake()
	}
}

// Fenced records that the store refused a commit under the session's epoch. The next Enter asks the store for the
// owner.
func (s *Sessions) Fenced(session string) {
	s.c.fenced.Add(1)
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	if e := s.c.owned[key{s.name, session}]; e != nil {
		e.replica = ""
	}
}
