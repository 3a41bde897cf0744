package catalog

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// maxAsked bounds the number of words of a query that are used.
const maxAsked = 32

// Search returns at most limit tools that the reader is shown and that match words of the query, best first. An exact
// match in the role or method counts most, then a prefix match there, then matches in the description. For a query
// without words it returns the first tools by name.
func (c *Catalog) Search(ctx context.Context, r agent.Reader, query string, limit int) ([]*Tool, error) {
	all, _, err := c.List(ctx, r, "", math.MaxInt32)
	if err != nil {
		return nil, err
	}
	asked := words(query)
	slices.Sort(asked)
	if asked = slices.Compact(asked); len(asked) > maxAsked {
		asked = asked[:maxAsked]
	}
	if len(asked) == 0 {
		return all[:min(limit, len(all))], nil
	}
	type hit struct {
		tool  *Tool
		score int
	}
	var hits []hit
	for _, t := range all {
		if s := score(t, asked); s > 0 {
			hits = append(hits, hit{t, s})
		}
	}
	// Stable, so that equal scores stay sorted by name.
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.score, a.score) })
	out := make([]*Tool, 0, min(limit, len(hits)))
	for _, h := range hits[:min(limit, len(hits))] {
		out = append(out, h.tool)
	}
	return out, nil
}

// score rates a tool by the words of a query: 8 and 4 for whole and prefix matches in the name, 2 and 1 in the
// description.
func score(t *Tool, asked []string) (sum int) {
	named, described := t.named, t.described
	for _, w := range asked {
		switch {
		case slices.Contains(named, w):
			sum += 8
		case slices.ContainsFunc(named, func(n string) bool {
			return strings.HasPrefix(n, w) || len(n) > 3 &&
				strings.HasPrefix(w, n)
		}):
			sum += 4
		case slices.Contains(described, w):
			sum += 2
		case slices.ContainsFunc(described, func(n string) bool { return strings.HasPrefix(n, w) }):
			sum++
		}
	}
	return sum
}

// words splits text at characters other than letters, marks and digits. The words are in lower case and normal form.
func words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(agent.NormalForm(text)),
		func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) })
}
