package store

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Spending records token use of model requests, and the number of calls answered without a model. It keeps daily
// aggregates, not single requests.
type Spending interface {
	// Reserve records the maximum cost of a request before it is sent. The reservation counts as its cost, even after a
	// restart, until Settle replaces it.
	Reserve(ctx context.Context, s agent.Spend) error
	// Settle adds the cost of a request and drops the reservation with its ID. It does nothing if there is no such
	// reservation. Thus it can be repeated after an error, and the request counts once. A power cut can bring the
	// reservation back if the request cost nothing, or if calls do not wait for the disk.
	Settle(ctx context.Context, s agent.Spend) error
	// Forfeit settles a reservation as wholly spent, because nobody will settle it any more.
	Forfeit(ctx context.Context, id string) error
	// Spent returns the aggregates of the days from first to last, inclusive, all reservations and all forges.
	Spent(ctx context.Context, first, last agent.Day) (Spent, error)
	Caps
}

// Spent is the content of a namespace's Spending. Rows are sorted by day, role, method and owner.
type Spent struct {
	Rows   []agent.SpendRow `json:"rows"`
	Open   []agent.Spend    `json:"open,omitempty"` // reservations of requests that may be in flight, by ID
	Forges []agent.ForgeRow `json:"forges,omitempty"`
}

// Limits of a Ledger.
const (
	MaxSpendRows = 10_000
	maxForgeRows = 10_000
	maxModels    = 8  // per row; further models count as ""
	DetailedDays = 92 // older days have one row each, without owners
)

// Ledger aggregates calls and model requests by day, so its size does not grow with their number. It is not safe for
// concurrent use.
type Ledger struct {
	rows   map[rowKey]*agent.SpendRow
	open   map[string]agent.Spend
	forges map[forgeKey]*agent.ForgeRow
	newest agent.Day
	full   agent.Day // summing up other days makes no room for more rows on this day
}

type rowKey struct {
	day                 agent.Day
	role, method, owner string
}

type forgeKey struct{ role, method, model string }

// NewLedger returns a ledger that starts with the stored aggregates.
func NewLedger(s Spent) *Ledger {
	l := &Ledger{rows: make(map[rowKey]*agent.SpendRow, len(s.Rows)), open: make(map[string]agent.Spend, len(s.Open)),
		forges: make(map[forgeKey]*agent.ForgeRow, len(s.Forges))}
	for _, r := range s.Rows {
		l.rows[rowKey{r.Day, r.Role, r.Method, r.Owner}] = &r
		l.newest = max(l.newest, r.Day)
	}
	for _, o := range s.Open {
		l.open[o.ID] = o
	}
	for _, f := range s.Forges {
		l.forges[forgeKey{f.Role, f.Method, f.Model}] = &f
	}
	return l
}

// Call counts a finished call and the programs that it kept.
func (l *Ledger) Call(day agent.Day, e *agent.LogEntry, changes []agent.ArtifactChange) {
	r := l.row(rowKey{day, e.Role, e.Method, agent.OwnerOf(e)})
	r.Calls++
	if e.ArtifactHit && e.OutcomeStatus == agent.StatusOK {
		r.Warm++
	}
	for i := range changes {
		l.forge(&changes[i])
	}
}

// forge counts the program that a change keeps, if models were asked for it. Beyond maxForgeRows, new methods and
// models are not counted.
func (l *Ledger) forge(c *agent.ArtifactChange) {
	g := c.Generation
	if g == nil || g.ForgeUsage.ModelRequests <= 0 {
		return
	}
	k := forgeKey{c.Role, c.MethodName, g.Model}
	f := l.forges[k]
	if f == nil {
		if len(l.forges) >= maxForgeRows {
			return
		}
		f = &agent.ForgeRow{Role: k.role, Method: k.method, Model: k.model}
		l.forges[k] = f
	}
	f.Programs++
	f.Add(agent.Tokens{Requests: int64(g.ForgeUsage.ModelRequests), Prompt: int64(g.ForgeUsage.PromptTokens),
		Completion: int64(g.ForgeUsage.CompletionTokens)})
}

// Reserve adds a reservation.
func (l *Ledger) Reserve(s agent.Spend) { l.open[s.ID] = s }

// Reservation returns the reservation with that ID. The second result is false if there is none.
func (l *Ledger) Reservation(id string) (agent.Spend, bool) {
	s, ok := l.open[id]
	return s, ok
}

// Settle adds the cost of a request and drops its reservation.
func (l *Ledger) Settle(s agent.Spend) {
	delete(l.open, s.ID)
	if s.Tokens == (agent.Tokens{}) {
		return
	}
	r := l.row(rowKey{s.Day, s.Role, s.Method, s.Owner})
	i := slices.IndexFunc(r.Models, func(m agent.ModelTokens) bool { return m.Model == s.Model })
	if i < 0 && len(r.Models) >= maxModels {
		s.Model = ""
		i = slices.IndexFunc(r.Models, func(m agent.ModelTokens) bool { return m.Model == "" })
	}
	if i < 0 {
		r.Models = append(r.Models, agent.ModelTokens{Model: s.Model})
		i = len(r.Models) - 1
	}
	r.Models[i].Add(s.Tokens)
}

// row returns the row with that key and creates it if needed. If the ledger is full, it returns the row that sums up
// the day.
func (l *Ledger) row(k rowKey) *agent.SpendRow {
	if r := l.rows[k]; r != nil {
		return r
	}
	if k.day > l.newest {
		l.newest = k.day
		l.sumUp(k.day - DetailedDays)
	}
	if len(l.rows) >= MaxSpendRows && (k.day == l.full || !l.thin(k.day)) {
		l.full = k.day
		k = rowKey{day: k.day} // only this day is left: its further rows are summed up
		if r := l.rows[k]; r != nil {
			return r
		}
	}
	r := &agent.SpendRow{Day: k.day, Role: k.role, Method: k.method, Owner: k.owner}
	l.rows[k] = r
	return r
}

// thin sums up the oldest days, except the one in use, until a tenth of the rows is free. It returns false if that
// makes no room.
func (l *Ledger) thin(inUse agent.Day) bool {
	days := map[agent.Day]int{}
	for k := range l.rows {
		days[k.day]++
	}
	delete(days, inUse)
	for _, d := range slices.Sorted(maps.Keys(days)) {
		if len(l.rows) <= MaxSpendRows*9/10 {
			break
		}
		l.sumUpDays(d, d)
	}
	return len(l.rows) < MaxSpendRows
}

// Bound applies the limits that Call and Settle apply on that day: it sums up old days, and the oldest ones while there
// are more than MaxSpendRows.
func (l *Ledger) Bound(day agent.Day) {
	l.sumUp(day - DetailedDays)
	if len(l.rows) > MaxSpendRows {
		l.thin(math.MaxInt32)
	}
}

// sumUp sums up each day before the given one.
func (l *Ledger) sumUp(before agent.Day) {
	first := before
	for k := range l.rows {
		first = min(first, k.day)
	}
	if first < before {
		l.sumUpDays(first, before-1)
	}
}

// sumUpDays merges the rows of each day from first to last into one.
func (l *Ledger) sumUpDays(first, last agent.Day) {
	for k, r := range l.rows {
		if k.day < first || k.day > last || k == (rowKey{day: k.day}) {
			continue
		}
		delete(l.rows, k)
		sum := l.rows[rowKey{day: k.day}]
		if sum == nil {
			sum = &agent.SpendRow{Day: k.day}
			l.rows[rowKey{day: k.day}] = sum
		}
		sum.Calls += r.Calls
		sum.Warm += r.Warm
		for _, m := range r.Models {
			l.Settle(agent.Spend{Day: k.day, Model: m.Model, Tokens: m.Tokens})
		}
	}
}

// Spent returns a copy of the ledger's content for the days from first to last.
func (l *Ledger) Spent(first, last agent.Day) Spent {
	s := Spent{Rows: []agent.SpendRow{}}
	for k, r := range l.rows {
		if k.day >= first && k.day <= last {
			c := *r
			c.Models = slices.Clone(r.Models)
			s.Rows = append(s.Rows, c)
		}
	}
	slices.SortFunc(s.Rows, func(a, b agent.SpendRow) int {
		return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Role, b.Role), cmp.Compare(a.Method, b.Method),
			cmp.Compare(a.Owner, b.Owner))
	})
	for _, o := range l.open {
		s.Open = append(s.Open, o)
	}
	slices.SortFunc(s.Open, func(a, b agent.Spend) int { return cmp.Compare(a.ID, b.ID) })
	for _, f := range l.forges {
		s.Forges = append(s.Forges, *f)
	}
	slices.SortFunc(s.Forges, func(a, b agent.ForgeRow) int {
		return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Method, b.Method), cmp.Compare(a.Model, b.Model))
	})
	return s
}
