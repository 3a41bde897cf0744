package html

import (
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent/html/internal/html"
)

// Find returns the descendants of the elements that match the selector. As in CSS, ancestors that the selector names may lie outside.
func (s *Selection) Find(selector string) *Selection {
	m := s.page.compile(selector)
	var out []*html.Node
	roots := make(map[*html.Node]bool, len(s.nodes))
	for _, n := range s.nodes {
		roots[n] = true
	}
	for _, n := range s.nodes {
		if !below(n, roots) { // otherwise an element above it finds the same
			out = m.find(n, out)
		}
	}
	return s.with(out...)
}

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

// Filter returns the elements that match the selector themselves.
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

// Remove takes the elements out of the page, for all selections of it, and returns them.
func (s *Selection) Remove() *Selection {
	for _, n := range s.nodes {
		if n.Parent != nil {
			n.Parent.RemoveChild(n)
		}
	}
	return s
}

// Contents returns the elements' children with the texts between them, whose Name is "#text".
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

// Has returns the elements that have a descendant which matches the selector.
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

func (s *Selection) only(keep func(*html.Node) bool) *Selection {
	var out []*html.Node
	for _, n := range s.nodes {
		if keep(n) {
			out = append(out, n)
		}
	}
	return s.with(out...)
}

// Children returns the elements' children, those that match a selector if there is one.
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

// Parents returns the elements above, the nearest first, those that match a selector if there is one.
func (s *Selection) Parents(selector ...string) *Selection {
	return s.move(selector, func(n *html.Node, add func(*html.Node)) {
		for n = n.Parent; n != nil; n = n.Parent {
			add(n)
		}
	})
}

// Closest returns for each element itself or the nearest element above it that matches the selector.
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

// Next returns the element that follows each one under the same parent, if it matches a selector that is given.
func (s *Selection) Next(selector ...string) *Selection {
	return s.move(selector, func(n *html.Node, add func(*html.Node)) {
		if n = nextElement(n); n != nil {
			add(n)
		}
	})
}

// Prev returns the element before each one under the same parent, if it matches a selector that is given.
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

// NextAll returns all elements that follow the elements under the same parents, those that match a selector if there is one.
func (s *Selection) NextAll(selector ...string) *Selection {
	seen := map[*html.Node]bool{}
	return s.move(selector, func(n *html.Node, add func(*html.Node)) {
		for n = nextElement(n); n != nil && !seen[n]; n = nextElement(n) {
			seen[n] = true
			add(n)
		}
	})
}

// NextUntil returns the elements that follow the elements under the same parents, each up to the next one that matches the selector.
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

// Siblings returns the other elements under the same parents, those that match a selector if there is one.
func (s *Selection) Siblings(selector ...string) *Selection {
	self := map[*html.Node]bool{}
	if len(s.nodes) == 1 {
		self[s.nodes[0]] = true
	}
	return s.Parent().Children(selector...).only(func(n *html.Node) bool { return !self[n] })
}

func nextElement(n *html.Node) *html.Node {
	for n = n.NextSibling; n != nil && n.Type != html.ElementNode; n = n.NextSibling {
	}
	return n
}

// move collects where step leads from each element: elements alone, each once, and those that match all selectors.
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
