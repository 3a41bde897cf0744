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

// A piece is the text of a compound and the combinator before it.
type piece struct {
	text   string
	joined byte // ' ' or '>'; 0 for the first
}

// split splits a valid selector into alternatives, and each alternative into pieces.
func split(text string) [][]piece {
	var all [][]piece
	var pieces []piece
	start, joined := 0, byte(0)
	end := func(at int) {
		if t := trimBlanks(text[start:at]); t != "" {
			pieces = append(pieces, piece{t, joined})
			joined = ' '
		}
	}
	scan(text, func(i, depth int) {
		if depth > 0 {
			return
		}
		switch c := text[i]; {
		case c == ',':
			end(i)
			all, pieces, start, joined = append(all, pieces), nil, i+1, 0
		case c == '>':
			end(i)
			start, joined = i+1, '>'
		case blank(c) && !besideSibling(text, start, i):
			end(i)
			start = i + 1
		}
	})
	end(len(text))
	return append(all, pieces)
}

// besideSibling reports whether the blank at i is next to a combinator + or ~. These do not end a piece.
func besideSibling(text string, start, i int) bool {
	before, after := trimBlanks(text[start:i]), strings.TrimLeft(text[i:], " \t\r\n\f")
	return strings.HasPrefix(after, "+") || strings.HasPrefix(after, "~") ||
		(strings.HasSuffix(before, "+") || strings.HasSuffix(before, "~")) && !strings.HasSuffix(before, `\+`) &&
			!strings.HasSuffix(before, `\~`)
}

// blank reports whether c is white space in CSS.
func blank(c byte) bool { return strings.IndexByte(" \t\r\n\f", c) >= 0 }

// trimBlanks trims white space, but keeps a blank that a backslash escapes at the end.
func trimBlanks(s string) string {
	trimmed := strings.Trim(s, " \t\r\n\f")
	if strings.HasSuffix(trimmed, `\`) && len(trimmed) < len(strings.TrimLeft(s, " \t\r\n\f")) {
		return trimmed + " " // an escaped blank
	}
	return trimmed
}

// scan calls f for each byte outside strings and escapes, with its bracket depth. Brackets themselves count as inside.
func scan(text string, f func(i, depth int)) {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '\\':
			i = escapeEnd(text, i)
			continue
		case '"', '\'':
			for i++; i < len(text) && text[i] != c; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			continue
		case '(', '[':
			depth++
			f(i, depth)
			continue
		case ')', ']':
			f(i, depth)
			depth--
			continue
		}
		f(i, depth)
	}
}

// escapeEnd returns the index of the last byte of the escape that begins at i: a single character, or up to six hex
// digits with an optional blank.
func escapeEnd(text string, i int) int {
	k := i + 1
	for k < len(text) && k < i+7 && strings.IndexByte("0123456789abcdefABCDEF", text[k]) >= 0 {
		k++
	}
	switch {
	case k == i+1:
		return k
	case k < len(text) && blank(text[k]):
		if text[k] == '\r' && k+1 < len(text) && text[k+1] == '\n' {
			k++
		}
		return k
	}
	return k - 1
}

// nesting returns the greatest bracket depth of a selector.
func nesting(text string) int {
	most := 0
	scan(text, func(_, depth int) { most = max(most, depth) })
	return most
}

// hasPattern reports whether the selector contains a regular expression, which cascadia would accept. Its cost has no
// bound here.
func hasPattern(text string) (found bool) {
	scan(text, func(i, _ int) {
		found = found || strings.HasPrefix(text[i:], "#=") || len(text) > i+8 &&
			strings.EqualFold(text[i:i+8], ":matches")
	})
	return found
}
