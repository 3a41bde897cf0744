package store

import (
	"container/heap"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// recencyDays is the time constant of the recency factor exp(-days/recencyDays).
const recencyDays = 30

// StaleAfter is how long a tool may be unused before it counts as stale. A stale tool ranks behind every fresh one,
// whatever its lifecycle state. It stays registered and callable, and its next use makes it fresh again.
const StaleAfter = recencyDays * 24 * time.Hour

// Figures are the values of an artifact that the ranking, the lists of stale programs and the counts by state need.
type Figures struct {
	State      string    `json:"state"`
	Success    int64     `json:"success"`
	Failure    int64     `json:"failure"` // intrinsic and adaptive; failures of external sources do not count
	LastUsedAt time.Time `json:"last_used_at"`
}

// FiguresOf returns an artifact's figures.
func FiguresOf(a *agent.Artifact) Figures {
	return Figures{a.LifecycleState, a.SuccessCount, a.IntrinsicFailureCount + a.AdaptiveFailureCount, a.LastUsedAt}
}

// Ranking orders the registered tools for prompts: tools in use before stale ones, then by success rate times recency,
// then by the best lifecycle state among their artifacts. Recency decays exponentially, so the order within the fresh
// and within the stale tools does not depend on the time of the query. A change costs O(log n) and the best k tools
// cost O(k log k). A tool that becomes stale is moved once, by the next Top. A Ranking is not safe for concurrent use;
// even Top changes it.
type Ranking struct {
	roles  map[string]*ranked
	known  rankHeap       // registered roles, best first
	due    dueHeap        // when to check whether a role has become stale; each role at most once
	now    time.Time      // latest time passed to Top, which decides staleness
	states map[string]int // artifacts by lifecycle state
}

// NewRanking returns an empty ranking.
func NewRanking() *Ranking {
	return &Ranking{roles: map[string]*ranked{}, states: map[string]int{}}
}

// SetTool registers the role or updates its tool.
func (r *Ranking) SetTool(t *agent.Tool) {
	e := r.entry(t.Role)
	e.tool = t
	r.place(e)
}

// DropTool removes the role's registration. Its artifacts stay.
func (r *Ranking) DropTool(role string) {
	if e := r.roles[role]; e != nil {
		e.tool = nil
		r.place(e)
	}
}

// Tool returns the role's registered tool, or nil.
func (r *Ranking) Tool(role string) *agent.Tool {
	if e := r.roles[role]; e != nil {
		return e.tool
	}
	return nil
}

// SetArtifact sets the figures of an artifact.
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

// DropArtifact removes an artifact.
func (r *Ranking) DropArtifact(role, method string) {
	if e := r.roles[role]; e != nil {
		r.forget(e, method)
		delete(e.methods, method)
		r.place(e)
	}
}

// Artifact returns the figures of an artifact. The second result is false if there is none.
func (r *Ranking) Artifact(role, method string) (Figures, bool) {
	if e := r.roles[role]; e != nil {
		f, ok := e.methods[method]
		return f, ok
	}
	return Figures{}, false
}

// Methods returns the role's methods with an artifact, sorted.
func (r *Ranking) Methods(role string) []string {
	if e := r.roles[role]; e != nil {
		return slices.Sorted(maps.Keys(e.methods))
	}
	return nil
}

// Roles returns every role with a tool or an artifact, in no particular order.
func (r *Ranking) Roles() []string { return slices.Collect(maps.Keys(r.roles)) }

// States returns the number of artifacts by lifecycle state.
func (r *Ranking) States() map[string]int { return maps.Clone(r.states) }

// Tools returns the number of registered tools.
func (r *Ranking) Tools() int { return len(r.known) }

// Top returns at most limit tools, best first. A child in the heap never ranks above its parent, so only the frontier
// of the tools returned so far needs comparing.
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

// Of returns the role's registered tool with its rank. The second result is false if there is none.
func (r *Ranking) Of(role string, now time.Time) (RankedTool, bool) {
	e := r.roles[role]
	if e == nil || e.tool == nil {
		return RankedTool{}, false
	}
	return e.view(now), true
}

// Stale lists tools and artifacts that have not been used since before, sorted by role and method.
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
	slices.SortFunc(out, CompareTargets)
	return out
}

// age moves tools that have become stale behind those in use. A use does not update due, which keeps it cheap: when an
// entry falls due, place looks at its last use and schedules it again if it was used meanwhile.
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

// entry returns the role's entry and creates it if needed. place deletes it again once it is empty.
func (r *Ranking) entry(role string) *ranked {
	e := r.roles[role]
	if e == nil {
		e = &ranked{role: role, methods: map[string]Figures{}, at: -1}
		r.roles[role] = e
	}
	return e
}

// forget subtracts the method's figures from the role's sums.
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

// place updates the entry's rank and adds it to, moves it in or removes it from the heap.
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
	// The success rate times exp(-age/recencyDays), as a logarithm without the current time: the order stays valid as
	// time passes.
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

// CompareTargets orders targets by role, then by method.
func CompareTargets(a, b Target) int {
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

// rankHeap is a heap of roles, best first. Its elements keep their own index.
type rankHeap []*ranked

func (h rankHeap) Len() int { return len(h) }

func (h rankHeap) Less(i, j int) bool { return h[i].before(h[j]) }

func (h rankHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

func (h *rankHeap) Push(x any) {
	e := x.(*ranked)
	e.at = len(*h)
	*h = append(*h, e)
}

func (h *rankHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	e.at = -1
	return e
}

// dueEntry schedules a check whether the entry has become stale.
type dueEntry struct {
	at    time.Time
	entry *ranked
}

// dueHeap is a heap of due entries, earliest first.
type dueHeap []dueEntry

func (h dueHeap) Len() int { return len(h) }

func (h dueHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }

func (h dueHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *dueHeap) Push(x any) { *h = append(*h, x.(dueEntry)) }

func (h *dueHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	old[len(old)-1] = dueEntry{}
	*h = old[:len(old)-1]
	return x
}

// frontier is a heap of indexes into all, best first. It walks the heap all in order without changing it.
type frontier struct {
	all  rankHeap
	open []int
}

func (f *frontier) Len() int { return len(f.open) }

func (f *frontier) Less(i, j int) bool { return f.all[f.open[i]].before(f.all[f.open[j]]) }

func (f *frontier) Swap(i, j int) { f.open[i], f.open[j] = f.open[j], f.open[i] }

func (f *frontier) Push(x any) { f.open = append(f.open, x.(int)) }

func (f *frontier) Pop() any {
	n := len(f.open) - 1
	x := f.open[n]
	f.open = f.open[:n]
	return x
}
