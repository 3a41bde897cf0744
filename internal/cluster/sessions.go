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

// An ElsewhereError says that another replica owns the session. Nothing was run.
type ElsewhereError struct{ Owner store.Ownership }

func (e *ElsewhereError) Error() string {
	return fmt.Sprintf("the session belongs to replica %s at %s", e.Owner.Replica, e.Owner.Address)
}

type key struct {
	namespace agent.Namespace
	session   string
}

// An entry is a session that the replica owns, or asks the store for. Its fields are guarded by Cluster.mu.
type entry struct {
	of      store.Owners
	replica string // the id under which it is owned; another than the replica's now: it is lost
	epoch   int64
	users   int
	busy    bool          // somebody asks the store for it, or gives it back
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

func (e *entry) wake() {
	if e.changed != nil {
		close(e.changed)
		e.changed = nil
	}
}

// Sessions are those of one namespace.
type Sessions struct {
	c     *Cluster
	name  agent.Namespace
	store store.Owners
}

// Sessions returns those of the namespace, whose owners the store knows.
func (c *Cluster) Sessions(name agent.Namespace, of store.Owners) *Sessions {
	return &Sessions{c: c, name: name, store: of}
}

// Enter has the replica own the session until Leave, and returns the epoch that commits name. An *ElsewhereError names another owner.
// store.ErrNotFound: there is no such session. ErrCutOff and ErrLeaving: this replica takes none now.
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

// enter counts one more user of a session that is in memory. Else it returns what to wait for; nil: the caller is to ask the store.
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
	case e.users > 0: // lost, or to be given back: not before its calls have ended, so that they stay in order
		return 0, e.wait(), nil
	}
	e.busy = true
	return 0, nil, nil
}

// Create makes a session that the replica owns until Leave, and returns the epoch that commits name. Errors are as in Enter; store.ErrExists.
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

// ask takes the session in the store, or gives it back where the replica is leaving. The caller has made the entry busy.
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
	case errors.Is(err, store.ErrFenced): // the next heartbeat joins anew
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

// settle ends what made the entry busy: its caller uses the session now, or, without an owner, the entry goes.
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

// giveBackIdle gives back the sessions that nobody used for a while, so that they move to the replica that is asked for them next.
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

// given are sessions of one namespace that are given back.
type given struct {
	of      store.Owners
	owned   map[string]store.Ownership
	entries map[key]*entry
}

// idle makes the entries busy that are idle, and returns them by their namespaces.
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

// Leave ends a use of the session that Enter began.
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

// Fenced is called when the store refused a commit under the session's epoch: the next Enter asks the store.
func (s *Sessions) Fenced(session string) {
	s.c.fenced.Add(1)
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	if e := s.c.owned[key{s.name, session}]; e != nil {
		e.replica = ""
	}
}
