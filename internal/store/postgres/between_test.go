//go:build postgres

package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/postgres/pgtest"
)

// Faults that a between injects once a transaction is open and waits for its next batch: the database has answered the
// first batch or, for betweenHides, has committed it.
const (
	betweenCuts   = iota // breaks the connection
	betweenStalls        // forwards nothing any more, like a stopped process
	betweenKills         // breaks all connections and accepts none, like a killed process
	betweenHides         // breaks the connection instead of forwarding the acknowledgement of the commit
)

// A between is a proxy between a store and its database. It waits for an open transaction and then injects a fault.
type between struct {
	url    string // of the proxy
	does   int
	spoils atomic.Int32  // number of faults still to inject
	met    chan struct{} // receives once per injected fault

	mu    sync.Mutex
	conns []net.Conn // guarded by mu
	dead  bool       // guarded by mu
}

// newBetween starts a proxy for the database of that URL until the test ends.
func newBetween(t *testing.T, database string, does int) *between {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	socket := filepath.Join(q.Get("host"), ".s.PGSQL.5432")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(listener.Addr().String())
	q.Set("host", host)
	q.Set("port", port)
	u.RawQuery = q.Encode()
	b := &between{url: u.String(), does: does, met: make(chan struct{}, 100)}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("unix", socket)
			if err != nil || !b.add(client, server) {
				_ = client.Close()
				continue
			}
			running.Go(func() { // ends with the connections
				_, _ = io.Copy(server, client)
				_ = server.Close()
			})
			running.Go(func() {
				if !b.answers(client, server) {
					_ = client.Close()
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		b.end()
		running.Wait()
	})
	return b
}

func (b *between) add(client, server net.Conn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.conns = append(b.conns, client, server)
	return !b.dead
}

// end breaks all connections and accepts no more.
func (b *between) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dead = true
	for _, c := range b.conns {
		_ = c.Close()
	}
}

// answers forwards the database's messages, and reports whether the client still waits for more.
func (b *between) answers(client, server net.Conn) (stalled bool) {
	for {
		head := make([]byte, 5) // the type, and the length with its own four bytes
		if _, err := io.ReadFull(server, head); err != nil {
			return false
		}
		body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
		if _, err := io.ReadFull(server, body); err != nil {
			return false
		}
		open := head[0] == 'Z' && len(body) == 1 && body[0] == 'T' // ready for the next batch of a transaction
		if b.does == betweenHides {
			open = head[0] == 'C' && string(body) == "COMMIT\x00"
		}
		if open && b.spoils.Add(-1) >= 0 {
			switch b.does {
			case betweenCuts, betweenHides:
				_ = server.Close()
			case betweenKills:
				b.end()
			}
			b.met <- struct{}{}
			return b.does == betweenStalls
		}
		if _, err := client.Write(append(head, body...)); err != nil {
			return false
		}
	}
}

// behind opens a store behind a between and one that bypasses it, and returns their default namespaces. The first one
// sends nothing on its own.
func behind(t *testing.T, does int) (b *between, s *Store, through, past *Namespace) {
	t.Helper()
	database := pgtest.NewDatabase(t)
	_, spaces := opened(t, database, 1)
	created(t, spaces[0], "sess_0", "sess_1")
	b = newBetween(t, database, does)
	o := DefaultOptions(b.url)
	o.Direct, o.Poll = database, time.Hour
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.end() // a silent connection delays closing the store
		_ = s.Close(context.Background())
	})
	if through, err = s.Space(agent.DefaultNamespace); err != nil {
		t.Fatal(err)
	}
	if err := through.ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b, s, through, spaces[0]
}

// wantWhole fails the test unless that many calls were committed completely.
func wantWhole(t *testing.T, n *Namespace, calls int) {
	t.Helper()
	checkCounts(t, n, calls)
	r, err := n.store.Verify(t.Context())
	if err != nil || len(r.Problems) > 0 {
		t.Errorf("verify: %v, %v", r.Problems, err)
	}
}

// A transaction whose connection breaks between its batches is repeated, and its calls count once.
func TestCutBetweenBatches(t *testing.T) {
	t.Parallel()
	b, _, through, past := behind(t, betweenCuts)
	const cuts, writers = 4, 6
	b.spoils.Store(cuts)
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := range 2 {
				if err := through.CommitCall(t.Context(), countedCall(w, i)); err != nil {
					t.Errorf("writer %d, call %d: %v", w, i, err)
				}
			}
		})
	}
	group.Wait()
	if n := len(b.met); n != cuts {
		t.Errorf("%d transactions were cut, want %d", n, cuts)
	}
	wantWhole(t, past, 2*writers)
}

// A replica that is killed between the batches leaves nothing behind, and the next group of another replica proceeds.
func TestKilledBetweenBatches(t *testing.T) {
	t.Parallel()
	b, s, through, past := behind(t, betweenKills)
	b.spoils.Store(1)
	lost := make(chan error, 1)
	go func() { lost <- through.CommitCall(t.Context(), countedCall(0, 0)) }()
	<-b.met
	s.kill()
	if err := <-lost; err == nil {
		t.Error("a call that was never committed was acknowledged")
	}
	if err := past.CommitCall(t.Context(), countedCall(2, 0)); err != nil { // in the same session, on the same artifact
		t.Fatal(err)
	}
	wantWhole(t, past, 1)
}

// A replica that is stopped between the batches holds its locks until the database ends its transaction. Then others
// proceed, and once the replica continues, its call counts once.
func TestStoppedBetweenBatches(t *testing.T) {
	t.Parallel()
	b, _, through, past := behind(t, betweenStalls)
	b.spoils.Store(1)
	stopped := make(chan error, 1)
	go func() { stopped <- through.CommitCall(t.Context(), countedCall(0, 0)) }()
	<-b.met
	if records, err := past.History(t.Context(), "sess_0", store.HistoryQuery{}); err != nil || records.Size != 0 {
		t.Errorf("%d records are seen of a call that is not committed, %v", records.Size, err)
	}
	if err := past.CommitCall(t.Context(), countedCall(2, 0)); err != nil {
		t.Fatal(err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	wantWhole(t, past, 2)
}

// Data that a call in flight stores apart from its commit is stored once, even if the connection breaks before the
// acknowledgement.
func TestHiddenCommits(t *testing.T) {
	t.Parallel()
	b, s, n, past := behind(t, betweenHides)
	day := agent.DayOf(time.Now())
	caps := []store.Cap{{Scope: store.ScopeNamespace, First: day, Last: day, Limit: 500}}
	if err := s.Join(t.Context(), store.Replica{ID: "a"}, time.Hour); err != nil {
		t.Fatal(err)
	}
	within := func(id string) error {
		return n.ReserveWithin(t.Context(), agent.Spend{ID: id, Day: day, Tokens: agent.Tokens{Prompt: 200}}, "a", caps)
	}
	reserved := agent.Spend{ID: "spend_0", Day: day - 1, Tokens: agent.Tokens{Requests: 1, Prompt: 9}}
	if err := past.Reserve(t.Context(), reserved); err != nil {
		t.Fatal(err)
	}
	var held store.Lease
	for name, do := range map[string]func() error{
		"a reservation": func() error { return n.Reserve(t.Context(), agent.Spend{ID: "spend_1", Day: day - 1}) },
		"a settlement": func() error {
			cost := reserved
			cost.Prompt = 5
			return n.Settle(t.Context(), cost)
		},
		"a reservation of new chunks": func() error { return within("spend_2") },
		"a candidate": func() error {
			return n.PutCandidate(t.Context(), "c", []byte("code"),
				time.Hour)
		},
		"a lease": func() (err error) {
			held, err = n.Lease(t.Context(), "l", store.LeaseOptions{TTL: time.Hour})
			return err
		},
	} {
		b.spoils.Store(1)
		if err := do(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		select {
		case <-b.met:
		default:
			t.Errorf("%s was not spoiled", name)
		}
	}
	b.spoils.Store(1)
	if err := within("spend_3"); err != nil {
		t.Errorf("a reservation of chunks that are there: %v", err)
	}
	if uses, err := past.UseOf(t.Context(), caps); err != nil || uses[0] != (store.Use{Reserved: 400}) {
		t.Errorf("reserved %+v, %v, want 400", uses, err)
	}
	if spent, err := past.Spent(t.Context(), day-1, day-1); err != nil || len(spent.Rows) != 1 ||
		spent.Rows[0].Models[0].Tokens != (agent.Tokens{Requests: 1, Prompt: 5}) {
		t.Errorf("spent %+v, %v, want one request of 5 tokens", spent, err)
	}
	if _, err := past.Lease(t.Context(), "l", store.LeaseOptions{TTL: time.Hour}); !errors.Is(err, store.ErrInUse) {
		t.Errorf("a second lease: %v", err)
	}
	if held != nil {
		held.Release()
	}
	again, err := past.Lease(t.Context(), "l", store.LeaseOptions{TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	again.Release()
}
