//go:build postgres

package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/postgres/pgtest"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// ranked formats the order of tools with their figures.
func ranked(t *testing.T, n store.Namespace, now time.Time, limit int) string {
	t.Helper()
	list, err := n.RankTools(t.Context(), now, limit)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, x := range list {
		fmt.Fprintf(&b, "%s %s %.9f %v\n", x.Tool.Role, x.State, x.Score, x.Methods)
	}
	return b.String()
}

// The ranks in the database equal those of store.Ranking, while tools are used, fail, change state, disappear and come
// back over months.
func TestRanksAreThoseOfRanking(t *testing.T) {
	t.Parallel()
	const roles, steps = 12, 260
	random := rand.New(rand.NewPCG(3, 9))
	var clock atomic.Pointer[time.Time]
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock.Store(&start)
	now := func() time.Time { return *clock.Load() }
	o := DefaultOptions(pgtest.NewDatabase(t))
	o.Now = now
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	all := []store.Namespace{storetest.Default(t, s), storetest.Default(t, storetest.NewMemory(now))}
	both := func(what string, do func(n store.Namespace) error) {
		t.Helper()
		var errs [2]string
		for i, n := range all {
			if err := do(n); err != nil {
				errs[i] = err.Error()
			}
		}
		if (errs[0] == "") != (errs[1] == "") {
			t.Fatalf("%s: the database says %q, the memory %q", what, errs[0], errs[1])
		}
	}
	both("session", func(n store.Namespace) error {
		return n.CreateSession(t.Context(), agent.Session{ID: "sess_1", Role: "r", CreatedAt: now(), UpdatedAt: now()},
			nil)
	})
	states := []string{agent.StateDegraded, agent.StateCandidate, agent.StateProbation, agent.StateDurable}
	known := map[string]bool{}
	for step := range steps {
		role, method := fmt.Sprintf("role_%02d", random.IntN(roles)), fmt.Sprint("m", random.IntN(2))
		entry := func() agent.AuditEntry { return agent.AuditEntry{ID: fmt.Sprintf("audit_%03d", step)} }
		switch k := random.IntN(24); k {
		case 0, 1, 2:
			target := []store.Target{{Role: role}, {Role: role, Method: method}, {Role: role, ToolOnly: true}}[k]
			both("remove", func(n store.Namespace) error {
				return n.Remove(t.Context(), []store.Target{target},
					entry())
			})
			delete(known, role+method)
			if k == 0 {
				delete(known, role+"m0")
				delete(known, role+"m1")
			}
		case 3:
			both("archive and restore", func(n store.Namespace) error {
				if err := n.Archive(t.Context(), []store.Target{{Role: role, Method: method}}, entry()); err != nil {
					return err
				}
				return n.Restore(t.Context(), []store.Target{{Role: role, Method: method}},
					agent.AuditEntry{ID: fmt.Sprintf("undo_%03d", step), Undoes: fmt.Sprintf("audit_%03d", step)})
			})
		default:
			change := agent.ArtifactChange{Role: role, MethodName: method, At: now(),
				Result: []agent.Class{agent.ClassOK, agent.ClassOK, agent.ClassIntrinsic, agent.ClassExtrinsic,
					agent.ClassAdaptive}[random.IntN(5)]}
			if random.IntN(4) == 0 {
				change.State = states[random.IntN(len(states))]
			}
			if !known[role+method] {
				known[role+method] = true
				change.Generation = storetest.NewGeneration("gen-1", "package tool // "+role+method, now())
			}
			use := store.ToolChange{Role: role, At: now(), Used: 1}
			if random.IntN(3) > 0 {
				use.Register, use.IfAbsent = &agent.Contract{Purpose: role}, true
			}
			both("call", func(n store.Namespace) error {
				c := storetest.NewCommit("sess_1", fmt.Sprintf("call_%03d", step), now())
				c.Artifacts, c.Tools = []agent.ArtifactChange{change}, []store.ToolChange{use}
				return n.CommitCall(t.Context(), c)
			})
		}
		later := now().Add(time.Duration(random.IntN(int(4*24*time.Hour/time.Microsecond))) * time.Microsecond)
		clock.Store(&later)
		if limit := 1 + random.IntN(roles); step%4 == 0 {
			if got, want := ranked(t, all[0], now(), limit), ranked(t, all[1], now(), limit); got != want {
				t.Fatalf("step %d: the database ranks\n%s\nRanking\n%s", step, got, want)
			}
		}
	}
	if r, err := s.Verify(t.Context()); err != nil || len(r.Problems) > 0 {
		t.Errorf("verify: %v, %v", r.Problems, err)
	}
}

// The best tools of 10,000 cost as much as those of 100, because an index returns them in order.
func TestRankToolsReadsAnIndex(t *testing.T) {
	t.Parallel()
	stores, spaces := opened(t, pgtest.NewDatabase(t), 1)
	s, n := stores[0], spaces[0]
	if _, err := n.PutTool(t.Context(), agent.Tool{Role: "first"}, 0, nil); err != nil {
		t.Fatal(err)
	}
	read := func(count int) (blocks int64) {
		t.Helper()
		for _, sql := range []string{
			`INSERT INTO tools (ns, role, revision, usage_count, last_used, doc) SELECT t.ns, 'role_' || i, 1, 0, t.last_used, t.doc FROM tools t, generate_series(1, $1::int) AS i WHERE t.role = 'first' ON CONFLICT DO NOTHING`,
			`INSERT INTO ranks (ns, role, success, failure, candidate, tool_used) SELECT r.ns, 'role_' || i, i % 7, i % 5, 1, r.tool_used - i FROM ranks r, generate_series(1, $1::int) AS i WHERE r.role = 'first' ON CONFLICT DO NOTHING`,
		} {
			if _, err := s.pool.Exec(t.Context(), sql, count); err != nil {
				t.Fatal(err)
			}
		}
		for _, table := range []string{"tools", "ranks", "artifacts"} {
			if _, err := s.pool.Exec(t.Context(), "VACUUM ANALYZE "+table); err != nil {
				t.Fatal(err)
			}
		}
		var plan []struct {
			Plan struct {
				Hit  int64 `json:"Shared Hit Blocks"`
				Read int64 `json:"Shared Read Blocks"`
			}
		}
		if err := s.pool.QueryRow(t.Context(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+bestTools, n.id.Load(),
			20).Scan(&plan); err != nil {
			t.Fatal(err)
		}
		return plan[0].Plan.Hit + plan[0].Plan.Read
	}
	few := read(100)
	many := read(10_000)
	if list, err := n.RankTools(t.Context(), time.Now(), 20); err != nil || len(list) != 20 {
		t.Fatalf("%d tools, %v", len(list), err)
	}
	if many > 3*few+100 {
		t.Errorf("the best of 10,000 tools take %d blocks, of 100 %d", many, few)
	}
}
