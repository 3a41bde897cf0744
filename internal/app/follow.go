package app

import (
	"context"
	"sync"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// A turn is the right to run maintenance. Of the replicas that share a store, one holds it while it lives; a daemon
// without replicas always holds it. One goroutine uses it.
type turn struct {
	shared bool
	store  store.Store
	lease  store.Lease // nil while another replica holds it
}

// turnTTL is how long maintenance pauses after the replica that held the turn has died.
const turnTTL = 15 * time.Second

// Do calls do if this replica has the turn. The context of do ends when the replica loses it.
func (t *turn) Do(ctx context.Context, do func(context.Context)) {
	if !t.shared {
		do(ctx)
		return
	}
	if !t.have(ctx) {
		return
	}
	held, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-t.lease.Lost():
			cancel(store.ErrFenced)
		case <-ended:
		}
	})
	do(held)
	close(ended)
	watching.Wait()
	cancel(nil)
}

// have reports whether this replica has the turn. It tries to take a free one.
func (t *turn) have(ctx context.Context) bool {
	if t.lease != nil {
		select {
		case <-t.lease.Lost():
			t.lease = nil
		default:
			return true
		}
	}
	home, err := t.store.Namespace(agent.DefaultNamespace)
	if err != nil {
		return false
	}
	if t.lease, err = home.Lease(ctx, "maintenance", store.LeaseOptions{TTL: turnTTL}); err != nil {
		t.lease = nil // another replica has it or the store is away: try again at the next tick
	}
	return t.lease != nil
}

// End releases the turn.
func (t *turn) End() {
	if t.lease != nil {
		t.lease.Release()
		t.lease = nil
	}
}

// erasures counts erasures by this replica that the store has not reported yet. They distinguish its own changes from
// those of other replicas.
type erasures struct {
	mu    sync.Mutex
	names map[agent.Namespace]int // guarded by mu; nil until follow is called
}

// Add counts an erasure. It does nothing before follow is called.
func (e *erasures) Add(name agent.Namespace) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.names != nil {
		e.names[name]++
	}
}

// Take removes one erasure of that namespace, and reports whether there was one.
func (e *erasures) Take(name agent.Namespace) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.names[name] == 0 {
		return false
	}
	if e.names[name]--; e.names[name] == 0 {
		delete(e.names, name)
	}
	return true
}

// follow closes the namespaces that other replicas erase or import. The caller must call stop, cancel ctx, and then
// wait for running.
func (n *namespaces) follow(ctx context.Context, running *sync.WaitGroup) (stop func()) {
	if !n.parts.runtime.Shared {
		return func() {}
	}
	n.erasedHere.mu.Lock()
	n.erasedHere.names = map[agent.Namespace]int{}
	n.erasedHere.mu.Unlock()
	stop, err := n.parts.memory.Watch("", func(c store.Change) {
		if c.Kind == store.ChangedNamespace && !n.erasedHere.Take(c.Namespace) {
			running.Go(func() { n.renewed(ctx, c.Namespace, c.Name == store.ImportedNamespace) })
		}
	})
	if err != nil {
		n.log.Error().Err(err).Msg("namespaces that other replicas delete stay open here")
		return func() {}
	}
	return stop
}

// renewed drops the local state of a namespace that another replica erased or imported. The notification of an erasure
// may come late, when a new namespace of that name is in use here. Then its calls go on, and only caches are dropped.
func (n *namespaces) renewed(ctx context.Context, name agent.Namespace, imported bool) {
	free, err := n.claim(ctx, name)
	if err != nil {
		return // the daemon is stopping
	}
	defer free()
	if s := n.get(name); s != nil && !imported && !s.stale(ctx) {
		n.parts.fetch.Forget(name)
		n.parts.forget(name)
	} else {
		n.letGo(name)
		if err := n.parts.compiler.erase(ctx, name); err != nil {
			n.log.Warn().Err(err).Str("namespace",
				string(name)).Msg("compiled programs of a namespace that was deleted elsewhere stay")
		}
		n.forget(name)
	}
	n.log.Info().Str("namespace", string(name)).Msg("another process deleted a namespace, or imported one")
}
