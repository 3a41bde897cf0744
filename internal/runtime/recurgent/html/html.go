// Package html is what programs read web pages with: Parse makes a tree of a page, and a Selection finds in it by CSS selectors. Names and meanings
// are those of goquery where it has them. Text is as a browser shows it, tables and links come as plain values.
//
// Everything here is bounded, because pages are hostile: the size of a page, the number and depth of its elements, the length and the cost of a
// selector, the cells of a table. A page over a bound is an error of Parse. A selector that is not CSS, or that costs too much on its page, and a table
// that is too large panic with an error that says so, which ends the run: a program that carried on would answer as if nothing was there. CheckSelector
// is for selectors that come from callers.
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

// Bounds of a page. The parser's own is 512 elements within each other.
const (
	maxPage = 32 << 20 // bytes
	maxTags = 1 << 20
)

// Document is a whole page: a Selection of its root.
type Document = Selection

// Parse reads a page, or a part of one: a string, a []byte or an io.Reader. Broken markup is repaired as browsers do it; bytes that are not
// UTF-8 become U+FFFD. The error says what is over a bound: 32 MiB, 1,048,576 tags, 512 elements within each other; or why the reader failed.
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

// parse makes a panic of the parser an error: it gives up so on trees that are too deep.
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

// Text returns the text of a piece of HTML, such as the description in a feed: Parse and Selection.Text. What cannot be parsed is returned as it is.
func Text(markup string) string {
	doc, err := Parse(markup)
	if err != nil {
		return markup
	}
	return doc.Text()
}

// EscapeString is that of the standard library's package html.
func EscapeString(s string) string { return std.EscapeString(s) }

// UnescapeString is that of the standard library's package html.
func UnescapeString(s string) string { return std.UnescapeString(s) }
