package html

import (
	"errors"
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/recurgent/html/internal/html"
)

// maxCost bounds the nodes and pieces of text that matching one selector may visit. It amounts to some seconds.
const maxCost = 1 << 32

// errCost is the reason why affordable rejects a selector.
var errCost = errors.New(
	"costs too much on a page of this size: find its elements by a simpler selector, and go on with Eq, Next, Children or Each")

// A measure holds the statistics of a page that bound the cost of selectors.
type measure struct {
	nodes   int
	inside  int // average over the nodes: size of the subtree, long text counted as several nodes
	beside  int // average over the nodes: number of siblings
	leading int // longest run of siblings that are not elements
}

// affordable returns an error if the cost of a selector may exceed maxCost. Compounds of names, classes, ids and
// attributes visit each element once and need no check. Some pseudo-classes visit all siblings or all descendants, and
// repeat that when they are nested.
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

// cost returns an upper bound for one compound on the page. Costs at one bracket depth add up; costs inside brackets
// multiply.
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

// pseudo returns the cost of a pseudo-class per element.
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

// measure returns the statistics of the page. It computes them once.
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

// add counts n and its subtree. It leaves sums in inside and beside; measure divides them by the number of nodes.
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
