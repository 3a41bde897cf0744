package app

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"sync"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// spacesOf returns the namespaces of a daemon that does not serve and has no caretaker.
func spacesOf(t *testing.T) *namespaces {
	t.Helper()
	o := DefaultOptions()
	o.Listen, o.DataDir, o.Provider, o.Runners = "127.0.0.1:0", t.TempDir(), "replay", 1
	a, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// generous: slow machines
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := a.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return a.spaces
}

// visit uses the services of a namespace, and returns them once they have no users and have resumed their corrections.
func (n *namespaces) visit(t *testing.T, name agent.Namespace) *services {
	t.Helper()
	s, err := n.use(t.Context(), name, false)
	if err != nil {
		t.Fatal(err)
	}
	for s.leave(); s.users.Load() != 0; {
		goruntime.Gosched()
	}
	return s
}

// Services that were not used since the last look are closed, and made again at the next use. Those in use stay, and so
// do the default namespace's.
func TestIdleServicesAreDropped(t *testing.T) {
	t.Parallel()
	n := spacesOf(t)
	first := n.visit(t, "first")
	n.visit(t, "second")
	n.visit(t, agent.DefaultNamespace)
	held, err := n.use(t.Context(), "held", false)
	if err != nil {
		t.Fatal(err)
	}
	defer held.leave()
	n.dropIdle(mostOpen, false)
	if open := len(*n.open.Load()); open != 4 {
		t.Errorf("%d are open of 4 that were just used", open)
	}
	n.visit(t, "second")
	n.dropIdle(mostOpen, false)
	if n.get("first") != nil || n.get("second") == nil || n.get("held") != held ||
		n.get(agent.DefaultNamespace) == nil {
		t.Errorf("open are %v", *n.open.Load())
	}
	if again := n.visit(t, "first"); again == first {
		t.Error("services that were dropped are used")
	}
}

// However many namespaces are used in turn, few are open at once.
func TestFewServicesAreOpen(t *testing.T) {
	t.Parallel()
	n := spacesOf(t)
	for i := range mostOpen + 10 {
		n.visit(t, agent.Namespace(fmt.Sprintf("n%d", i)))
	}
	n.work.Wait()
	if open := len(*n.open.Load()); open > mostOpen {
		t.Errorf("%d are open, of which none is in use", open)
	}
}

// A user of a namespace that is being closed gets working services.
func TestUseWhileDropped(t *testing.T) {
	t.Parallel()
	n := spacesOf(t)
	var work sync.WaitGroup
	for w := range 4 {
		work.Go(func() {
			for i := range 25 {
				s, err := n.use(t.Context(), agent.Namespace(fmt.Sprintf("n%d", (w+i)%2)), false)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := s.ListTools(t.Context(), "", 1); err != nil {
					t.Errorf("in use: %v", err)
				}
				s.leave()
			}
		})
	}
	work.Go(func() {
		for range 50 {
			n.dropIdle(mostOpen, true)
		}
	})
	work.Wait()
}

// A request that found a namespace just before it was erased does not create it again; neither does the policy of the
// start-up settings.
func TestErasedStaysErased(t *testing.T) {
	t.Parallel()
	n := spacesOf(t)
	n.patch = map[string]any{"known_tools_prompt_limit": 1}
	const name = agent.Namespace("acme")
	if _, err := n.CreateNamespace(t.Context(), name, "", "ann"); err != nil {
		t.Fatal(err)
	}
	n.visit(t, name)
	if err := n.EraseNamespace(t.Context(), name, "", "ann"); err != nil {
		t.Fatal(err)
	}
	if s, err := n.use(t.Context(), name, true); err == nil {
		s.leave()
		t.Error("it is used after it was erased")
	} else if !errors.Is(err, store.ErrNotFound) {
		t.Error(err)
	}
	if _, err := n.Namespace(t.Context(), name); !errors.Is(err, store.ErrNotFound) || n.get(name) != nil {
		t.Errorf("after it was erased and asked for: %v, services %v; want that there is none", err, n.get(name))
	}
	if _, err := n.CreateNamespace(t.Context(), name, "", "ann"); err != nil {
		t.Error(err)
	}
	n.visit(t, name)
}
