//go:build postgres

package replicas

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/recurgentd/recurgentd/internal/runtime/provider/openaitest"
	"github.com/recurgentd/recurgentd/internal/store/postgres/pgtest"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// Replicas that adopt programs of one method at the same time, each for a contract of its own, keep all of them, by
// different names.
func TestAdoptionsMeet(t *testing.T) {
	t.Parallel()
	database := pgtest.NewDatabase(t)
	a := &adopters{t: t, model: rig.NewModel(t, nil), tables: tablesOf(t, database)}
	a.all = replicasOn(t, database, 3, a.model)
	for _, d := range a.all {
		a.sessions = append(a.sessions, d.Session("clerk"))
	}
	for i := range 4 {
		method := fmt.Sprint("cold", i)
		a.check(method, a.together(method, i, i+1)) // both are to be gen-1
		method = fmt.Sprint("warm", i)
		a.check(method, append(a.together(method, i), a.together(method, i+1, i+2)...)) // the last two are to be gen-2
	}
	for i, d := range a.all {
		if n := len(d.History(a.sessions[i])); n != a.calls[i] {
			t.Errorf("session %d has %d records of %d calls", i, n, a.calls[i])
		}
	}
}

// adopters are three replicas with a session each, the model that writes their programs, and their database.
type adopters struct {
	t        *testing.T
	model    *rig.Model
	written  atomic.Int64 // programs: no two are the same
	tables   *pgx.Conn
	all      []*rig.Daemon
	sessions []string
	calls    [3]int // by session
}

// together makes one call of the method at each of these replicas (counted round), each with its replica's contract.
// The model answers once all have asked it, and what the replicas make of its answers is committed once all of them
// have decided.
func (a *adopters) together(method string, by ...int) (replies []rig.Reply) {
	a.t.Helper()
	answer := make(chan struct{})
	a.model.Default(func(openaitest.Request) openaitest.Reply {
		return openaitest.Reply{Wait: answer, Code: fmt.Sprintf("%s\n// program %d\n", rig.ProgGiven, a.written.Add(1))}
	})
	asked := a.model.Count("", method)
	replies = make([]rig.Reply, len(by))
	var sent sync.WaitGroup
	for i, n := range by {
		n %= len(a.all)
		a.calls[n]++
		sent.Go(func() {
			contract := map[string]any{"deliverable": map[string]any{"type": "object",
				"required": []any{fmt.Sprint("of", n)}}}
			value := map[string]any{"of0": 0, "of1": 1, "of2": 2}
			replies[i] = a.all[n].Invoke(a.sessions[n], map[string]any{"method": method, "args": []any{value},
				"contract": contract})
		})
	}
	rig.Until(a.t, "each replica asks the model", func() bool { return a.model.Count("", method) == asked+len(by) })
	commit := a.holdCommits()
	close(answer)
	rig.Until(a.t, "each replica has decided", func() bool { return a.waiting() >= len(by) })
	commit()
	sent.Wait()
	return replies
}

// holdCommits keeps artifacts from being written, while they can be read, until release is called.
func (a *adopters) holdCommits() (release func()) {
	a.t.Helper()
	tx, err := a.tables.Begin(a.t.Context())
	if err == nil {
		_, err = tx.Exec(a.t.Context(), "LOCK TABLE artifacts IN EXCLUSIVE MODE")
	}
	if err != nil {
		a.t.Fatal(err)
	}
	return func() {
		a.t.Helper()
		if err := tx.Rollback(a.t.Context()); err != nil {
			a.t.Fatal(err)
		}
	}
}

// waiting is how many transactions wait to write artifacts.
func (a *adopters) waiting() (n int) {
	a.t.Helper()
	if err := a.tables.QueryRow(a.t.Context(),
		"SELECT count(*) FROM pg_locks WHERE relation = 'artifacts'::regclass AND NOT granted").Scan(&n); err != nil {
		a.t.Fatal(err)
	}
	return n
}

// check demands that the method has a generation for each reply, with its program, under a name of its own, that counts
// its one call.
func (a *adopters) check(method string, replies []rig.Reply) {
	a.t.Helper()
	programs, counted := map[string]string{}, 0 // programs: checksum by name
	for _, g := range a.all[0].List(rig.MethodPath("clerk", method) + "/generations") {
		name := fmt.Sprint(g["id"])
		if _, twice := programs[name]; twice {
			a.t.Errorf("%s has two generations %s", method, name)
		}
		programs[name] = fmt.Sprint(g["code_checksum"])
		n, _ := g["success_count"].(float64)
		counted += int(n)
	}
	for _, r := range replies {
		if p := r.Program; !r.Outcome.OK || p.Generation == "" || programs[p.Generation] != p.Checksum {
			a.t.Errorf("%s was answered %+v by %s with the program %s, and its generations are %v", method, r.Outcome,
				p.Generation, p.Checksum, programs)
		}
	}
	successes, _ := a.all[0].Artifact("clerk", method)["success_count"].(float64)
	if n := len(replies); len(programs) != n || counted != n || int(successes) != n {
		a.t.Errorf("%s has %d generations, which count %d successes, and counts %v itself, after %d calls", method,
			len(programs), counted, successes, n)
	}
}

// tablesOf is a connection to the database.
func tablesOf(t *testing.T, database string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}
