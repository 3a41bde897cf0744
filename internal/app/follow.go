package app

import (
	"context"
	"sync"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// turn is a replica's turn to do maintenance, which one of those that share a store has, as long as it lives. Alone a daemon always has it.
type turn struct {
	shared bool
	store  store.Store
	lease  store.Lease // nil while another replica has it
}

// turnTTL is how long maintenance waits after the replica that did it is gone.
const turnTTL = 15 * time.Second

// Do does one round, if it is this replica's turn. The context of do ends when another replica takes over.
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

// have takes the turn if nobody has it.
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
		t.lease = nil // another one has it, or the store is away: the next tick asks again
	}
	return t.lease != nil
}

// End gives the turn to another replica.
func (t *turn) End() {
	if t.lease != nil {
		t.lease.Release()
		t.lease = nil
	}
}

// erasures counts the namespaces that this replica erased, until the store reports them.
type erasures struct {
	mu    sync.Mutex
	names map[agent.Namespace]int // guarded by mu; nil until somebody follows
}

func (e *erasures) Add(name agent.Namespace) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.names != nil {
		e.names[name]++
	}
}

// Take removes one, and reports whether there was one.
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

// follow lets go of the namespaces that other replicas erase, until the returned function is called and ctx has ended.
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

// renewed drops what this replica has of a namespace that another one erased, or of one that was imported: it had none of that name. Of one that was
// erased it may hear late, when the namespace was made again and is in use here: then what is under way goes on.
func (n *namespaces) renewed(ctx context.Context, name agent.Namespace, imported bool) {
	free, err := n.claim(ctx, name)
	if err != nil {
		return // this one stops
	}
	defer free()
	if s := n.get(name); s != nil && !imported && !s.stale(ctx) {
		n.parts.fetch.Forget(name)
		n.parts.pool.Forget(name)
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
