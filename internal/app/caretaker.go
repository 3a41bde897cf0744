package app

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// A caretaker runs maintenance in all namespaces, and closes idle ones. It opens a closed namespace only if something
// may be due in it: the store knows when data expires, and sched when a schedule is due. After the start it also opens,
// once, each namespace that has changed since retention was last applied, to resume interrupted corrections.
// One goroutine uses seen and sched.
type caretaker struct {
	*namespaces
	tick  time.Duration
	turn  turn
	seen  map[agent.Namespace]time.Time // last maintenance
	sched map[agent.Namespace]time.Time // next run of its schedule, if it has one
}

// Bounds of a round.
const (
	openedAtOnce = 32 // namespaces that a round opens at most
	perPage      = 1000
	lookEvery    = time.Hour // least time between maintenance runs of a closed namespace that has changed
)

// begin starts the caretaker, which acts every tick. The returned function stops it and waits for its end.
func (n *namespaces) begin(tick time.Duration) (end func()) {
	c := &caretaker{namespaces: n, tick: tick, seen: map[agent.Namespace]time.Time{},
		sched: map[agent.Namespace]time.Time{}}
	c.turn = turn{shared: n.parts.runtime.Shared, store: n.parts.memory}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		defer c.turn.End()
		c.run(ctx)
	})
	unfollow := n.follow(ctx, &running)
	return func() {
		unfollow()
		cancel()
		running.Wait()
	}
}

// run does a round per tick until ctx ends. Only the replica that has the turn does the round; each replica closes its
// own idle namespaces.
func (c *caretaker) run(ctx context.Context) {
	tick := time.NewTicker(c.tick)
	defer tick.Stop()
	for idleSince := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		c.turn.Do(ctx, c.round)
		if time.Since(idleSince) >= dropEvery {
			idleSince = time.Now()
			c.dropIdle(mostOpen, false)
		}
	}
}

// round runs maintenance in the open namespaces, then in closed ones where something is due.
func (c *caretaker) round(ctx context.Context) {
	c.all(func(s *services) { c.maintain(ctx, s) })
	if err := c.openDue(ctx); err != nil && ctx.Err() == nil {
		c.log.Warn().Err(err).Msg("maintenance of a namespace was not done")
	}
}

// dropEvery is the interval at which namespaces that were not used since the last time are closed.
const dropEvery = time.Minute

// maintain runs the maintenance of one namespace, and records when its schedule is due next.
func (c *caretaker) maintain(ctx context.Context, s *services) {
	next := s.Maintain(ctx)
	c.seen[s.name] = c.parts.runtime.Now()
	if delete(c.sched, s.name); !next.IsZero() {
		c.sched[s.name] = next
	}
}

// openDue opens the closed namespaces in which something is due, one after the other, at most openedAtOnce of them.
func (c *caretaker) openDue(ctx context.Context) error {
	now, opened := c.parts.runtime.Now(), 0
	for after := agent.Namespace(""); ; {
		page, err := c.parts.memory.ListNamespaces(ctx, after, perPage)
		if err != nil {
			return err
		}
		for _, info := range page {
			after = info.Name
			if c.get(info.Name) != nil || !c.due(info.Name, info.Due, now) {
				continue
			}
			if opened++; opened > openedAtOnce {
				return nil // the next round does the others
			}
			s, err := c.use(ctx, info.Name, true)
			if errors.Is(err, store.ErrNotFound) {
				continue // it was erased meanwhile
			}
			if err != nil {
				return err
			}
			c.maintain(ctx, s)
			s.release()
		}
		if len(page) < perPage {
			return nil
		}
	}
}

// due reports whether something may be due in a closed namespace. expires is the store's NamespaceInfo.Due.
func (c *caretaker) due(name agent.Namespace, expires, now time.Time) bool {
	if next, ok := c.sched[name]; ok && !now.Before(next) {
		return true
	}
	seen, ok := c.seen[name]
	if expires.IsZero() {
		return !ok || now.Sub(seen) >= lookEvery
	}
	return !now.Before(expires) && now.Sub(seen) >= lookEvery
}
