package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// weather returns a connection with that sealed secret.
func weather(sealed string) agent.Connection {
	return agent.Connection{Name: "weather", Description: "forecasts", Hosts: []string{"api.example.org"},
		Methods: []string{"GET"}, Roles: []string{"*"},
		Auth: agent.ConnectionAuth{Type: agent.AuthBearer, Sealed: []byte(sealed)}}
}

// connections checks that connections and their audit entries persist until they are deleted, and stay in their
// namespace.
func connections(t *testing.T, r *rig) {
	made, err := r.s.PutConnection(r.ctx, weather("one"), 0, &agent.AuditEntry{ID: "audit_1"})
	r.ok(err)
	if made.Revision != 1 || !made.CreatedAt.Equal(r.clock.now()) || !made.UpdatedAt.Equal(r.clock.now()) {
		t.Errorf("made %+v", made)
	}
	mail := weather("")
	mail.Name, mail.Auth = "mail", agent.ConnectionAuth{Type: agent.AuthOAuth2,
		TokenURL: "https://id.example.org/token", ClientID: "c", Scopes: []string{"s"}, Env: "RECURGENT_SECRET_MAIL"}
	_, err = r.s.PutConnection(r.ctx, mail, 0, nil)
	r.ok(err)
	r.clock.advance(time.Hour)
	made, err = r.s.PutConnection(r.ctx, weather("two"), store.AnyRevision, &agent.AuditEntry{ID: "audit_2"})
	r.ok(err)
	if made.Revision != 2 || made.CreatedAt.Equal(made.UpdatedAt) {
		t.Errorf("replaced by %+v", made)
	}
	r.everyWay(func() {
		got, err := r.s.ListConnections(r.ctx)
		r.ok(err)
		if len(got) != 2 || got[0].Name != "mail" || got[0].Auth.Env != mail.Auth.Env || got[0].Auth.Scopes[0] != "s" ||
			!sameJSON(got[1], made) {
			t.Errorf("got %+v", got)
		}
		if audit, err := r.s.Audit(r.ctx, store.AuditQuery{Limit: 10}); err != nil || len(audit) != 2 {
			t.Errorf("got audit %+v, %v", audit, err)
		}
		other, err := r.store.Namespace("acme")
		r.ok(err)
		if list, err := other.ListConnections(r.ctx); err != nil || len(list) != 0 {
			t.Errorf("another namespace has %v, %v", list, err)
		}
	})
	r.ok(r.s.DeleteConnection(r.ctx, "weather", store.AnyRevision, &agent.AuditEntry{ID: "audit_3"}))
	r.everyWay(func() {
		if got, err := r.s.ListConnections(r.ctx); err != nil || len(got) != 1 || got[0].Name != "mail" {
			t.Errorf("after the deletion: %+v, %v", got, err)
		}
		if err := r.s.DeleteConnection(r.ctx, "weather", store.AnyRevision, nil); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("deleted again: %v", err)
		}
	})
}

// connectionsChange checks that revisions are compared, even by concurrent changes, that there are at most
// MaxConnections, and that the change feed names each change.
func connectionsChange(t *testing.T, r *rig) {
	var mu sync.Mutex
	var changes []string
	stop := r.watch(r.store, "", func(c store.Change) {
		mu.Lock()
		defer mu.Unlock()
		if c.Kind == "connection" {
			changes = append(changes, fmt.Sprint(c.Name, c.Revision))
		}
	})
	defer stop()
	var group sync.WaitGroup
	var won, lost int
	for range 8 {
		group.Go(func() {
			_, err := r.s.PutConnection(r.ctx, weather("x"), 0, nil)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won++
			} else if errors.Is(err, store.ErrConflict) {
				lost++
			}
		})
	}
	group.Wait()
	if won != 1 || lost != 7 {
		t.Errorf("%d made it, %d were refused", won, lost)
	}
	if err := r.s.DeleteConnection(r.ctx, "weather", 7, nil); !errors.Is(err, store.ErrConflict) {
		t.Errorf("deleted another revision: %v", err)
	}
	r.ok(r.s.DeleteConnection(r.ctx, "weather", 1, nil))
	if got := fmt.Sprint(changes); got != "[weather1 weather0]" {
		t.Errorf("changes %s", got)
	}
	for i := range store.MaxConnections {
		c := weather("x")
		c.Name = fmt.Sprint("c", i)
		_, err := r.s.PutConnection(r.ctx, c, 0, nil)
		r.ok(err)
	}
	if _, err := r.s.PutConnection(r.ctx, weather("x"), 0, nil); !errors.Is(err, store.ErrTooMany) {
		t.Errorf("one too many: %v", err)
	}
}
