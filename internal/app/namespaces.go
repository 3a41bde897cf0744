package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/rs/zerolog"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/api"
	"github.com/recurgentd/recurgentd/internal/runtime"
)

// mostOpen is how many namespaces are kept in memory, beside those in which something is under way.
const mostOpen = 128

// namespaces holds the services of the namespaces in use. They are made at the first use and dropped when nothing is under way. A request that
// finds them made takes no lock, and what it costs does not depend on how many namespaces there are.
type namespaces struct {
	log   zerolog.Logger
	parts parts
	patch map[string]any // the policy of the start-up settings

	open atomic.Pointer[map[agent.Namespace]*services] // copied on write, under mu

	mu       sync.Mutex
	busy     map[agent.Namespace]chan struct{} // being made, dropped or erased; closed when that is over; guarded by mu
	begun    map[agent.Namespace]bool          // whose policy was set at the start; guarded by mu
	stopping bool                              // guarded by mu
	work     sync.WaitGroup                    // services that are being dropped

	erasedHere erasures // by this replica
}

func newNamespaces(log zerolog.Logger) *namespaces {
	n := &namespaces{log: log, busy: map[agent.Namespace]chan struct{}{}, begun: map[agent.Namespace]bool{}}
	n.open.Store(&map[agent.Namespace]*services{})
	return n
}

// get returns the services if they are open. The caller does not hold them.
func (n *namespaces) get(name agent.Namespace) *services { return (*n.open.Load())[name] }

// use returns the services of the namespace, which the caller holds until release. They are made where they are not open; there: but not
// where there is no such namespace, which is store.ErrNotFound.
func (n *namespaces) use(ctx context.Context, name agent.Namespace, there bool) (*services, error) {
	for {
		if s := n.get(name); s != nil && s.enter() {
			return s, nil
		}
		if err := n.load(ctx, name, there); err != nil {
			return nil, err
		}
	}
}

// Use is part of api.Namespaces.
func (n *namespaces) Use(ctx context.Context, name agent.Namespace,
	named bool) (run api.Runtime, done func(), err error) {
	if named {
		if err := n.exists(ctx, name); err != nil {
			return nil, nil, err
		}
	}
	s, err := n.use(ctx, name, named)
	if err != nil {
		return nil, nil, err
	}
	return s, s.leave, nil
}

// load makes the services, or waits for the one who is at it.
func (n *namespaces) load(ctx context.Context, name agent.Namespace, there bool) error {
	free, err := n.claim(ctx, name)
	if err != nil {
		return err
	}
	defer free()
	if s := n.get(name); s != nil { // made meanwhile
		return nil
	}
	s, err := newServices(context.WithoutCancel(ctx), name, n.parts)
	if err != nil {
		return err
	}
	// it may have been erased since the caller looked. What is erased from now on the services find gone, and do not make anew
	if there {
		if err := n.exists(ctx, name); err != nil {
			return errors.Join(err, s.stopNow())
		}
	}
	n.mu.Lock()
	first := !n.begun[name]
	n.mu.Unlock()
	if first {
		if err := s.begin(context.WithoutCancel(ctx), n.patch); err != nil {
			return errors.Join(err, s.stopNow())
		}
	}
	if n.publish(name, s) {
		return nil
	}
	return errors.Join(runtime.ErrDraining, s.stopNow())
}

// publish opens the services for use, and makes room where too many are open. It reports false when the daemon stops.
func (n *namespaces) publish(name agent.Namespace, s *services) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stopping {
		return false
	}
	n.begun[name] = true
	n.put(name, s)
	if over := len(*n.open.Load()) - mostOpen; over > 0 {
		n.work.Go(func() { n.dropIdle(over, true) })
	}
	return true
}

// claim waits until nobody makes, drops or erases the namespace, and has others wait until free is called.
func (n *namespaces) claim(ctx context.Context, name agent.Namespace) (free func(), err error) {
	for {
		n.mu.Lock()
		if n.stopping {
			n.mu.Unlock()
			return nil, runtime.ErrDraining
		}
		other := n.busy[name]
		if other == nil {
			mine := make(chan struct{})
			n.busy[name] = mine
			n.mu.Unlock()
			return func() {
				n.mu.Lock()
				delete(n.busy, name)
				n.mu.Unlock()
				close(mine)
			}, nil
		}
		n.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// put opens the services for use; nil closes them. The caller holds mu.
func (n *namespaces) put(name agent.Namespace, s *services) {
	next := maps.Clone(*n.open.Load())
	if s == nil {
		delete(next, name)
	} else {
		next[name] = s
	}
	n.open.Store(&next)
}

// dropIdle drops at most that many services that are idle and were not used since the last time. With pressed those go, too, that were used.
func (n *namespaces) dropIdle(most int, pressed bool) {
	for _, again := range []bool{false, true} {
		for name, s := range *n.open.Load() {
			if again && !pressed || most <= 0 {
				return
			}
			if name == agent.DefaultNamespace || !again && s.touched.Swap(false) || !s.idle() {
				continue
			}
			if n.drop(name, s) {
				most--
			}
		}
	}
}

// drop closes the services unless somebody has begun to use them.
func (n *namespaces) drop(name agent.Namespace, s *services) bool {
	free, err := n.claim(context.Background(), name)
	if err != nil {
		return false
	}
	defer free()
	if n.get(name) != s || !s.users.CompareAndSwap(0, closed) {
		return false
	}
	if !s.Runtime.Idle() {
		s.users.Add(-closed)
		return false
	}
	n.mu.Lock()
	n.put(name, nil)
	n.mu.Unlock()
	if err := s.Stop(context.Background()); err != nil {
		n.log.Warn().Err(err).Str("namespace", string(name)).Msg("an idle namespace was not closed cleanly")
	}
	return true
}

// all calls do with each of the services that are open, which are held meanwhile.
func (n *namespaces) all(do func(*services)) {
	for _, s := range *n.open.Load() {
		if s.users.Add(1) > 0 { // without touching them
			do(s)
		}
		s.users.Add(-1)
	}
}

// Ready is part of api.Namespaces.
func (n *namespaces) Ready() error {
	if n.draining() {
		return runtime.ErrDraining
	}
	if err := n.parts.memory.Ready(); err != nil {
		return err // before that the replica is cut off, which follows from it
	}
	if c := n.parts.cluster; c != nil {
		return c.Ready()
	}
	return nil
}

func (n *namespaces) draining() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.stopping
}

// calls counts the calls of all namespaces.
func (n *namespaces) calls() (running, waiting int) {
	n.all(func(s *services) {
		r, w := s.Load()
		running, waiting = running+r, waiting+w
	})
	return running, waiting
}

// recommendations counts the open ones of the namespaces that are open.
func (n *namespaces) recommendations() (all int) {
	n.all(func(s *services) {
		one, err := s.OpenRecommendations(context.Background())
		if err != nil {
			s.log.Warn().Err(err).Msg("cannot count the recommendations")
		}
		all += one
	})
	return all
}

// exists returns store.ErrNotFound where there is no namespace of that name.
func (n *namespaces) exists(ctx context.Context, name agent.Namespace) error {
	if name == agent.DefaultNamespace || n.parts.named(name) {
		return nil
	}
	_, err := n.parts.memory.NamespaceInfo(ctx, name)
	return err
}

// Stop accepts nothing more and stops the services at once, those of all namespaces at the same time.
func (n *namespaces) Stop(ctx context.Context) error {
	n.mu.Lock()
	n.stopping = true
	n.mu.Unlock()
	n.work.Wait()
	var all sync.WaitGroup
	var mu sync.Mutex
	var err error
	for name, s := range *n.open.Load() {
		all.Go(func() {
			one := s.Stop(ctx)
			mu.Lock()
			defer mu.Unlock()
			if one != nil && name != agent.DefaultNamespace {
				one = fmt.Errorf("namespace %s: %w", name, one)
			}
			err = errors.Join(err, one)
		})
	}
	all.Wait()
	return err
}
