package store

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// ranked is a role's entry in a Ranking.
type ranked struct {
	role             string
	tool             *agent.Tool // nil if the role is not registered
	methods          map[string]Figures
	levels           [len(levels)]int // number of artifacts by level
	success, failure int64
	lastUsed         time.Time // latest use of its artifacts
	level            int
	key              float64 // ln(success rate) + age-independent recency
	stale            bool    // unused for StaleAfter
	awaited          bool    // it has an entry in due
	at               int     // index in known; -1 if it is not there
}

// levels are the lifecycle states from worst to best.
var levels = [...]string{agent.StateDegraded, agent.StateCandidate, agent.StateProbation, agent.StateDurable}

// LevelOf returns the rank of a lifecycle state, from 0 for the worst to 3 for the best.
func LevelOf(state string) int {
	if i := slices.Index(levels[:], state); i >= 0 {
		return i
	}
	return 1 // an unknown state ranks as a candidate
}

// rate is the share of successes. It is one half for a tool without counted calls, which ranks an unknown tool above
// one that mostly fails and below one that mostly works. It is never 0, so recency still orders tools that always
// failed.
func (e *ranked) rate() float64 { return rate(e.success, e.failure) }

func rate(success, failure int64) float64 {
	if n := success + failure; n > 0 {
		return max(float64(success)/float64(n), 1e-9)
	}
	return 0.5
}

// used returns the latest use of the tool or its artifacts.
func (e *ranked) used() time.Time {
	if e.tool != nil && e.tool.LastUsedAt.After(e.lastUsed) {
		return e.tool.LastUsedAt
	}
	return e.lastUsed
}

func (e *ranked) score(now time.Time) float64 { return Score(e.success, e.failure, e.used(), now) }

// Score returns the success rate times the recency of a tool last used at used.
func Score(success, failure int64, used, now time.Time) float64 {
	return rate(success, failure) * math.Exp(-max(0, days(now.Sub(used)))/recencyDays)
}

func (e *ranked) view(now time.Time) RankedTool {
	return RankedTool{Tool: *e.tool, Methods: slices.Sorted(maps.Keys(e.methods)), Score: e.score(now),
		State: e.state()}
}

func (e *ranked) state() string { return BestState(e.levels) }

// BestState returns the best state with an artifact, or "" if there is none. artifacts are counts by LevelOf.
func BestState(artifacts [len(levels)]int) string {
	for i := len(levels) - 1; i >= 0; i-- {
		if artifacts[i] > 0 {
			return levels[i]
		}
	}
	return ""
}

func days(d time.Duration) float64 { return d.Hours() / 24 }

// before reports whether e ranks above o. Role names break ties, which makes the order total.
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
