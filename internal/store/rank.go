package store

import (
	"container/heap"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// recencyDays is the time constant of the recency factor exp(-days/30).
const recencyDays = 30

// StaleAfter is how long a tool may go unused before prompts prefer whatever is in use: a stale tool ranks behind
// every fresh one, however far it has come in its lifecycle. It stays known and callable, and its next use brings it back.
const StaleAfter = recencyDays * 24 * time.Hour

// Figures are what the ranking, the lists of stale programs and the counts by state know of an artifact.
type Figures struct {
	State      string    `json:"state"`
	Success    int64     `json:"success"`
	Failure    int64     `json:"failure"` // intrinsic and adaptive: failures of external sources are nobody's fault
	LastUsedAt time.Time `json:"last_used_at"`
}

// FiguresOf returns an artifact's figures.
func FiguresOf(a *agent.Artifact) Figures {
	return Figures{a.LifecycleState, a.SuccessCount, a.IntrinsicFailureCount + a.AdaptiveFailureCount, a.LastUsedAt}
}

// Ranking orders the known tools for prompts: those in use before stale ones, then by success rate times recency, and of those that are worth the same
// by the best lifecycle state among their artifacts. As recency decays exponentially, the order among tools of one kind does not depend on when one asks, so a change costs O(log n) and the best k cost O(k log k); a tool that grows stale is
// moved once, by whoever asks next. It is not safe for concurrent use, Top included.
type Ranking struct {
	roles  map[string]*ranked
	known  rankHeap       // the registered roles, best first
	due    dueHeap        // when to look whether a role has grown stale; each at most once
	now    time.Time      // the latest that Top was asked for: what staleness was last judged by
	states map[string]int // artifacts by lifecycle state
}

// NewRanking returns an empty ranking.
func NewRanking() *Ranking {
	return &Ranking{roles: map[string]*ranked{}, states: map[string]int{}}
}

// SetTool registers the role or updates its use.
func (r *Ranking) SetTool(t *agent.Tool) {
	e := r.entry(t.Role)
	e.tool = t
	r.place(e)
}

// DropTool forgets that the role is registered.
func (r *Ranking) DropTool(role string) {
	if e := r.roles[role]; e != nil {
		e.tool = nil
		r.place(e)
	}
}

// Tool returns the registered tool of that role, or nil.
func (r *Ranking) Tool(role string) *agent.Tool {
	if e := r.roles[role]; e != nil {
		return e.tool
	}
	return nil
}

// SetArtifact notes the figures of an artifact.
func (r *Ranking) SetArtifact(role, method string, f Figures) {
	e := r.entry(role)
	r.forget(e, method)
	e.methods[method] = f
	e.levels[LevelOf(f.State)]++
	r.states[f.State]++
	e.success += f.Success
	e.failure += f.Failure
	if f.LastUsedAt.After(e.lastUsed) {
		e.lastUsed = f.LastUsedAt
	}
	r.place(e)
}

// DropArtifact forgets an artifact.
func (r *Ranking) DropArtifact(role, method string) {
	if e := r.roles[role]; e != nil {
		r.forget(e, method)
		delete(e.methods, method)
		r.place(e)
	}
}

// Artifact returns the figures of an artifact.
func (r *Ranking) Artifact(role, method string) (Figures, bool) {
	if e := r.roles[role]; e != nil {
		f, ok := e.methods[method]
		return f, ok
	}
	return Figures{}, false
}

// Methods returns the methods of the role that have an artifact, sorted.
func (r *Ranking) Methods(role string) []string {
	if e := r.roles[role]; e != nil {
		return slices.Sorted(maps.Keys(e.methods))
	}
	return nil
}

// Roles returns every role with a tool or an artifact, in no order.
func (r *Ranking) Roles() []string { return slices.Collect(maps.Keys(r.roles)) }

// States counts the artifacts by lifecycle state.
func (r *Ranking) States() map[string]int { return maps.Clone(r.states) }

// Tools returns the number of registered tools.
func (r *Ranking) Tools() int { return len(r.known) }

// Top returns the best tools, at most limit.
func (r *Ranking) Top(now time.Time, limit int) []RankedTool {
	out := []RankedTool{}
	r.age(now)
	if len(r.known) == 0 {
		return out
	}
	front := frontier{all: r.known, open: []int{0}}
	for len(out) < limit && len(front.open) > 0 {
		i := heap.Pop(&front).(int)
		e := r.known[i]
		out = append(out, e.view(now))
		for _, child := range []int{2*i + 1, 2*i + 2} {
			if child < len(r.known) {
				heap.Push(&front, child)
			}
		}
	}
	return out
}

// Of returns the registered tool of that role with its rank; false when there is none.
func (r *Ranking) Of(role string, now time.Time) (RankedTool, bool) {
	e := r.roles[role]
	if e == nil || e.tool == nil {
		return RankedTool{}, false
	}
	return e.view(now), true
}

// Stale lists what was not used since before, by role and method.
func (r *Ranking) Stale(before time.Time) []Target {
	out := []Target{}
	for role, e := range r.roles {
		if e.tool != nil && e.used().Before(before) {
			out = append(out, Target{Role: role, LastUsedAt: e.used()})
		}
		for method, f := range e.methods {
			if f.LastUsedAt.Before(before) {
				out = append(out, Target{Role: role, Method: method, LastUsedAt: f.LastUsedAt})
			}
		}
	}
	slices.SortFunc(out, compareTargets)
	return out
}

// age moves what has grown stale behind what is in use. A use is not noted in due when it happens, so that it costs a
// call nothing: an entry that falls due is looked at, and waits on when it was used meanwhile.
func (r *Ranking) age(now time.Time) {
	if now.After(r.now) {
		r.now = now
	}
	for len(r.due) > 0 && !r.due[0].at.After(r.now) {
		e := heap.Pop(&r.due).(dueEntry).entry
		e.awaited = false
		if e.at >= 0 {
			r.place(e)
		}
	}
}

func (r *Ranking) entry(role string) *ranked {
	e := r.roles[role]
	if e == nil {
		e = &ranked{role: role, methods: map[string]Figures{}, at: -1}
		r.roles[role] = e
	}
	return e
}

func (r *Ranking) forget(e *ranked, method string) {
	f, ok := e.methods[method]
	if !ok {
		return
	}
	e.levels[LevelOf(f.State)]--
	if r.states[f.State]--; r.states[f.State] == 0 {
		delete(r.states, f.State)
	}
	e.success -= f.Success
	e.failure -= f.Failure
}

// place puts the entry where its figures say, in or out of the heap.
func (r *Ranking) place(e *ranked) {
	if len(e.methods) == 0 {
		e.lastUsed = time.Time{}
		if e.tool == nil {
			delete(r.roles, e.role)
		}
	}
	if e.tool == nil {
		if e.at >= 0 {
			heap.Remove(&r.known, e.at)
		}
		return
	}
	e.level = LevelOf(e.state())
	e.key = math.Log(e.rate()) + days(e.used().Sub(time.Unix(0, 0)))/recencyDays
	end := e.used().Add(StaleAfter)
	if e.stale = !end.After(r.now); !e.stale && !e.awaited {
		e.awaited = true
		heap.Push(&r.due, dueEntry{end, e})
	}
	if e.at < 0 {
		heap.Push(&r.known, e)
	} else {
		heap.Fix(&r.known, e.at)
	}
}

func compareTargets(a, b Target) int {
	switch {
	case a.Role != b.Role:
		if a.Role < b.Role {
			return -1
		}
		return 1
	case a.Method < b.Method:
		return -1
	case a.Method > b.Method:
		return 1
	}
	return 0
}
