package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// The maintained ranking always equals one sorted from scratch, while tools are used, become stale, change state and
// disappear. New tools get no bonus.
func TestRankingEqualsSorting(t *testing.T) {
	t.Parallel()
	const roles, steps = 60, 4000
	random := rand.New(rand.NewPCG(6, 7))
	r := NewRanking()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	tools, figures := map[string]*agent.Tool{}, map[string]Figures{}
	for step := range steps {
		role := fmt.Sprintf("role_%02d", random.IntN(roles))
		switch n := random.IntN(20); {
		case n == 0:
			delete(tools, role)
			r.DropTool(role)
		case n == 1:
			delete(figures, role)
			r.DropArtifact(role, "m")
		case n < 10:
			tools[role] = &agent.Tool{Role: role, LastUsedAt: now}
			r.SetTool(tools[role])
		default:
			f := Figures{State: levels[random.IntN(len(levels))], Success: random.Int64N(9), Failure: random.Int64N(9),
				LastUsedAt: now}
			figures[role] = f
			r.SetArtifact(role, "m", f)
		}
		now = now.Add(time.Duration(random.IntN(int(4 * 24 * time.Hour))))
		if step%7 != 0 {
			continue
		}
		const limit = 12
		var got []string
		for _, x := range r.Top(now, limit) {
			got = append(got, x.Tool.Role)
		}
		if want := sorted(tools, figures, now); !slices.Equal(got, want[:min(limit, len(want))]) {
			t.Fatalf("step %d: got %v, sorted %v", step, got, want)
		}
	}
	if len(r.due) > 2*roles {
		t.Errorf("%d waits for %d roles", len(r.due), roles)
	}
}

// sorted ranks by the definition: success rate times exp(-days/30), with stale tools last.
func sorted(tools map[string]*agent.Tool, figures map[string]Figures, now time.Time) []string {
	type row struct {
		role  string
		tier  int
		level int
		score float64
	}
	var rows []row
	for role, tool := range tools {
		e := &ranked{tool: tool, methods: map[string]Figures{}}
		if f, ok := figures[role]; ok {
			e.success, e.failure, e.lastUsed = f.Success, f.Failure, f.LastUsedAt
			e.levels[LevelOf(f.State)] = 1
		}
		x := row{role: role, level: LevelOf(e.state()), score: e.score(now)}
		if !now.Before(e.used().Add(StaleAfter)) {
			x.tier = 1
		}
		rows = append(rows, x)
	}
	slices.SortFunc(rows, func(a, b row) int {
		switch {
		case a.tier != b.tier:
			return a.tier - b.tier
		case a.score > b.score*(1+1e-9):
			return -1
		case b.score > a.score*(1+1e-9):
			return 1
		case a.level != b.level:
			return b.level - a.level
		case a.role < b.role:
			return -1
		}
		return 1
	})
	var out []string
	for _, x := range rows {
		out = append(out, x.role)
	}
	return out
}
