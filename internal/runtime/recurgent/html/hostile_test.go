package html_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/recurgent/html"
)

// Pages that cost a parser far more than their size are errors, and pages that are merely ugly are read.
func TestHostilePages(t *testing.T) {
	t.Parallel()
	var attributes, formatting strings.Builder
	for i := range 12_000 {
		fmt.Fprintf(&attributes, "<html a%d=1>", i)
	}
	for i := range 400 {
		fmt.Fprintf(&formatting, "<b a%d>", i)
	}
	for name, c := range map[string]struct{ page, want string }{
		"attributes compared again and again": {attributes.String(), "too much work"},
		"formatting that is repeated": {"<p>" + formatting.String() + strings.Repeat("</p><p>x", 20_000),
			"too much work"},
		"nested templates":        {strings.Repeat("<template>", 100_000), "512"},
		"nested tables":           {strings.Repeat("<table><tr><td>", 200), "512"},
		"comments that never end": {strings.Repeat("<!--", 10_000), ""},
		"scripts within comments": {"<script>" + strings.Repeat("<!--<script>", 10_000), ""},
		"entities":                {strings.Repeat("&amp", 100_000) + strings.Repeat("&", 100_000), ""},
		"foreign content": {"<svg>" + strings.Repeat("<![CDATA[", 10_000) +
			strings.Repeat("<desc><math><mi>", 100), ""},
		"foster parents":  {"<table>" + strings.Repeat("x<b>", 300), ""},
		"nothing but NUL": {strings.Repeat("\x00", 100_000), ""},
		"not UTF-8":       {"<p title='\xff\xfe'>\xc3\x28\xed\xa0\x80</p \xff>", ""},
		"UTF-16":          {"\xff\xfe<\x00p\x00>\x00x\x00", ""},
	} {
		doc, err := html.Parse(c.page)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
		if err == nil {
			use(t, doc, "p, b :first-child")
		}
	}
}

// use reads a page in every way. All texts it reads must be UTF-8.
func use(t *testing.T, doc *html.Document, selector string) {
	t.Helper()
	found := doc.Find(selector)
	inner, err := doc.Html()
	outer, err2 := found.OuterHtml()
	if err != nil || err2 != nil {
		t.Errorf("markup: %v, %v", err, err2)
	}
	texts := append(found.Texts(), doc.Text(), inner, outer, found.AttrOr("title", ""))
	for _, l := range doc.Links("https://a.example/b?c") {
		texts = append(texts, l.URL, l.Text)
		if !strings.HasPrefix(l.URL, "http://") && !strings.HasPrefix(l.URL, "https://") {
			t.Errorf("a link is %q", l.URL)
		}
	}
	rows, width := doc.Table(), -1
	for _, row := range rows {
		if width >= 0 && len(row) != width {
			t.Errorf("rows of %d and %d cells", width, len(row))
		}
		width = len(row)
	}
	if records := doc.Records(); len(records) > 0 && len(records) >= len(rows) {
		t.Errorf("%d records of %d rows", len(records), len(rows))
	}
	for _, text := range texts {
		if text != strings.ToValidUTF8(text, "") {
			t.Errorf("not UTF-8: %.100q", text)
		}
	}
	found.Children().Siblings("*").Next().Prev().Parents().Closest(selector)
	found.NextAll().NextUntil(selector).Contents().Not(selector).Has(selector).Remove()
}

// Any page and any selector ends well, in an error, or in one of the two intended panics.
func FuzzPages(f *testing.F) {
	f.Add(shop, "table tr:nth-child(2) > td, a[href^='x']:not(.b)")
	f.Add("<table><tr><td rowspan=0 colspan=3>a<tr><th>b</table>", `td:contains("a\"b") ~ th + *`)
	f.Add("<p>\xff&#0;&#xD800;<svg><p><template><td>", `\61 .\000062 c, :has(:empty)`)
	f.Fuzz(func(t *testing.T, page, selector string) {
		if html.CheckSelector(selector) != nil {
			selector = "*"
		}
		doc, err := html.Parse(page)
		if err != nil {
			return
		}
		defer func() {
			if r := recover(); r != nil {
				if text := fmt.Sprint(r); !strings.Contains(text, "costs too much") &&
					!strings.Contains(text, "cells") {
					panic(r)
				}
			}
		}()
		use(t, doc, selector)
	})
}
