package html

import (
	"strings"
	"unicode"

	"github.com/recurgentd/recurgentd/internal/runtime/recurgent/html/internal/html"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent/html/internal/html/atom"
)

// Text returns the text of the selected elements as a browser shows it. White space is collapsed to single blanks and
// trimmed; blocks, cells and line breaks are separated by a blank; head, script, style, template and noscript are left
// out unless they are selected themselves. The text of a selected pre, textarea, script or style is verbatim.
func (s *Selection) Text() string {
	var t textWriter
	for _, n := range s.nodes {
		t.space = true
		if verbatim(n) {
			t.b.WriteString(nodeText(n))
			continue
		}
		t.inside(n)
	}
	return t.b.String()
}

// Texts returns the Text of each selected element.
func (s *Selection) Texts() []string {
	return s.Map(func(_ int, one *Selection) string { return one.Text() })
}

// verbatim reports whether Text returns the element's text unchanged.
func verbatim(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Pre, atom.Textarea, atom.Script, atom.Style:
		return true
	}
	return false
}

// nodeText returns the text of a node and its descendants, unchanged.
func nodeText(n *html.Node) string {
	if n.Type == html.TextNode {
		return n.Data
	}
	var b strings.Builder
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		b.WriteString(nodeText(c))
	}
	return b.String()
}

// A textWriter collapses white space as it writes.
type textWriter struct {
	b     strings.Builder
	space bool // write a blank before the next word
}

// node writes the text of a node. Elements that a browser does not show are left out.
func (t *textWriter) node(n *html.Node) {
	switch n.Type {
	case html.TextNode:
		t.text(n.Data)
	case html.ElementNode:
		switch n.DataAtom {
		case atom.Head, atom.Script, atom.Style, atom.Template, atom.Noscript:
			return
		}
		apart := !inline(n)
		t.space = t.space || apart
		t.inside(n)
		t.space = t.space || apart
	}
}

// inside writes the texts in a node, even if a browser does not show the node itself.
func (t *textWriter) inside(n *html.Node) {
	if n.Type == html.TextNode {
		t.text(n.Data)
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		t.node(c)
	}
}

// text writes a text with its white space collapsed.
func (t *textWriter) text(s string) {
	for s != "" {
		word := strings.IndexFunc(s, unicode.IsSpace)
		if word < 0 {
			word = len(s)
		}
		if word > 0 {
			if t.space && t.b.Len() > 0 {
				t.b.WriteByte(' ')
			}
			t.space = false
			t.b.WriteString(s[:word])
		}
		rest := strings.TrimLeftFunc(s[word:], unicode.IsSpace)
		t.space = t.space || len(rest) < len(s[word:])
		s = rest
	}
}

// inline reports whether the text of the element continues the current line.
func inline(n *html.Node) bool {
	switch n.DataAtom {
	case atom.A, atom.Abbr, atom.Acronym, atom.B, atom.Bdi, atom.Bdo, atom.Big, atom.Cite, atom.Code, atom.Data,
		atom.Del, atom.Dfn, atom.Em, atom.Font, atom.I,
		atom.Ins, atom.Kbd, atom.Label, atom.Mark, atom.Nobr, atom.Q, atom.Ruby, atom.S, atom.Samp, atom.Small,
		atom.Span, atom.Strike, atom.Strong,
		atom.Sub, atom.Sup, atom.Time, atom.Tt, atom.U, atom.Var, atom.Wbr:
		return true
	}
	// Custom elements are inline unless styled.
	return strings.Contains(n.Data, "-")
}
