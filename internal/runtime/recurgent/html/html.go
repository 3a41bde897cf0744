// Package html reads web pages for programs: Parse builds the tree of a page, and a Selection finds elements in it by
// CSS selectors. Names and meanings are those of goquery where it has them. Text is as a browser shows it; tables and
// links come as plain values.
//
// Everything here is bounded, because pages are hostile: the size of a page, the number and depth of its elements, the
// length and cost of a selector, the cells of a table. Parse returns an error for a page over a bound. A selector that
// is not valid CSS or costs too much on its page panics, and so does a table that is too large. The panic ends the run
// with a message that names the problem: a program that carried on would answer as if the page were empty.
// CheckSelector validates selectors that come from callers.
//
// A document belongs to one run and is not safe for concurrent use.
package html

import (
	"errors"
	"fmt"
	std "html"
	"io"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/recurgent/html/internal/html"
)

// Bounds of a page. The parser itself limits the nesting to 512 elements.
const (
	maxPage = 32 << 20 // bytes
	maxTags = 1 << 20
)

// Document is a whole page: a Selection of its root.
type Document = Selection

// Parse parses a page or a fragment of one from a string, a []byte or an io.Reader. It repairs broken markup as
// browsers do and replaces bytes that are not UTF-8 by U+FFFD. The error names the bound that the page exceeds (32 MiB,
// 1,048,576 tags, 512 nested elements) or is the reader's.
func Parse(page any) (*Document, error) {
	text, err := pageText(page)
	if err != nil {
		return nil, err
	}
	if len(text) > maxPage {
		return nil, fmt.Errorf("html: the page is larger than %d MiB", maxPage>>20)
	}
	if n := strings.Count(text, "<"); n > maxTags {
		return nil, fmt.Errorf("html: the page has %d tags, at most %d are read", n, maxTags)
	}
	root, err := parse(strings.ToValidUTF8(strings.TrimPrefix(text, "\ufeff"), "\ufffd"))
	if err != nil {
		return nil, err
	}
	return &Selection{nodes: []*html.Node{root}, page: &document{root: root}}, nil
}

// pageText returns the text of a page, at most one byte more than the bound.
func pageText(page any) (string, error) {
	switch page := page.(type) {
	case string:
		return page, nil
	case []byte:
		return string(page), nil
	case io.Reader:
		data, err := io.ReadAll(io.LimitReader(page, maxPage+1))
		return string(data), err
	}
	return "", fmt.Errorf("html: Parse takes a page as string, []byte or io.Reader, not %T", page)
}

// parse turns a panic of the parser into an error. The parser panics on trees that are too deep.
func parse(text string) (root *html.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("html: the page cannot be read: %.200v", r)
		}
	}()
	root, err = html.ParseWithOptions(strings.NewReader(text), html.ParseOptionEnableScripting(false))
	if err != nil {
		return nil, errors.New("html: the page cannot be read: " + strings.TrimPrefix(err.Error(), "html: "))
	}
	return root, nil
}

// Text returns the text of a piece of HTML, such as the description in a feed: Parse followed by Selection.Text. Markup
// that cannot be parsed is returned unchanged.
func Text(markup string) string {
	doc, err := Parse(markup)
	if err != nil {
		return markup
	}
	return doc.Text()
}

// EscapeString is the function of that name in the standard library's package html.
func EscapeString(s string) string { return std.EscapeString(s) }

// UnescapeString is the function of that name in the standard library's package html.
func UnescapeString(s string) string { return std.UnescapeString(s) }
