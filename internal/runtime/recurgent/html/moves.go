package html

import (
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent/html/internal/html"
)

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
