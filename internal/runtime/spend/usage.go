package spend

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Values of UsageQuery.By.
const (
	ByRole   = "role"
	ByMethod = "method"
	ByOwner  = "owner"
	ByDay    = "day"
)

// UsageQuery selects the content of a report.
type UsageQuery struct {
	By           string    // ByRole, ByMethod, ByOwner or ByDay
	Since, Until time.Time // both days are included; zero means the last 30 days, and today
	Owner        *string   // only this owner's use; nil means everybody's
	Daemon       bool      // include the daemon's cap
	After        int       // number of rows on earlier pages
	Limit        int       // maximum number of rows; 0 means all
}

// UsageRow is a row of a report. Cost and savings are nil if they are unknown.
type UsageRow struct {
	Key              string `json:"key"`
	Calls            int64  `json:"calls"`
	WarmCalls        int64  `json:"warm_calls"`
	ModelRequests    int64  `json:"model_requests"`
	PromptTokens     int64  `json:"prompt_tokens"`
	CachedTokens     int64  `json:"cached_tokens"` // part of PromptTokens
	CompletionTokens int64  `json:"completion_tokens"`
	// EstimatedTokens is the part of prompt and completion tokens that nobody reported. It is an upper estimate.
	EstimatedTokens int64    `json:"estimated_tokens"`
	Cost            *float64 `json:"cost"`
	SavedRequests   *int64   `json:"saved_requests"`
	SavedTokens     *int64   `json:"saved_tokens"`
	SavedCost       *float64 `json:"saved_cost"`
}

// UsageReport reports the requests to models, and the savings by stored programs.
type UsageReport struct {
	Currency   string     `json:"currency,omitempty"` // of all costs
	Data       []UsageRow `json:"data"`               // sorted by day for ByDay, otherwise by tokens, descending
	NextCursor *string    `json:"next_cursor"`        // After for the next page; nil on the last one
	Limits     []Limit    `json:"limits"`

	// Storage lists the bytes that owners have stored, by name. The caller of Usage fills it in.
	Storage []store.OwnerBytes `json:"storage"`
	// StorageNext is the owner after which the next page begins; nil on the last one.
	StorageNext *string `json:"storage_next"`
}

// usageDays is the number of days that a report covers by default.
const usageDays = 30

// Usage returns a report. It reads the store, and with other replicas also refreshes the account. Costs that the store
// refuses are included.
func (a *Account) Usage(ctx context.Context, q UsageQuery) (UsageReport, error) {
	last := agent.DayOf(a.ledger.o.Now())
	if !q.Until.IsZero() {
		last = agent.DayOf(q.Until)
	}
	first := last - usageDays + 1
	if !q.Since.IsZero() {
		first = agent.DayOf(q.Since)
	}
	refused := a.refused() // before the store is read, because they may be recorded meanwhile
	spent, err := a.store.Spent(ctx, first, last)
	if err != nil {
		return UsageReport{}, err
	}
	spent = withRefused(spent, refused, first, last)
	if a.ledger.shared() {
		if err := a.ledger.refresh(ctx, a); err != nil {
			return UsageReport{}, err
		}
	}
	prices := a.ledger.o.Prices.Now()
	r := UsageReport{Data: usageRows(spent, q, prices), Limits: a.limits(q)}
	r.cut(q)
	if prices != nil {
		r.Currency = prices.Currency
	}
	return r, nil
}

// cut reduces the report to the requested page.
func (r *UsageReport) cut(q UsageQuery) {
	r.Data = r.Data[min(q.After, len(r.Data)):]
	if q.Limit > 0 && len(r.Data) > q.Limit {
		next := strconv.Itoa(q.After + q.Limit)
		r.Data, r.NextCursor = r.Data[:q.Limit], &next
	}
}

type methodName struct{ role, method string }

// mean is the average cost of a method's kept programs.
type mean struct{ requests, tokens, cost float64 } // cost is NaN if a model has no price

// means returns the averages for all methods with forged programs.
func means(forges []agent.ForgeRow, prices *PriceList) map[methodName]mean {
	sums, programs := map[methodName]mean{}, map[methodName]float64{}
	for _, f := range forges {
		k := methodName{f.Role, f.Method}
		cost, ok := prices.Cost(f.Model, f.Tokens)
		if !ok {
			cost = math.NaN()
		}
		m := sums[k]
		sums[k] = mean{m.requests + float64(f.Requests), m.tokens + float64(f.Sum()), m.cost + cost}
		programs[k] += float64(f.Programs)
	}
	for k, m := range sums {
		n := programs[k]
		sums[k] = mean{m.requests / n, m.tokens / n, m.cost / n}
	}
	return sums
}

// group accumulates a row of a report.
type group struct {
	calls, warm       int64
	tokens            agent.Tokens
	cost              float64 // NaN if a model has no price
	known             bool    // some method has forged programs
	requests, t, save float64 // savings; save is NaN if a price is missing
}

// usageRows groups the stored rows. Savings are the warm calls of a method times the average cost of its programs.
func usageRows(spent store.Spent, q UsageQuery, prices *PriceList) []UsageRow {
	forged, groups := means(spent.Forges, prices), map[string]*group{}
	for _, r := range spent.Rows {
		if q.Owner != nil && r.Owner != *q.Owner {
			continue
		}
		key := keyOf(&r, q.By)
		g := groups[key]
		if g == nil {
			g = &group{}
			groups[key] = g
		}
		m, ok := forged[methodName{r.Role, r.Method}]
		g.add(&r, prices, m, ok)
	}
	out := make([]UsageRow, 0, len(groups))
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		out = append(out, groups[key].row(key))
	}
	if q.By != ByDay {
		slices.SortStableFunc(out, func(a, b UsageRow) int {
			return cmp.Or(cmp.Compare(b.PromptTokens+b.CompletionTokens, a.PromptTokens+a.CompletionTokens),
				cmp.Compare(b.Calls, a.Calls))
		})
	}
	return out
}

// keyOf returns the key of the group that a row belongs to.
func keyOf(r *agent.SpendRow, by string) string {
	switch {
	case by == ByDay:
		return r.Day.String()
	case by == ByOwner:
		return r.Owner
	case by == ByMethod:
		return nameOf(r.Role, r.Method)
	}
	return r.Role
}

func (g *group) add(r *agent.SpendRow, prices *PriceList, forge mean, forged bool) {
	g.calls += r.Calls
	g.warm += r.Warm
	for _, m := range r.Models {
		g.tokens.Add(m.Tokens)
		cost, ok := prices.Cost(m.Model, m.Tokens)
		if !ok {
			cost = math.NaN()
		}
		g.cost += cost
	}
	if forged {
		g.known = true
		warm := float64(r.Warm)
		g.requests += warm * forge.requests
		g.t += warm * forge.tokens
		g.save += warm * forge.cost
	}
}

func (g *group) row(key string) UsageRow {
	r := UsageRow{Key: key, Calls: g.calls, WarmCalls: g.warm, ModelRequests: g.tokens.Requests,
		PromptTokens: g.tokens.Prompt, CachedTokens: g.tokens.Cached,
		CompletionTokens: g.tokens.Completion, EstimatedTokens: g.tokens.Estimated, Cost: money(g.cost)}
	if g.known {
		requests, tokens := int64(math.Round(g.requests)), int64(math.Round(g.t))
		r.SavedRequests, r.SavedTokens, r.SavedCost = &requests, &tokens, money(g.save)
	}
	return r
}

// money rounds to a millionth. It returns nil for an unknown amount.
func money(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	v = math.Round(v*1e6) / 1e6
	return &v
}

// maxNamed bounds the methods and owners that limits lists each: those with the highest use.
const maxNamed = 20

// limits returns the caps. One owner's report includes only the caps of that owner, even if unused.
func (a *Account) limits(q UsageQuery) []Limit {
	l := a.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.day()
	out, named := []Limit{}, map[string][]Limit{}
	note := func(c cap, s *sum) {
		if c.scope == ScopeNamespace {
			out = append(out, c.limitOf(s))
		} else {
			named[c.scope] = append(named[c.scope], c.limitOf(s))
		}
	}
	if q.Owner == nil {
		a.eachCap(d, note)
	} else {
		a.capsOf(d, who{Owner: *q.Owner}, func(c cap, s *sum) {
			if c.scope == ScopeOwner {
				note(c, s)
			}
		})
	}
	if c := l.daemonCap(d); c.limit > 0 && q.Daemon {
		out = append(out, c.limitOf(l.total(d)))
	}
	for _, scope := range []string{ScopeMethod, ScopeOwner} {
		list := named[scope]
		slices.SortFunc(list, func(x, y Limit) int {
			return cmp.Or(cmp.Compare(y.Used+y.Reserved, x.Used+x.Reserved), cmp.Compare(x.Name, y.Name))
		})
		out = append(out, list[:min(len(list), maxNamed)]...)
	}
	return out
}
