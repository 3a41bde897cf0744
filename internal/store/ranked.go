package store

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

type ranked struct {
	role             string
	tool             *agent.Tool // nil while the role is not registered
	methods          map[string]Figures
	levels           [len(levels)]int // artifacts by level
	success, failure int64
	lastUsed         time.Time // of the artifacts
	level            int
	key              float64 // ln(success rate) + age-independent recency
	stale            bool    // nobody used it for StaleAfter
	awaited          bool    // it is in due
	at               int     // index in known; -1 when not there
}

// levels are the lifecycle states from worst to best.
var levels = [...]string{agent.StateDegraded, agent.StateCandidate, agent.StateProbation, agent.StateDurable}

// LevelOf returns the place of a lifecycle state, from 0 for the worst to 3 for the best.
func LevelOf(state string) int {
	if i := slices.Index(levels[:], state); i >= 0 {
		return i
	}
	return 1 // an unknown state is no better than a candidate
}

// rate is the share of successes, one half for a tool without counted calls: an unknown tool ranks before one that
// mostly fails and after one that mostly works. It is never 0, so that recency still orders tools which only failed.
func (e *ranked) rate() float64 { return rate(e.success, e.failure) }

func rate(success, failure int64) float64 {
	if n := success + failure; n > 0 {
		return max(float64(success)/float64(n), 1e-9)
	}
	return 0.5
}

func (e *ranked) used() time.Time {
	if e.tool != nil && e.tool.LastUsedAt.After(e.lastUsed) {
		return e.tool.LastUsedAt
	}
	return e.lastUsed
}

func (e *ranked) score(now time.Time) float64 { return Score(e.success, e.failure, e.used(), now) }

// Score is the success rate times the recency of a tool that was last used at that time.
func Score(success, failure int64, used, now time.Time) float64 {
	return rate(success, failure) * math.Exp(-max(0, days(now.Sub(used)))/recencyDays)
}

func (e *ranked) view(now time.Time) RankedTool {
	return RankedTool{Tool: *e.tool, Methods: slices.Sorted(maps.Keys(e.methods)), Score: e.score(now),
		State: e.state()}
}

func (e *ranked) state() string { return BestState(e.levels) }

// BestState returns the best state of which there is an artifact; artifacts are counted by LevelOf. "" where there is none.
func BestState(artifacts [len(levels)]int) string {
	for i := len(levels) - 1; i >= 0; i-- {
		if artifacts[i] > 0 {
			return levels[i]
		}
	}
	return ""
}

func days(d time.Duration) float64 { return d.Hours() / 24 }

func (e *ranked) before(o *ranked) bool {
	if e.stale != o.stale {
		return o.stale
	}
	if e.key != o.key {
		return e.key > o.key
	}
	if e.level != o.level {
		return e.level > o.level
	}
	return e.role < o.role
}
