package overview

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/btree"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/spend"
)

// Orders of the tools. Equal tools are sorted by name.
const (
	ByName = "name"
	Used   = "used" // most used first
	// Failed sorts the tools by the highest recent failure rate of their programs, then by the number of failures.
	Failed = "failed"
	Cost   = "cost" // most expensive first by the price list, or by tokens without prices
)

// maxScanned bounds the number of tools examined for one page of a search.
const maxScanned = 20_000

// maxText bounds the searched text of a tool, in bytes.
const maxText = 4 << 10

// ErrCursor means that a cursor does not belong to that list.
var ErrCursor = errors.New("is not a cursor of this list")

// Query selects a page of tools: registered ones, and roles whose programs a person installed and nobody called yet.
type Query struct {
	// Words must all occur in the role, in method names or in purposes, in any case; "" matches all.
	Words string
	Sort  string // ByName, Used, Failed or Cost
	After string // the cursor of the previous page: a role for ByName, otherwise opaque; "" for the start
	Limit int
	Spent bool // fill in Tool.Usage
}

// Tool is a tool as lists show it. It is shared and must not be changed.
type Tool struct {
	agent.Tool
	Health *Health
	Usage  *spend.UsageRow // nil if not requested, or if nothing was spent
}

// A row is a tool in the lists. It is immutable; an update replaces it.
type row struct {
	tool   *agent.Tool
	health *Health
	text   string // searched text, in lower case
	cost   price
}

// price is the key of the order Cost.
type price struct {
	Amount float64
	Tokens int64
}

// newRow returns the row of a role in the lists.
func newRow(r *role, tool *agent.Tool, c price, stale Stale) *row {
	h := &Health{}
	names := slices.Sorted(maps.Keys(r.methods))
	for _, name := range names {
		h.add(r.methods[name], stale)
	}
	var b strings.Builder
	add := func(s string) {
		if b.Len() < maxText {
			b.WriteString(s + "\n")
		}
	}
	add(tool.Role)
	add(tool.Purpose)
	for _, name := range names {
		add(name)
	}
	for _, name := range slices.Sorted(maps.Keys(tool.Methods)) {
		add(name)
		add(tool.Methods[name].Purpose)
	}
	return &row{tool: tool, health: h, text: clipped(searched(b.String())), cost: c}
}

// searched returns a text in the form in which searches compare.
func searched(s string) string { return strings.ToLower(agent.NormalForm(s)) }

// clipped shortens s to maxText bytes at a character boundary.
func clipped(s string) string {
	if len(s) > maxText {
		s = s[:maxText]
		for !utf8.ValidString(s) && len(s) > maxText-utf8.UTFMax {
			s = s[:len(s)-1]
		}
	}
	return s
}

// lists holds the tools in each order.
type lists map[string]*btree.BTreeG[*row]

// newLists returns empty lists. Each order ends with the role, which makes it total.
func newLists() lists {
	all := lists{}
	for name, order := range map[string]func(a, b *row) int{
		ByName: func(*row, *row) int { return 0 },
		Used:   func(a, b *row) int { return cmp.Compare(b.tool.UsageCount, a.tool.UsageCount) },
		Failed: func(a, b *row) int {
			return cmp.Or(cmp.Compare(b.health.RecentFailureRate, a.health.RecentFailureRate),
				cmp.Compare(b.health.FailureCount, a.health.FailureCount))
		},
		Cost: func(a, b *row) int {
			return cmp.Or(cmp.Compare(b.cost.Amount, a.cost.Amount), cmp.Compare(b.cost.Tokens, a.cost.Tokens))
		},
	} {
		before := func(a, b *row) bool { return cmp.Or(order(a, b), cmp.Compare(a.tool.Role, b.tool.Role)) < 0 }
		all[name] = btree.NewBTreeGOptions(before, btree.Options{NoLocks: true})
	}
	return all
}

func (l lists) put(r *row) {
	for _, tree := range l {
		tree.Set(r)
	}
}

func (l lists) drop(r *row) {
	for _, tree := range l {
		tree.Delete(r)
	}
}

// A cursor is the position of a row in an order, given by its sort keys.
type cursor struct {
	Sort     string  `json:"s"`
	Role     string  `json:"r"`
	Used     int64   `json:"u,omitempty"`
	Rate     float64 `json:"f,omitempty"`
	Failures int64   `json:"n,omitempty"`
	Amount   float64 `json:"a,omitempty"`
	Tokens   int64   `json:"t,omitempty"`
}

// cursor returns the row's position in an order. In the order of names that is the role itself.
func (r *row) cursor(sort string) string {
	c := cursor{Sort: sort, Role: r.tool.Role}
	switch sort {
	case ByName:
		return r.tool.Role
	case Used:
		c.Used = r.tool.UsageCount
	case Failed:
		c.Rate, c.Failures = r.health.RecentFailureRate, r.health.FailureCount
	case Cost:
		c.Amount, c.Tokens = r.cost.Amount, r.cost.Tokens
	}
	return base64.RawURLEncoding.EncodeToString(agent.Encoded(c))
}

// pivot returns a row with the sort keys of the cursor.
func pivot(sort, after string) (*row, error) {
	c := cursor{Role: after}
	if sort != ByName {
		c.Role = ""
		raw, err := base64.RawURLEncoding.DecodeString(after)
		if err != nil || json.Unmarshal(raw, &c) != nil || c.Sort != sort {
			return nil, ErrCursor
		}
	}
	return &row{tool: &agent.Tool{Role: c.Role, UsageCount: c.Used},
		health: &Health{RecentFailureRate: c.Rate, FailureCount: c.Failures}, cost: price{c.Amount, c.Tokens}}, nil
}

// Tools returns a page of the tools and the cursor of the next page, "" if there is none. A page of a search may end
// before it is full. Cursors stay valid while data changes: a tool whose figures do not change is on exactly one page.
// Errors are ErrCursor, or the store's.
func (o *Overview) Tools(ctx context.Context, q Query) (tools []Tool, next string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.refresh(ctx); err != nil {
		return nil, "", err
	}
	if q.Spent || q.Sort == Cost {
		if err := o.spent(ctx); err != nil {
			return nil, "", err
		}
	}
	list := o.lists[q.Sort]
	if list == nil {
		return nil, "", errors.New("overview: no order " + q.Sort)
	}
	words := strings.Fields(searched(q.Words))
	slices.Sort(words)
	words = slices.Compact(words)
	var last *row
	scanned, from := 0, (*row)(nil)
	visit := func(r *row) bool {
		if from != nil && !list.Less(from, r) {
			return true // the cursor's own position
		}
		if len(tools) == q.Limit || scanned == maxScanned {
			next = last.cursor(q.Sort)
			return false
		}
		scanned++
		if last = r; !r.matches(words) {
			return true
		}
		t := Tool{Tool: *r.tool, Health: r.health}
		if u, spent := o.costs.rows[r.tool.Role]; spent && q.Spent {
			t.Usage = &u
		}
		tools = append(tools, t)
		return true
	}
	if q.After == "" {
		list.Scan(visit)
		return tools, next, nil
	}
	if from, err = pivot(q.Sort, q.After); err != nil {
		return nil, "", err
	}
	list.Ascend(from, visit)
	return tools, next, nil
}

// matches reports whether the row contains all words.
func (r *row) matches(words []string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(r.text, w) })
}
