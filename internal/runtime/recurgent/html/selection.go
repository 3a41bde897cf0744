package html

import (
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/recurgent/html/internal/html"
)

// A Selection is a list of elements of a page without duplicates, in document order unless they were chosen otherwise.
// Methods that find elements return a new Selection, which may be empty. Selectors are CSS
// (https://pkg.go.dev/github.com/andybalholm/cascadia), with :contains("text") and :has(selector).
type Selection struct {
	nodes []*html.Node
	page  *document
}

// with returns a Selection of nodes of the same page.
func (s *Selection) with(nodes ...*html.Node) *Selection { return &Selection{nodes, s.page} }

// Length returns the number of elements.
func (s *Selection) Length() int { return len(s.nodes) }

// Len is the same as Length.
func (s *Selection) Len() int { return len(s.nodes) }

// Each calls f for each element, with its index and a Selection of it alone, and returns s.
func (s *Selection) Each(f func(i int, one *Selection)) *Selection {
	for i, n := range s.nodes {
		f(i, s.with(n))
	}
	return s
}

// EachWithBreak is Each, but stops when f returns false.
func (s *Selection) EachWithBreak(f func(i int, one *Selection) bool) *Selection {
	for i, n := range s.nodes {
		if !f(i, s.with(n)) {
			break
		}
	}
	return s
}

// Map returns the results of f for each element.
func (s *Selection) Map(f func(i int, one *Selection) string) []string {
	out := make([]string, len(s.nodes))
	for i, n := range s.nodes {
		out[i] = f(i, s.with(n))
	}
	return out
}

// All returns a slice to range over, with one Selection per element.
func (s *Selection) All() []*Selection {
	out := make([]*Selection, len(s.nodes))
	for i, n := range s.nodes {
		out[i] = s.with(n)
	}
	return out
}

// Eq returns the element at index i. A negative index counts from the end. The selection is empty if there is no such
// element.
func (s *Selection) Eq(i int) *Selection {
	if i < 0 {
		i += len(s.nodes)
	}
	if i < 0 || i >= len(s.nodes) {
		return s.with()
	}
	return s.with(s.nodes[i])
}

// First returns the first element.
func (s *Selection) First() *Selection { return s.Eq(0) }

// Last returns the last element.
func (s *Selection) Last() *Selection { return s.Eq(-1) }

// Slice returns the elements from index start up to, but without, end. It panics if an index is out of range.
func (s *Selection) Slice(start, end int) *Selection { return s.with(s.nodes[start:end:end]...) }

// Attr returns the value of the first element's attribute and whether it has the attribute.
func (s *Selection) Attr(name string) (value string, exists bool) {
	if len(s.nodes) == 0 {
		return "", false
	}
	return attr(s.nodes[0], strings.ToLower(name))
}

// AttrOr returns the value of the first element's attribute, or otherwise if the element lacks it.
func (s *Selection) AttrOr(name, otherwise string) string {
	if v, ok := s.Attr(name); ok {
		return v
	}
	return otherwise
}

// attr returns the value of an attribute. Names are compared without regard to case.
func attr(n *html.Node, name string) (string, bool) {
	for _, a := range n.Attr {
		if strings.EqualFold(a.Key, name) {
			return a.Val, true
		}
	}
	return "", false
}

// HasClass reports whether any element has the class.
func (s *Selection) HasClass(class string) bool {
	return slices.ContainsFunc(s.nodes, func(n *html.Node) bool {
		v, _ := attr(n, "class")
		return slices.Contains(strings.Fields(v), class)
	})
}

// Name returns the first element's name in lower case, such as "div", "#text" for a text node, or "" for a document or
// an empty selection.
func (s *Selection) Name() string {
	switch {
	case len(s.nodes) == 0 || s.nodes[0].Type == html.DocumentNode:
		return ""
	case s.nodes[0].Type == html.TextNode:
		return "#text"
	}
	return s.nodes[0].Data
}

// Html returns the inner markup of the first element, or "" if there is none.
func (s *Selection) Html() (string, error) {
	var b strings.Builder
	if len(s.nodes) > 0 {
		for c := s.nodes[0].FirstChild; c != nil; c = c.NextSibling {
			if err := html.Render(&b, c); err != nil {
				return "", err
			}
		}
	}
	return b.String(), nil
}

// OuterHtml returns the markup of the first element, its own tags included, or "" if there is none.
func (s *Selection) OuterHtml() (string, error) {
	var b strings.Builder
	if len(s.nodes) == 0 {
		return "", nil
	}
	err := html.Render(&b, s.nodes[0])
	return b.String(), err
}

// Find returns the descendants of the elements that match the selector. As in CSS, an ancestor that the selector names
// may lie outside the selection.
func (s *Selection) Find(selector string) *Selection {
	m := s.page.compile(selector)
	var out []*html.Node
	roots := make(map[*html.Node]bool, len(s.nodes))
	for _, n := range s.nodes {
		roots[n] = true
	}
	for _, n := range s.nodes {
		// An ancestor in the selection finds the same elements, so searching below n again would only repeat them.
		if !below(n, roots) {
			out = m.find(n, out)
		}
	}
	return s.with(out...)
}

// below reports whether an ancestor of n is among the roots.
func below(n *html.Node, roots map[*html.Node]bool) bool {
	if len(roots) == 1 {
		return false
	}
	for p := n.Parent; p != nil; p = p.Parent {
		if roots[p] {
			return true
		}
	}
	return false
}

// Filter returns the elements of the selection that match the selector.
func (s *Selection) Filter(selector string) *Selection {
	m := s.page.compile(selector)
	return s.only(m.matches)
}

// Not returns the elements that do not match the selector.
func (s *Selection) Not(selector string) *Selection {
	m := s.page.compile(selector)
	return s.only(func(n *html.Node) bool { return !m.matches(n) })
}

// FilterFunction returns the elements for which keep returns true.
func (s *Selection) FilterFunction(keep func(i int, one *Selection) bool) *Selection {
	i := -1
	return s.only(func(n *html.Node) bool {
		i++
		return keep(i, s.with(n))
	})
}

// Remove removes the elements from the page, for all its selections, and returns them.
func (s *Selection) Remove() *Selection {
	for _, n := range s.nodes {
		if n.Parent != nil {
			n.Parent.RemoveChild(n)
		}
	}
	return s
}

// Contents returns the children of the elements and the text nodes between them, whose Name is "#text".
func (s *Selection) Contents() *Selection {
	var out []*html.Node
	for _, n := range s.nodes {
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			if c.Type == html.ElementNode || c.Type == html.TextNode {
				out = append(out, c)
			}
		}
	}
	return s.with(out...)
}

// Has returns the elements that have a descendant matching the selector.
func (s *Selection) Has(selector string) *Selection {
	found := map[*html.Node]bool{}
	for _, n := range s.Find(selector).nodes {
		for p := n.Parent; p != nil && !found[p]; p = p.Parent {
			found[p] = true
		}
	}
	return s.only(func(n *html.Node) bool { return found[n] })
}

// Is reports whether any element matches the selector.
func (s *Selection) Is(selector string) bool { return s.Filter(selector).Length() > 0 }

// only returns the elements for which keep returns true.
func (s *Selection) only(keep func(*html.Node) bool) *Selection {
	var out []*html.Node
	for _, n := range s.nodes {
		if keep(n) {
			out = append(out, n)
		}
	}
	return s.with(out...)
}

// Children returns the children of the elements. If a selector is given, only those that match it.
func (s *Selection) Children(selector ...string) *Selection {
	return s.move(selector, func(n *html.Node, add func(*html.Node)) {
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			add(c)
		}
	})
}

// Parent returns the elements' parents.
func (s *Selection) Parent() *Selection {
	return s.move(nil, func(n *html.Node, add func(*html.Node)) {
		if n.Parent != nil {
			add(n.Parent)
		}
	})
}

// Parents returns the ancestors of the elements, nearest first. If a selector is given, only those that match it.
func (s *Selection) Parents(selector ...string) *Selection {
	return s.move(selector, func(n *html.Node, add func(*html.Node)) {
		for n = n.Parent; n != nil; n = n.Parent {
			add(n)
		}
	})
}

// Closest returns, for each element, the first match among the element itself and its ancestors, nearest first.
func (s *Selection) Closest(selector string) *Selection {
	m := s.page.compile(selector)
	return s.move(nil, func(n *html.Node, add func(*html.Node)) {
		for ; n != nil; n = n.Parent {
			if m.matches(n) {
				add(n)
				return
			}
		}
	})
}

// Next returns the next sibling of each element. If a selector is given, only those that match it.
func (s *Selection) Next(selector ...string) *Selection {
	return s.move(selector, func(n *html.Node, add func(*html.Node)) {
		if n = nextElement(n); n != nil {
			add(n)
		}
	})
}

// Prev returns the previous sibling of each element. If a selector is given, only those that match it.
func (s *Selection) Prev(selector ...string) *Selection {
	return s.move(selector, func(n *html.Node, add func(*html.Node)) {
		for n = n.PrevSibling; n != nil; n = n.PrevSibling {
			if n.Type == html.ElementNode {
				add(n)
				return
			}
		}
	})
}

// NextAll returns all later siblings of the elements. If a selector is given, only those that match it.
func (s *Selection) NextAll(selector ...string) *Selection {
	seen := map[*html.Node]bool{}
	return s.move(selector, func(n *html.Node, add func(*html.Node)) {
		for n = nextElement(n); n != nil && !seen[n]; n = nextElement(n) {
			seen[n] = true
			add(n)
		}
	})
}

// NextUntil returns the later siblings of each element up to, but without, the next one that matches the selector.
func (s *Selection) NextUntil(selector string) *Selection {
	m := s.page.compile(selector)
	seen := map[*html.Node]bool{}
	return s.move(nil, func(n *html.Node, add func(*html.Node)) {
		for n = nextElement(n); n != nil && !seen[n] && !m.matches(n); n = nextElement(n) {
			seen[n] = true
			add(n)
		}
	})
}

// Siblings returns the siblings of the elements. If a selector is given, only those that match it.
func (s *Selection) Siblings(selector ...string) *Selection {
	self := map[*html.Node]bool{}
	if len(s.nodes) == 1 {
		self[s.nodes[0]] = true
	}
	return s.Parent().Children(selector...).only(func(n *html.Node) bool { return !self[n] })
}

// nextElement returns the next sibling that is an element, or nil.
func nextElement(n *html.Node) *html.Node {
	for n = n.NextSibling; n != nil && n.Type != html.ElementNode; n = n.NextSibling {
	}
	return n
}

// move collects the elements that step adds for each selected element, each once, and keeps those that match all
// selectors. Nodes that are not elements are dropped.
func (s *Selection) move(selectors []string, step func(n *html.Node, add func(*html.Node))) *Selection {
	var out []*html.Node
	seen := map[*html.Node]bool{}
	for _, n := range s.nodes {
		step(n, func(to *html.Node) {
			if to.Type == html.ElementNode && !seen[to] {
				seen[to] = true
				out = append(out, to)
			}
		})
	}
	moved := s.with(out...)
	for _, selector := range selectors {
		moved = moved.Filter(selector)
	}
	return moved
}
