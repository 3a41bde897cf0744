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
	maxParts    = 64   // compounds in all its alternatives; a bit each
	maxNested   = 3    // brackets within each other
	keptParsed  = 64
)

// A document is what all selections of a page share.
type document struct {
	root     *html.Node
	parsed   map[string]*selector
	measured *measure
}

// A selector is a parsed selector: alternatives of compounds that combinators join. Compounds are matched by cascadia; ancestors are matched here, in one
// walk down the tree, since cascadia tries all combinations of them. "a ~ b" and "a + b" count as one compound: their elements have the same ancestors.
type selector struct {
	parts []part
}

// A part is a compound, and how it is joined to the one before.
type part struct {
	match cascadia.Sel
	child bool // its parent must match the part before, not just some ancestor
	first bool // of an alternative
	last  bool // of an alternative
}

// CheckSelector reports why Find and the others would not take the selector; nil when they do.
func CheckSelector(text string) error {
	_, err := parseSelector(text)
	return err
}

// compile returns the parsed selector and panics where it is none.
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

// selectorHint names the method for what jQuery has in selectors.
func selectorHint(text string) string {
	for _, h := range [][2]string{{":first", "; use First()"}, {":last", "; use Last()"}, {":eq(", "; use Eq(i)"},
		{":gt(", "; use Slice(start, end)"}, {":lt(", "; use Slice(start, end)"}, {":text", "; use Text()"}} {
		if i := strings.Index(text, h[0]); i >= 0 && !strings.HasPrefix(text[i+len(h[0]):], "-") {
			return h[1]
		}
	}
	return ""
}

// find appends the descendants of n that match.
func (s *selector) find(n *html.Node, out []*html.Node) []*html.Node {
	above, parent := s.state(n)
	return s.walk(n, above, parent, out)
}

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

// matches reports whether the element itself matches.
func (s *selector) matches(n *html.Node) bool {
	if n.Type != html.ElementNode {
		return false
	}
	above, parent := s.state(n.Parent)
	_, found := s.step(n, above, parent)
	return found
}

// state returns the parts that n or something above it matches, together with all before them, and those that n itself does.
func (s *selector) state(n *html.Node) (above, parent uint64) {
	if n == nil || n.Type != html.ElementNode || len(s.parts) == 1 {
		return 0, 0
	}
	above, parent = s.state(n.Parent)
	matched, _ := s.step(n, above, parent)
	return above | matched, matched
}

// step returns the parts that an element matches, given what is matched above it, and whether it matches an alternative whole.
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
