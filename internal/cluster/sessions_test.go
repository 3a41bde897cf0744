package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

var errAway = errors.New("the database is away")

// shared is a store that counts requests and that single replicas can be cut off from.
type shared struct {
	*storetest.Memory
	of store.Namespace
}

func newShared(t *testing.T, sessions ...string) *shared {
	t.Helper()
	s := &shared{Memory: storetest.NewMemory(time.Now)}
	var err error
	if s.of, err = s.Namespace(agent.DefaultNamespace); err != nil {
		t.Fatal(err)
	}
	for _, id := range sessions {
		if err := s.of.CreateSession(t.Context(), agent.Session{ID: id, Role: "r"}, nil); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// member is one replica's view of the store.
type member struct {
	*shared
	mu    sync.Mutex
	away  bool // guarded by mu
	asked int  // calls of Own and Disown; guarded by mu
}

func (m *member) cutOff(yes bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.away = yes
}

func (m *member) reach(count int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked += count
	if m.away {
		return errAway
	}
	return nil
}

func (m *member) requests() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asked
}

func (m *member) Join(ctx context.Context, r store.Replica, ttl time.Duration) error {
	if err := m.reach(0); err != nil {
		return err
	}
	return m.Memory.Join(ctx, r, ttl)
}

func (m *member) Renew(ctx context.Context, r store.Replica, ttl time.Duration) error {
	if err := m.reach(0); err != nil {
		return err
	}
	return m.Memory.Renew(ctx, r, ttl)
}

func (m *member) Own(ctx context.Context, session, replica string) (store.Ownership, error) {
	if err := m.reach(1); err != nil {
		return store.Ownership{}, err
	}
	return m.of.Own(ctx, session, replica)
}

func (m *member) CreateOwned(ctx context.Context, s agent.Session, memory map[string]json.RawMessage,
	replica string) (store.Ownership, error) {
	if err := m.reach(1); err != nil {
		return store.Ownership{}, err
	}
	return m.of.CreateOwned(ctx, s, memory, replica)
}

func (m *member) Disown(ctx context.Context, owned map[string]store.Ownership) error {
	if err := m.reach(1); err != nil {
		return err
	}
	return m.of.Disown(ctx, owned)
}

// join adds a replica to the store and returns it with its sessions.
func join(t *testing.T, s *shared) (*Cluster, *Sessions, *member) {
	t.Helper()
	m := &member{shared: s}
	o := DefaultOptions()
	// Nothing is forwarded there. Without an address, the replica would yield to the next one.
	o.Store, o.Address, o.TLS = m, "127.0.0.1:1", &TLS{}
	c, err := Join(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.cutOff(false); _ = c.Leave(context.Background()) })
	return c, c.Sessions(agent.DefaultNamespace, m), m
}

// enter enters the session, leaves it again and returns the epoch.
func enter(t *testing.T, s *Sessions, id string) int64 {
	t.Helper()
	epoch, err := s.Enter(t.Context(), id)
	if err != nil {
		t.Fatalf("enter %s: %v", id, err)
	}
	s.Leave(id)
	return epoch
}

// owner returns the owner of the session as Enter reports it.
func owner(s *Sessions, id string) string {
	_, err := s.Enter(context.Background(), id)
	var away *ElsewhereError
	if errors.As(err, &away) {
		return away.Owner.Replica
	}
	if err == nil {
		s.Leave(id)
		return s.c.ID()
	}
	return err.Error()
}

// The store is asked for a session only once; afterwards the session is in memory. Another replica learns who owns it.
func TestOwnersAskOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShared(t, "sess_1", "sess_2")
		a, mine, store := join(t, s)
		_, others, _ := join(t, s)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() { enter(t, mine, "sess_1") })
		}
		all.Wait()
		for range 100 {
			enter(t, mine, "sess_1")
		}
		if n := store.requests(); n != 1 {
			t.Errorf("the store was asked %d times for one session, want 1", n)
		}
		if got := a.Stats(); got.Sessions != 1 || got.Here != 107 {
			t.Errorf("figures: %+v, want 1 session, entered 107 times in memory", got)
		}
		if got := owner(others, "sess_1"); got != a.ID() {
			t.Errorf("the other replica found %q, want %q", got, a.ID())
		}
		if _, err := mine.Enter(t.Context(), "sess_3"); err == nil {
			t.Error("a session that is not there was entered")
		}
	})
}

// A session in memory is entered without an allocation.
func TestEnterAllocatesNothing(t *testing.T) {
	s := newShared(t, "sess_1")
	_, mine, _ := join(t, s)
	enter(t, mine, "sess_1")
	if n := testing.AllocsPerRun(100, func() { enter(t, mine, "sess_1") }); n > 0 {
		t.Errorf("%.0f allocations, want none", n)
	}
}

// An unused session is given back after Idle, one in use is not. Another replica then gets it under a higher epoch.
func TestIdleSessionsMove(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShared(t, "sess_1", "sess_2")
		a, mine, _ := join(t, s)
		b, others, _ := join(t, s)
		first := enter(t, mine, "sess_1")
		if _, err := mine.Enter(t.Context(), "sess_2"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(a.o.Idle + a.o.Idle/2)
		synctest.Wait()
		if got := owner(others, "sess_1"); got != b.ID() {
			t.Errorf("an idle session belongs to %q, want %q", got, b.ID())
		}
		if second := enter(t, others, "sess_1"); second <= first {
			t.Errorf("epoch %d after %d, want a larger one", second, first)
		}
		if got := owner(others, "sess_2"); got != a.ID() {
			t.Errorf("a session in use belongs to %q, want %q", got, a.ID())
		}
	})
}

// Sessions created here are owned without asking the store. All idle ones are given back in one request.
func TestMadeSessions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShared(t)
		a, mine, store := join(t, s)
		b, others, _ := join(t, s)
		for _, id := range []string{"sess_1", "sess_2", "sess_3"} {
			if epoch, err := mine.Create(t.Context(), agent.Session{ID: id}, nil); err != nil || epoch == 0 {
				t.Fatalf("epoch %d, %v", epoch, err)
			}
			enter(t, mine, id)
			mine.Leave(id)
			if got := owner(others, id); got != a.ID() {
				t.Errorf("%s belongs to %q, want %q", id, got, a.ID())
			}
		}
		if _, err := mine.Create(t.Context(), agent.Session{ID: "sess_1"}, nil); err == nil {
			t.Error("one session was made twice")
		}
		if n := store.requests(); n != 3 {
			t.Errorf("the store was asked %d times, want 3", n)
		}
		time.Sleep(a.o.Idle + a.o.Idle/2)
		synctest.Wait()
		if n := store.requests(); n != 4 {
			t.Errorf("the store was asked %d times to take them back, want once", n-3)
		}
		if got := owner(others, "sess_2"); got != b.ID() {
			t.Errorf("an idle session belongs to %q, want %q", got, b.ID())
		}
		a.Drain()
		if _, err := mine.Create(t.Context(), agent.Session{ID: "sess_4"}, nil); !errors.Is(err, ErrLeaving) {
			t.Errorf("made at a replica that is leaving: %v", err)
		}
	})
}

// A replica that cannot renew its heartbeat stops before others may take its sessions, which they do within 15 s.
// Afterwards it joins as a new replica and takes nothing that others own.
func TestCutOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShared(t, "sess_1", "sess_2")
		a, mine, store := join(t, s)
		_, others, _ := join(t, s)
		was := a.ID()
		enter(t, mine, "sess_1")
		enter(t, mine, "sess_2")
		store.cutOff(true)
		began := time.Now()
		for owner(others, "sess_1") == was {
			mineStill := owner(mine, "sess_1") == was
			time.Sleep(10 * time.Millisecond)
			if took := time.Since(began); took > 15*time.Second {
				t.Fatalf("the session is still its owner's after %s", took)
			}
			if !mineStill && a.Ready() == nil {
				t.Fatal("a replica that takes no sessions says that it is ready")
			}
		}
		if got := owner(mine, "sess_1"); got != ErrCutOff.Error() {
			t.Errorf("the old owner of a session that has moved: %q, want that it is cut off", got)
		}
		store.cutOff(false)
		time.Sleep(a.o.TTL)
		if a.ID() == was {
			t.Error("a replica that was counted as dead has its old id")
		}
		if got := owner(mine, "sess_1"); got == a.ID() {
			t.Error("a session that has moved belongs to its old owner")
		}
		if got := owner(mine, "sess_2"); got != a.ID() {
			t.Errorf("a session that nobody took belongs to %q, want %q", got, a.ID())
		}
	})
}

// A call that was running when its replica was counted as dead ends before the session's next call starts there.
func TestCallsStayInOrderAfterCutOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShared(t, "sess_1")
		a, mine, store := join(t, s)
		first, err := mine.Enter(t.Context(), "sess_1")
		if err != nil {
			t.Fatal(err)
		}
		store.cutOff(true)
		time.Sleep(2 * a.o.TTL)
		store.cutOff(false)
		time.Sleep(a.o.TTL)
		entered := make(chan int64)
		go func() {
			epoch, _ := mine.Enter(context.Background(), "sess_1")
			entered <- epoch
		}()
		synctest.Wait()
		select {
		case <-entered:
			t.Fatal("entered while a call of an earlier epoch is under way")
		default:
		}
		mine.Leave("sess_1")
		if second := <-entered; second <= first {
			t.Errorf("epoch %d after %d, want a larger one", second, first)
		}
	})
}

// A leaving replica takes no new sessions. It gives a requested session back as soon as the session is unused, and the
// rest when it leaves.
func TestHandOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShared(t, "sess_1", "sess_2", "sess_3")
		a, mine, _ := join(t, s)
		b, others, _ := join(t, s)
		enter(t, mine, "sess_1")
		if _, err := mine.Enter(t.Context(), "sess_2"); err != nil {
			t.Fatal(err)
		}
		a.Drain()
		if got := owner(mine, "sess_3"); got != ErrLeaving.Error() {
			t.Errorf("a new session: %q, want that the replica is leaving", got)
		}
		// as if the other replica had forwarded a request here
		if got := owner(mine, "sess_1"); got != ErrLeaving.Error() {
			t.Errorf("an idle session: %q, want that the replica is leaving", got)
		}
		if got := owner(others, "sess_1"); got != b.ID() {
			t.Errorf("a session that was given back belongs to %q, want %q", got, b.ID())
		}
		asked := make(chan string)
		go func() { asked <- owner(mine, "sess_2") }()
		synctest.Wait()
		if got := owner(others, "sess_2"); got != a.ID() {
			t.Errorf("a session in use belongs to %q, want %q", got, a.ID())
		}
		mine.Leave("sess_2")
		if got := <-asked; got != ErrLeaving.Error() {
			t.Errorf("a session whose call has ended: %q, want that the replica is leaving", got)
		}
		if got := owner(others, "sess_2"); got != b.ID() {
			t.Errorf("that session belongs to %q, want %q", got, b.ID())
		}
		if err := a.Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		if all, err := b.Replicas(t.Context()); err != nil || len(all) != 1 || all[0].ID != b.ID() {
			t.Errorf("replicas: %v, %v", all, err)
		}
	})
}

// After a refused commit the store is asked again.
func TestFenced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShared(t, "sess_1")
		_, mine, store := join(t, s)
		enter(t, mine, "sess_1")
		mine.Fenced("sess_1")
		enter(t, mine, "sess_1")
		if n := store.requests(); n != 2 {
			t.Errorf("the store was asked %d times, want 2", n)
		}
	})
}
