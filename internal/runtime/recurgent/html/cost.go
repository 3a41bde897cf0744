package html

import (
	"errors"
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/recurgent/html/internal/html"
)

// maxCost bounds the nodes and pieces of text that matching a selector may look at: some seconds.
const maxCost = 1 << 32

var errCost = errors.New(
	"costs too much on a page of this size: find its elements by a simpler selector, and go on with Eq, Next, Children or Each")

// A measure is what selectors cost on a page.
type measure struct {
	nodes   int
	inside  int // per node: what lies within it
	beside  int // per node: how many siblings it has
	leading int // the longest row of siblings that are no elements
}

// affordable reports an error for a selector whose cost may pass maxCost. Compounds of names, classes, ids and attributes are looked at once for each
// element. Some pseudo-classes look at all siblings or all descendants, and do so again within each other.
func (d *document) affordable(text string) error {
	if !strings.ContainsAny(text, ":~+") {
		return nil
	}
	m := d.measure()
	total := 0
	for _, alternative := range split(text) {
		for _, p := range alternative {
			total += m.cost(p.text)
			if total > maxCost {
				return errors.New("html: selector " + strconv.Quote(text) + " " + errCost.Error())
			}
		}
	}
	return nil
}

// cost bounds what one compound costs on the page: what stands beside each other adds up, what stands within brackets is repeated.
func (m *measure) cost(text string) int {
	var sums [maxNested + 1]int
	scan(text, func(i, depth int) {
		rest := strings.ToLower(text[i:min(len(text), i+24)])
		switch {
		case strings.HasPrefix(rest, "~") && !strings.HasPrefix(rest, "~="):
			sums[depth] += m.beside
		case strings.HasPrefix(rest, "+"):
			sums[depth] += m.leading
		case depth > 0 && blank(rest[0]):
			sums[depth] += m.inside
		case rest[0] == ':':
			sums[depth] += m.pseudo(rest)
		}
	})
	cost := m.nodes
	for _, sum := range sums {
		if cost *= 1 + sum; cost > maxCost {
			return maxCost + 1
		}
	}
	return cost
}

// pseudo returns what a pseudo-class costs for each element.
func (m *measure) pseudo(name string) int {
	switch {
	case strings.HasPrefix(name, ":has("), strings.HasPrefix(name, ":contains"):
		return m.inside
	case strings.Contains(name, "-of-type"):
		return m.beside
	case strings.Contains(name, "-child"):
		_, formula, _ := strings.Cut(name, "(")
		number, _, _ := strings.Cut(formula, ")")
		if k, err := strconv.Atoi(strings.TrimSpace(number)); err == nil || number == "" {
			return m.leading * min(1+max(k, 0), 1+m.beside)
		}
		return m.beside
	}
	return 0
}

func (d *document) measure() *measure {
	if d.measured == nil {
		var m measure
		m.add(d.root, 1)
		m.inside, m.beside = m.inside/m.nodes+1, m.beside/m.nodes+1
		m.leading++
		d.measured = &m
	}
	return d.measured
}

// add counts n and what lies within it; of inside and beside it makes the sums.
func (m *measure) add(n *html.Node, depth int) {
	m.nodes++
	m.inside += depth
	if n.Type == html.TextNode {
		m.inside += depth * (len(n.Data) / 16)
	}
	children, row := 0, 0
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		children++
		row++
		if c.Type == html.ElementNode {
			row = 0
		}
		m.leading = max(m.leading, row)
		m.add(c, depth+1)
	}
	m.beside += children * children
}
