//go:build postgres

package postgres

import (
	"strings"
	"testing"

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
	if _, err := s.pool.Exec(t.Context(), "INSERT INTO schema_version (version_id, is_applied) VALUES (99, true)"); err != nil {
		t.Fatal(err)
	}
	if x, err = Examine(t.Context(), s.o); err != nil || !strings.Contains(strings.Join(x.Problems, "\n"), "a later version made") {
		t.Errorf("of newer tables: got %+v, %v", x, err)
	}
	o := s.o
	o.URL, o.Direct = "postgres://somebody:s3cret@127.0.0.1:1/none", ""
	if _, err := Examine(t.Context(), o); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("of no server: got %v, want an error without the password", err)
	}
}

// With a synchronous standby nothing acknowledged is lost, and the examination says so.
func TestExamineStandby(t *testing.T) {
	t.Parallel()
	c := pgtest.Start(t, pgtest.Options{Standby: true, Fsync: true})
	x, err := Examine(t.Context(), DefaultOptions(c.CreateDatabase(t, "durable")))
	if err != nil || !x.Durable || x.Form != 0 || !strings.Contains(x.Promise, "nothing acknowledged is lost") {
		t.Errorf("got %+v, %v", x, err)
	}
}
