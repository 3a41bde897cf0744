package html

import (
	"errors"
	"fmt"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/recurgent/html/internal/cascadia"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent/html/internal/html"
)

// Bounds of a selector.
const (
	maxSelector = 1000 // bytes
	maxParts    = 64   // compounds in all alternatives; each takes one bit of a uint64
	maxNested   = 3    // bracket depth
	keptParsed  = 64   // parsed selectors cached per page
)

// A document is the state that all selections of a page share.
type document struct {
	root     *html.Node
	parsed   map[string]*selector // cache of compile, by text
	measured *measure             // nil until a selector needs it
}

// A selector is a parsed selector: alternatives of compounds joined by combinators. cascadia matches the compounds.
// Ancestors are matched here in one walk down the tree, because cascadia tries all combinations of them. "a ~ b" and "a
// + b" count as one compound, since their elements have the same ancestors.
type selector struct {
	parts []part
}

// A part is a compound and its combinator to the previous part.
type part struct {
	match cascadia.Sel
	child bool // the parent must match the previous part; otherwise any ancestor may
	first bool // of an alternative
	last  bool // of an alternative
}

// CheckSelector returns the error with which Find and the other methods would reject the selector, or nil if it is
// valid. It does not check the cost, which depends on the page.
func CheckSelector(text string) error {
	_, err := parseSelector(text)
	return err
}

// compile returns the parsed selector, from the cache if it is there. It panics if the selector is invalid or not
// affordable.
func (d *document) compile(text string) *selector {
	s := d.parsed[text]
	if s == nil {
		var err error
		if s, err = parseSelector(text); err == nil {
			err = d.affordable(text)
		}
		if err != nil {
			panic(err)
		}
		if d.parsed == nil || len(d.parsed) == keptParsed {
			d.parsed = map[string]*selector{}
		}
		d.parsed[text] = s
	}
	return s
}

// parseSelector parses a selector and checks its bounds. A panic of cascadia becomes an error.
func parseSelector(text string) (s *selector, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%.200v", r)
		}
		if err != nil {
			err = fmt.Errorf("html: selector %.100q: %w%s", text, err, selectorHint(text))
		}
	}()
	if len(text) > maxSelector {
		return nil, fmt.Errorf("longer than %d bytes", maxSelector)
	}
	if nesting(text) > maxNested {
		return nil, fmt.Errorf("more than %d brackets within each other", maxNested)
	}
	if hasPattern(text) {
		return nil, errors.New("regular expressions in selectors are not available: match texts in Each")
	}
	if _, err := cascadia.ParseGroup(text); err != nil {
		return nil, err
	}
	s = &selector{}
	for _, alternative := range split(text) {
		for i, p := range alternative {
			sel, err := cascadia.Parse(p.text)
			if err != nil {
				return nil, err
			}
			s.parts = append(s.parts, part{match: sel, child: p.joined == '>', first: i == 0,
				last: i == len(alternative)-1})
		}
	}
	if len(s.parts) > maxParts {
		return nil, fmt.Errorf("more than %d parts", maxParts)
	}
	return s, nil
}

// selectorHint suggests the method that replaces a jQuery extension of the selector syntax, or returns "".
func selectorHint(text string) string {
	for _, h := range [][2]string{{":first", "; use First()"}, {":last", "; use Last()"}, {":eq(", "; use Eq(i)"},
		{":gt(", "; use Slice(start, end)"}, {":lt(", "; use Slice(start, end)"}, {":text", "; use Text()"}} {
		if i := strings.Index(text, h[0]); i >= 0 && !strings.HasPrefix(text[i+len(h[0]):], "-") {
			return h[1]
		}
	}
	return ""
}

// find appends the descendants of n that match the selector.
func (s *selector) find(n *html.Node, out []*html.Node) []*html.Node {
	above, parent := s.state(n)
	return s.walk(n, above, parent, out)
}

// walk is find with the bit sets of n: above for it and its ancestors, parent for it alone.
func (s *selector) walk(n *html.Node, above, parent uint64, out []*html.Node) []*html.Node {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type != html.ElementNode {
			continue
		}
		matched, found := s.step(c, above, parent)
		if found {
			out = append(out, c)
		}
		out = s.walk(c, above|matched, matched, out)
	}
	return out
}

// matches reports whether n itself matches the selector.
func (s *selector) matches(n *html.Node) bool {
	if n.Type != html.ElementNode {
		return false
	}
	above, parent := s.state(n.Parent)
	_, found := s.step(n, above, parent)
	return found
}

// state returns bit sets of parts. A bit is set if a node matches that part and its ancestors match the parts before
// it: in parent for n itself, in above for n or any of its ancestors.
func (s *selector) state(n *html.Node) (above, parent uint64) {
	if n == nil || n.Type != html.ElementNode || len(s.parts) == 1 {
		return 0, 0
	}
	above, parent = s.state(n.Parent)
	matched, _ := s.step(n, above, parent)
	return above | matched, matched
}

// step returns the bit set of the parts that n matches, given the bit sets of its ancestors, and whether n matches a
// whole alternative.
func (s *selector) step(n *html.Node, above, parent uint64) (matched uint64, found bool) {
	for i, p := range s.parts {
		before := above
		if p.child {
			before = parent
		}
		if (p.first || before&(1<<(i-1)) != 0) && !(found && p.last) && p.match.Match(n) {
			matched |= 1 << i
			found = found || p.last
		}
	}
	return matched, found
}
