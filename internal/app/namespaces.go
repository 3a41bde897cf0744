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
	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/api"
	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/store"
)

// mostOpen is how many namespaces stay open, not counting those with calls or requests in progress.
const mostOpen = 128

// namespaces keeps the services of the namespaces in use. It makes them at first use and closes them when they are
// idle. A request to an open namespace takes no lock, and its cost does not depend on the number of namespaces.
type namespaces struct {
	log   zerolog.Logger
	parts parts
	patch map[string]any // policy of the start-up settings

	open atomic.Pointer[map[agent.Namespace]*services] // copied on write, under mu

	mu sync.Mutex
	// namespaces being made, closed or erased; the channel closes at the end; guarded by mu
	busy     map[agent.Namespace]chan struct{}
	begun    map[agent.Namespace]bool // namespaces whose policy was set since the start; guarded by mu
	stopping bool                     // guarded by mu
	work     sync.WaitGroup           // services being closed to make room

	erasedHere erasures // erasures by this replica
}

func newNamespaces(log zerolog.Logger) *namespaces {
	n := &namespaces{log: log, busy: map[agent.Namespace]chan struct{}{}, begun: map[agent.Namespace]bool{}}
	n.open.Store(&map[agent.Namespace]*services{})
	return n
}

// get returns the services of an open namespace, or nil. They may close at any time: the caller does not hold them.
func (n *namespaces) get(name agent.Namespace) *services { return (*n.open.Load())[name] }

// use returns the services of the namespace, making them if it is not open. The caller must call release. With there, a
// namespace that does not exist is store.ErrNotFound; otherwise it need not exist.
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

// load makes the services, or waits while another goroutine makes them.
func (n *namespaces) load(ctx context.Context, name agent.Namespace, there bool) error {
	free, err := n.claim(ctx, name)
	if err != nil {
		return err
	}
	defer free()
	if s := n.get(name); s != nil { // made by another goroutine
		return nil
	}
	s, err := newServices(context.WithoutCancel(ctx), name, n.parts)
	if err != nil {
		return err
	}
	// it may have been erased since the caller checked; if it is erased later, the services find it gone and do not
	// create it again
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

// publish opens the services for use, and closes others if too many are open. It returns false if the daemon is
// stopping.
func (n *namespaces) publish(name agent.Namespace, s *services) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stopping {
		return false
	}
	n.begun[name] = true
	n.put(name, s)
	if over := len(*n.open.Load()) - mostOpen; over > 0 {
		// in the background: closing waits, and mu is held
		n.work.Go(func() { n.dropIdle(over, true) })
	}
	return true
}

// claim waits until no other goroutine makes, closes or erases the namespace. Others wait in turn until free is called.
// It returns runtime.ErrDraining if the daemon is stopping.
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

// put opens the services for use, or closes the namespace if s is nil. The caller holds mu.
func (n *namespaces) put(name agent.Namespace, s *services) {
	next := maps.Clone(*n.open.Load())
	if s == nil {
		delete(next, name)
	} else {
		next[name] = s
	}
	n.open.Store(&next)
}

// dropIdle closes at most that many idle namespaces that were not used since the last time. With pressed, it closes
// used ones, too, if there are not enough.
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

// drop closes the services, and reports whether it did. It does not if they are in use again.
func (n *namespaces) drop(name agent.Namespace, s *services) bool {
	free, err := n.claim(context.Background(), name)
	if err != nil {
		return false
	}
	defer free()
	if n.get(name) != s || !s.users.CompareAndSwap(0, closed) {
		return false
	}
	// a call without a request may have started since the check in dropIdle
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

// all calls do for the services of each open namespace, which stay open meanwhile.
func (n *namespaces) all(do func(*services)) {
	for _, s := range *n.open.Load() {
		if s.users.Add(1) > 0 { // enter would mark them as used
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
		return err // the store's error first: a replica that is cut off follows from it
	}
	if c := n.parts.cluster; c != nil {
		return c.Ready()
	}
	return nil
}

// draining reports whether Stop was called.
func (n *namespaces) draining() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.stopping
}

// calls returns the number of calls in all namespaces.
func (n *namespaces) calls() (running, waiting int) {
	n.all(func(s *services) {
		r, w := s.Load()
		running, waiting = running+r, waiting+w
	})
	return running, waiting
}

// recommendations counts the open recommendations of all open namespaces.
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

// exists returns store.ErrNotFound if the namespace does not exist. The default namespace, and those that tokens name,
// always do.
func (n *namespaces) exists(ctx context.Context, name agent.Namespace) error {
	if name == agent.DefaultNamespace || n.parts.named(name) {
		return nil
	}
	_, err := n.parts.memory.NamespaceInfo(ctx, name)
	return err
}

// Stop refuses new requests and stops the services of all namespaces concurrently. It returns their errors.
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

// Actions in the audit trail.
const (
	opNamespaceCreate = "namespace.create"
	opNamespaceDelete = "namespace.delete"
)

// ListNamespaces is part of api.Namespaces.
func (n *namespaces) ListNamespaces(ctx context.Context, after agent.Namespace,
	limit int) ([]store.NamespaceInfo, error) {
	return n.parts.memory.ListNamespaces(ctx, after, limit)
}

// Namespace is part of api.Namespaces.
func (n *namespaces) Namespace(ctx context.Context, name agent.Namespace) (store.NamespaceInfo, error) {
	return n.parts.memory.NamespaceInfo(ctx, name)
}

// CreateNamespace is part of api.Namespaces.
func (n *namespaces) CreateNamespace(ctx context.Context, name agent.Namespace, reason,
	actor string) (store.NamespaceInfo, error) {
	free, err := n.claim(ctx, name)
	if err != nil {
		return store.NamespaceInfo{}, err
	}
	defer free()
	return n.parts.memory.CreateNamespace(ctx, name, n.audit(actor, opNamespaceCreate, name, reason))
}

// EraseNamespace is part of api.Namespaces. It first ends calls and streams, then deletes what is kept outside the
// store, then the stored data. After a crash in between, the namespace exists with empty caches, or is gone completely.
func (n *namespaces) EraseNamespace(ctx context.Context, name agent.Namespace, reason, actor string) error {
	if name == agent.DefaultNamespace {
		return store.ErrDefault
	}
	free, err := n.claim(ctx, name) // no one can open it until it is gone
	if err != nil {
		return err
	}
	defer free()
	if _, err := n.parts.memory.NamespaceInfo(ctx, name); err != nil {
		return err
	}
	n.letGo(name)
	if err := n.parts.compiler.erase(ctx, name); err != nil {
		return err
	}
	// before the store announces the erasure, so that follow recognizes it
	n.erasedHere.Add(name)
	if err := n.parts.memory.EraseNamespace(context.WithoutCancel(ctx), name,
		n.audit(actor, opNamespaceDelete, name, reason)); err != nil {
		n.erasedHere.Take(name)
		return err
	}
	n.forget(name)
	n.log.Info().Str("namespace", string(name)).Str("actor", actor).Msg("a namespace was deleted")
	return nil
}

// letGo ends calls and streams of a namespace, closes its services, and drops its caches. The caller has claimed it.
func (n *namespaces) letGo(name agent.Namespace) {
	if s := n.get(name); s != nil {
		s.users.Add(closed)
		n.mu.Lock()
		n.put(name, nil)
		n.mu.Unlock()
		s.erase(errErased)
		if err := s.stopNow(); err != nil {
			n.log.Warn().Err(err).Str("namespace",
				string(name)).Msg("calls of a namespace that is deleted did not end in time")
		}
	}
	n.parts.fetch.Forget(name)
	n.parts.forget(name)
}

// forget drops the remaining state of a namespace that is gone.
func (n *namespaces) forget(name agent.Namespace) {
	n.parts.spend.Forget(name)
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.begun, name)
}

// audit returns an audit entry about a namespace.
func (n *namespaces) audit(actor, action string, name agent.Namespace, reason string) *agent.AuditEntry {
	return &agent.AuditEntry{ID: ids.New("aud"), Timestamp: agent.FormatTime(n.parts.runtime.Now()), Actor: actor,
		Action: action, Target: string(name), Reason: reason}
}
