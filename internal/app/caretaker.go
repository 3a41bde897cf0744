package app

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// A caretaker has maintenance done in all namespaces, and drops those that are idle. It opens one only when something may be due in it: the
// store knows when something expires, and the caretaker when a schedule is due. After the start each that has changed since retention was last
// applied to it is opened once, for the corrections that a stop interrupted.
type caretaker struct {
	*namespaces
	tick  time.Duration
	turn  turn
	seen  map[agent.Namespace]time.Time // when maintenance was last done
	sched map[agent.Namespace]time.Time // when its schedule is due next
}

// Bounds of one round.
const (
	openedAtOnce = 32 // namespaces that a round opens
	perPage      = 1000
	lookEvery    = time.Hour // at a namespace that has changed
)

// begin has the caretaker look around every tick. The returned function ends it.
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

// round does what is due.
func (c *caretaker) round(ctx context.Context) {
	c.all(func(s *services) { c.maintain(ctx, s) })
	if err := c.openDue(ctx); err != nil && ctx.Err() == nil {
		c.log.Warn().Err(err).Msg("maintenance of a namespace was not done")
	}
}

// dropEvery is how often namespaces that were not used meanwhile are dropped.
const dropEvery = time.Minute

func (c *caretaker) maintain(ctx context.Context, s *services) {
	next := s.Maintain(ctx)
	c.seen[s.name] = c.parts.runtime.Now()
	if delete(c.sched, s.name); !next.IsZero() {
		c.sched[s.name] = next
	}
}

// openDue opens the namespaces in which something is due, one after the other.
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
				return nil // the next round goes on
			}
			s, err := c.use(ctx, info.Name, true)
			if errors.Is(err, store.ErrNotFound) {
				continue // erased meanwhile
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

// due reports whether something may be due in a namespace that is not open. expires is the store's NamespaceInfo.Due.
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
