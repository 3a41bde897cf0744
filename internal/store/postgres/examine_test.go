//go:build postgres

package postgres

import (
	"context"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store/postgres/pgtest"
)

func TestExamine(t *testing.T) {
	t.Parallel()
	s := filled(t)
	x, err := Examine(t.Context(), s.o)
	if err != nil || len(x.Problems) > 0 || x.Form != x.Newest || x.Form == 0 {
		t.Fatalf("of a store that is in use: got %+v, %v", x, err)
	}
	if x.Durable || x.Promise == "" {
		t.Errorf("a server without a standby: got %+v", x)
	}
	if _, err := s.pool.Exec(t.Context(),
		"INSERT INTO schema_version (version_id, is_applied) VALUES (99, true)"); err != nil {
		t.Fatal(err)
	}
	if x, err = Examine(t.Context(), s.o); err != nil || !strings.Contains(strings.Join(x.Problems, "\n"),
		"knows versions up to") {
		t.Errorf("of newer tables: got %+v, %v", x, err)
	}
	o := s.o
	o.URL, o.Direct = "postgres://somebody:s3cret@127.0.0.1:1/none", ""
	if _, err := Examine(t.Context(), o); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("of no server: got %v, want an error without the password", err)
	}
}

// StoredConnections reads only the connections of the default namespace, without opening a store. A database without
// tables has none.
func TestStoredConnections(t *testing.T) {
	t.Parallel()
	o := DefaultOptions(pgtest.NewDatabase(t))
	if all, err := StoredConnections(t.Context(), o); err != nil || len(all) != 0 {
		t.Errorf("of an empty database: got %v, %v", all, err)
	}
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	for _, name := range []agent.Namespace{agent.DefaultNamespace, "acme"} {
		n, err := s.Namespace(name)
		if err == nil {
			_, err = n.PutConnection(t.Context(), agent.Connection{Name: "weather of " + string(name)}, 0,
				&agent.AuditEntry{ID: "audit_" + string(name)})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if all, err := StoredConnections(t.Context(), o); err != nil || len(all) != 1 ||
		all[0].Name != "weather of default" {
		t.Errorf("got %v, %v", all, err)
	}
}

// With a synchronous standby nothing acknowledged is lost, and the examination reports that.
func TestExamineStandby(t *testing.T) {
	t.Parallel()
	c := pgtest.Start(t, pgtest.Options{Standby: true, Fsync: true})
	x, err := Examine(t.Context(), DefaultOptions(c.CreateDatabase(t, "durable")))
	if err != nil || !x.Durable || x.Form != 0 || !strings.Contains(x.Promise, "nothing acknowledged is lost") {
		t.Errorf("got %+v, %v", x, err)
	}
}
