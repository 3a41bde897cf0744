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
