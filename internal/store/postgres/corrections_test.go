//go:build postgres

package postgres

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store/postgres/pgtest"
)

// The entry of a corrected call is found without reading others, even if the connection made its plan while the table
// was empty.
func TestCorrectionsReadOneCall(t *testing.T) {
	stores, spaces := opened(t, pgtest.NewDatabase(t), 1)
	created(t, spaces[0], "sess_0")
	ns := spaces[0].id.Load()
	tx, err := stores[0].pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := tx.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec("SET LOCAL plan_cache_mode = force_generic_plan") // the setting of groups
	correct := func() (read int) {
		t.Helper()
		b := &pgx.Batch{}
		g := &group{rows: []*callRow{{ns: ns, log: &agent.LogEntry{CallID: "call_2000",
			UserCorrectionReferenceCallID: "call_1000"}}}}
		g.writeCorrections(b)
		if err := tx.SendBatch(t.Context(), b).Close(); err != nil {
			t.Fatal(err)
		}
		if err := tx.QueryRow(t.Context(),
			"SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'calls'").Scan(
			&read); err != nil {
			t.Fatal(err)
		}
		return read
	}
	before := correct()
	exec(`INSERT INTO calls (ns, call_id, n, session, root, parent, trace, role, method, status, error_type, source, weak, history_access, debug, owner, named, at, doc)
		SELECT $1, 'call_' || i, i, 'sess_0', '', '', '', 'calculator', 'add', 'ok', '', 'persisted', false, false, false, 'local', false, now(), '' FROM generate_series(1, 2000) i`, ns)
	if read := correct() - before; read != 1 {
		t.Errorf("%d calls were read, want the corrected one", read)
	}
	var by, mode string
	if err := tx.QueryRow(t.Context(),
		"SELECT corrected_by, current_setting('plan_cache_mode') FROM calls WHERE ns = $1 AND call_id = 'call_1000'",
		ns).Scan(&by, &mode); err != nil {
		t.Fatal(err)
	}
	if by != "call_2000" || mode != "force_generic_plan" {
		t.Errorf("corrected by %q; what comes then is planned by %s, as the group's other statements should not be", by,
			mode)
	}
}
