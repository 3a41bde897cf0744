//go:build postgres

package replicas

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/recurgentd/recurgentd/internal/store/postgres/pgtest"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// holding lists the tables of the database that have the text in a row, as text or as bytes.
func holding(t *testing.T, database, text string) (found []string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	rows, err := conn.Query(t.Context(),
		"SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')")
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(tables) < 20 {
		t.Fatalf("%d tables, %v", len(tables), err)
	}
	for _, table := range tables {
		var n int
		if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM "+table+
			" AS x WHERE position($1 in x::text) > 0 OR position($2 in x::text) > 0", text,
			hex.EncodeToString([]byte(text))).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			found = append(found, fmt.Sprint(table, ": ", n))
		}
	}
	return found
}

// use leaves the text in everything that the namespace keeps of a session, and returns the session and a file without
// one.
func use(t *testing.T, d *rig.Daemon, text string) (session, file string) {
	t.Helper()
	session = d.Session("clerk", map[string]any{"context": map[string]any{"note": text},
		"metadata": map[string]any{"note": text}, "debug": true})
	d.WantValue(d.Call(session, "given", text), text, "")
	d.Call(session, "given", strings.Repeat(text+" ", 40_000)) // kept as files of the call, in several pieces
	d.CallWith(session, "echo", map[string]any{"v": text})
	d.Call(session, "deep", text)
	d.Call(session, "failing", text)
	judged := d.Call(session, "given", text+" again")
	d.Do(http.StatusOK, http.MethodPost, "/v1/calls/"+judged.CallID+"/verdict",
		map[string]any{"verdict": "right", "note": text})
	d.Send(http.MethodPost, "/v1/sessions/"+session+"/calls", rig.Encode(t,
		map[string]any{"method": "given", "args": []any{text}}), map[string]string{"Idempotency-Key": text})
	d.Do(http.StatusOK, http.MethodPatch, "/v1/sessions/"+session+"/context", map[string]any{"more": text})
	d.Call(session, "copied", text) // which makes a file
	return session, upload(d, strings.Repeat(text+"\n", 30_000))
}

// What is deleted is in no table any more: of a session, of a file, of a namespace. What is in another namespace stays.
func TestErasureReachesEveryTable(t *testing.T) {
	t.Parallel()
	copied := rig.Program("\tf, err := call.Create(\"copy.txt\", \"text/plain\")\n\tif err != nil {\n\t\treturn nil, err\n\t}\n\ttext, _ := call.Arg(0, \"text\").(string)\n\tif _, err := f.Write([]byte(text)); err != nil {\n\t\treturn nil, err\n\t}\n\treturn f.Ref(), nil")
	deep := rig.Program("\to := call.Tool(\"helper\").Call(\"given\", call.Args...)\n\treturn o.Value, nil")
	m := rig.NewModel(t, rig.Script{"clerk.given": {rig.ProgGiven}, "clerk.echo": {rig.ProgEcho},
		"clerk.copied": {copied}, "clerk.deep": {deep}, "helper.given": {rig.ProgGiven},
		"clerk.failing": {rig.Program(
			"\ttext, _ := call.Arg(0, \"text\").(string)\n\treturn nil, recurgent.Fail(\"refused\", text)")}})
	database := pgtest.NewDatabase(t)
	d := on(t, m, database, keyFile(t))
	d.Do(http.StatusCreated, http.MethodPut, "/v1/namespaces/acme", nil)
	const inDefault, kept, inAcme = "cAnArY-of-a-session", "cAnArY-that-stays", "cAnArY-of-acme"
	session, file := use(t, d, inDefault)
	use(t, d, kept)
	use(t, d.In("acme"), inAcme)
	for _, text := range []string{inDefault, kept, inAcme} {
		if found := holding(t, database, text); len(found) < 8 {
			t.Errorf("%s is in %v only: the search finds too little", text, found)
		}
	}
	before := holding(t, database, kept)
	d.Do(http.StatusNoContent, http.MethodDelete, rig.MethodPath("clerk", "echo"), nil) // its fixtures are archived
	d.Do(http.StatusNoContent, http.MethodDelete, "/v1/sessions/"+session, nil)
	d.Do(http.StatusNoContent, http.MethodDelete, "/v1/files/"+file, nil)
	if found := holding(t, database, inDefault); len(found) > 0 {
		t.Errorf("what was deleted of a session is in %v", found)
	}
	if after := holding(t, database, kept); fmt.Sprint(after) != fmt.Sprint(before) && len(after) < len(before) {
		t.Errorf("what nobody deleted is in %v, was in %v", after, before)
	}
	d.Do(http.StatusNoContent, http.MethodDelete, "/v1/namespaces/acme", nil)
	if found := holding(t, database, inAcme); len(found) > 0 {
		t.Errorf("what was deleted of a namespace is in %v", found)
	}
	command(t, database, "store", "verify")
}
