package storetest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/store"
)

// leaseTTL is so long that a slow test does not lose a lease by accident.
var leaseTTL = store.LeaseOptions{TTL: time.Hour}

// leases checks that a lease excludes others until it is released, expires, or its holder leaves.
func leases(t *testing.T, r *rig) {
	_, other := r.another()
	held, err := r.s.Lease(r.ctx, "k", leaseTTL)
	r.ok(err)
	inUse := func(what string) {
		t.Helper()
		if _, err := other.Lease(r.ctx, "k", leaseTTL); !errors.Is(err, store.ErrInUse) {
			t.Errorf("%s: got %v, want ErrInUse", what, err)
		}
	}
	inUse("held")
	for _, n := range []store.Namespace{r.in("acme"), r.s} { // the same key in another namespace, and another key
		key := "k"
		if n == r.s {
			key = "other"
		}
		free, err := n.Lease(r.ctx, key, leaseTTL)
		r.ok(err)
		free.Release()
		free.Release()
	}
	held.Release()
	_, err = other.Lease(r.ctx, "k", leaseTTL)
	r.ok(err)
	r.elapse(2 * leaseTTL.TTL)
	again, err := r.s.Lease(r.ctx, "k", leaseTTL) // the other one has expired
	r.ok(err)
	held.Release() // releasing an old lease must not end the new one
	inUse("taken over")
	again.Release()

	r.joined("a")
	_, err = r.s.Lease(r.ctx, "k", store.LeaseOptions{TTL: time.Hour, Holder: "a"})
	r.ok(err)
	inUse("held by a replica")
	r.ok(r.store.Leave(r.ctx, "a"))
	again, err = other.Lease(r.ctx, "k", leaseTTL)
	r.ok(err)
	select {
	case <-again.Lost():
		t.Error("a lease that is held was lost")
	default:
	}
	again.Release()
	if _, err := r.s.Lease(r.ctx, "k", store.LeaseOptions{}); err == nil {
		t.Error("a lease without a TTL was given")
	}
}

// leaseLost checks that a holder is notified if its lease was not renewed in time.
func leaseLost(t *testing.T, r *rig) {
	_, other := r.another()
	held, err := r.s.Lease(r.ctx, "k", store.LeaseOptions{TTL: 3 * time.Second})
	r.ok(err)
	r.elapse(10 * time.Second)
	taken, err := other.Lease(r.ctx, "k", leaseTTL)
	r.ok(err)
	<-held.Lost()
	held.Release()
	if _, err := r.s.Lease(r.ctx, "k", leaseTTL); !errors.Is(err, store.ErrInUse) {
		t.Errorf("released after it was lost: got %v, want ErrInUse", err)
	}
	taken.Release()
}

// leaseEnds checks that a holder is notified if its replica leaves or its store is closed.
func leaseEnds(t *testing.T, r *rig) {
	r.joined("a")
	left, err := r.s.Lease(r.ctx, "left", store.LeaseOptions{TTL: 3 * time.Second, Holder: "a"})
	r.ok(err)
	closed, err := r.s.Lease(r.ctx, "closed", leaseTTL)
	r.ok(err)
	r.ok(r.store.Leave(r.ctx, "a"))
	r.ok(r.store.Close(r.ctx))
	for name, l := range map[string]store.Lease{"left": left, "closed": closed} {
		select {
		case <-l.Lost():
		case <-time.After(30 * time.Second):
			t.Errorf("the holder of the lease %s was not notified", name)
		}
		l.Release()
	}
}

// leaseWaits checks that waiting callers get the lease one after another.
func leaseWaits(t *testing.T, r *rig) {
	_, other := r.another()
	wait := store.LeaseOptions{TTL: time.Hour, Wait: true}
	first, err := r.s.Lease(r.ctx, "k", wait)
	r.ok(err)
	ended, cancel := context.WithCancel(r.ctx)
	cancel()
	if _, err := other.Lease(ended, "k", wait); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting with a context that ended: got %v, want Canceled", err)
	}
	var group sync.WaitGroup
	var holding, had atomic.Int64
	for i := range 6 {
		n := []store.Namespace{r.s, other}[i%2]
		group.Go(func() {
			l, err := n.Lease(r.ctx, "k", wait)
			if err != nil {
				t.Error(err)
				return
			}
			if holding.Add(1) != 1 {
				t.Error("two hold one lease")
			}
			had.Add(1)
			holding.Add(-1)
			l.Release()
		})
	}
	if had.Load() != 0 {
		t.Error("the lease was given while it was held")
	}
	first.Release()
	group.Wait()
	if had.Load() != 6 {
		t.Errorf("%d of 6 got the lease", had.Load())
	}
}

// candidates checks that everybody sees a candidate until it expires, and that the feed names its key.
func candidates(t *testing.T, r *rig) {
	another, other := r.another()
	put := make(chan store.Change, 10)
	defer r.watch(another, "", func(c store.Change) { put <- c })()
	r.ok(r.s.PutCandidate(r.ctx, "k", []byte("\x00first"), time.Minute))
	if c := <-put; c.Kind != store.ChangedCandidate || c.Name != "k" || c.Namespace != "default" {
		t.Errorf("got the change %+v, want the candidate k", c)
	}
	r.ok(other.PutCandidate(r.ctx, "k", []byte("\x00second"), time.Minute))
	got, err := r.s.Candidate(r.ctx, "k")
	if r.ok(err); string(got) != "\x00second" {
		t.Errorf("got %q, want the second one", got)
	}
	for _, n := range []store.Namespace{r.in("acme"), r.s} {
		key := "k"
		if n == r.s {
			key = "other"
		}
		if _, err := n.Candidate(r.ctx, key); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("nothing was put: got %v, want ErrNotFound", err)
		}
	}
	r.elapse(2 * time.Minute)
	if _, err := other.Candidate(r.ctx, "k"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("its time is over: got %v, want ErrNotFound", err)
	}
}
