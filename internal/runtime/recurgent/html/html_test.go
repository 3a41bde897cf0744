package html_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/recurgentd/recurgentd/internal/runtime/recurgent/html"
)

const shop = `<!doctype html><html><head><title> Shop &amp; co </title><base href="/en/"><script>var a = "<b>";</script></head><body>
<h1>Prices</h1><p>All <b>pri</b>ces in&nbsp;euro.<br>Tax included.</p>
<table class="prices other"><thead><tr><th>Name</th><th>Price</th><th></th></tr></thead><tbody>
<tr id=a><td><a href="pear?x=1&y=2">Pear</a></td><td>1.20</td><td>new</td></tr>
<tr id=b><td><a href="https://else.example/fig">Fig</a></td><td>2.50</td></tr>
<tr id=c><td colspan=2>Sold&#32;out</td><td rowspan=2>x</td></tr><tr><td>Nut<td>3</tr></tbody></table>
<ul><li class=one>1<li>2<li class="one last">3</ul>
<a href="#top">top</a><a href="mailto:a@b.c">mail</a><a href="javascript:x()">run</a><a href=" ../up ">up</a>
<h2>First</h2><p>a</p><p>b</p><h2>Second</h2><p>c</p><pre>
  two
 lines</pre><noscript><img src=lazy.png>no script</noscript><style>p {}</style></body></html>`

func parse(t *testing.T, page any) *html.Document {
	t.Helper()
	doc, err := html.Parse(page)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// These are things that programs find in a page.
func TestFind(t *testing.T) {
	t.Parallel()
	doc := parse(t, shop)
	for name, c := range map[string]struct{ got, want any }{
		"text of a title": {doc.Find("title").Text(), "Shop & co"},
		"text by lines":   {doc.Find("h1 + p").Text(), "All prices in euro. Tax included."},
		"text of several": {doc.Find("li").Text(), "1 2 3"},
		"text without scripts": {strings.Contains(doc.Text(), "script") || strings.Contains(doc.Text(), "var a"),
			false},
		"text of a script":      {doc.Find("script").Text(), `var a = "<b>";`},
		"text of a pre":         {doc.Find("pre").Text(), "  two\n lines"},
		"texts":                 {doc.Find("li").Texts(), []string{"1", "2", "3"}},
		"class":                 {doc.Find("li.one").Length(), 2},
		"noscript":              {doc.Find("noscript img").AttrOr("src", ""), "lazy.png"},
		"attribute in any case": {doc.Find("table").AttrOr("Class", ""), "prices other"},
		"attribute of nothing":  {doc.Find("video").AttrOr("src", "none"), "none"},
		"first":                 {doc.Find("li").First().Text(), "1"},
		"last":                  {doc.Find("li").Last().Text(), "3"},
		"eq":                    {doc.Find("li").Eq(-2).Text(), "2"},
		"eq of none":            {doc.Find("li").Eq(3).Len(), 0},
		"slice":                 {doc.Find("li").Slice(1, 3).Texts(), []string{"2", "3"}},
		"children":              {doc.Find("ul").Children(".one").Length(), 2},
		"parent":                {doc.Find("li").Parent().Name(), "ul"},
		"closest":               {doc.Find("tr#a a").Closest("table").HasClass("prices"), true},
		"next":                  {doc.Find("h2").Next().Texts(), []string{"a", "c"}},
		"previous":              {doc.Find("ul").Prev("table").Length(), 1},
		"next until":            {doc.Find("h2").First().NextUntil("h2").Texts(), []string{"a", "b"}},
		"next all":              {doc.Find("h2").First().NextAll("p").Length(), 3},
		"siblings":              {doc.Find("li").First().Siblings().Texts(), []string{"2", "3"}},
		"has":                   {doc.Find("tr").Has("a").Length(), 2},
		"filter function": {doc.Find("li").FilterFunction(func(i int, s *html.Selection) bool {
			return i > 0 &&
				s.Text() != "2"
		}).Text(), "3"},
		"contents": {doc.Find("h1 + p").Contents().Eq(0).Name() +
			doc.Find("h1 + p").Contents().Eq(1).Name(), "#textb"},
		"text of contents":       {doc.Find("h1 + p").Contents().First().Text(), "All"},
		"parents":                {doc.Find("tr#a a").Parents("tr, table").Length(), 2},
		"remove":                 {parse(t, "<p>a<sup>1</sup>b<sup>2</sup>").Find("sup").Remove().Length(), 2},
		"not":                    {doc.Find("li").Not(".one").Text(), "2"},
		"is":                     {doc.Find("li").Last().Is("ul > .last"), true},
		"contains":               {doc.Find(`tr:contains("Fig") td:nth-child(2)`).Text(), "2.50"},
		"several alternatives":   {doc.Find("h2, h1").Texts(), []string{"Prices", "First", "Second"}},
		"within an ancestor":     {doc.Find("tbody").Find("table td a").Length(), 2},
		"nested roots":           {doc.Find("body, table, tr").Find("a[href]").Length(), 6},
		"text of a piece":        {html.Text("<p>Ten &lt; <i>twenty</i></p><p>x"), "Ten < twenty x"},
		"escape":                 {html.UnescapeString(html.EscapeString("<&>")), "<&>"},
		"empty selection's text": {doc.Find("video").Text(), ""},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	var walked []string
	doc.Find("li").Each(func(i int, s *html.Selection) { walked = append(walked, s.Text()) }).EachWithBreak(func(i int,
		s *html.Selection) bool {
		walked = append(walked, s.Text())
		return i < 1
	})
	if want := []string{"1", "2", "3", "1", "2"}; !slices.Equal(walked, want) {
		t.Errorf("Each and EachWithBreak saw %v, want %v", walked, want)
	}
	page := parse(t, "<p>a<sup>1</sup>b<sup>2</sup>")
	gone := page.Find("sup").Remove()
	if got := page.Text() + gone.Remove().Text() + page.Find("sup").Text(); got != "ab1 2" {
		t.Errorf("text %q after a removal", got)
	}
	inner, err := doc.Find("tr#b td").Html()
	outer, err2 := doc.Find("li").Eq(1).OuterHtml()
	if inner != `<a href="https://else.example/fig">Fig</a>` || outer != "<li>2</li>" || errors.Join(err, err2) != nil {
		t.Errorf("markup %q, %q, %v", inner, outer, errors.Join(err, err2))
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	doc := parse(t, shop)
	rows := [][]string{{"Name", "Price", ""}, {"Pear", "1.20", "new"}, {"Fig", "2.50", ""},
		{"Sold out", "Sold out", "x"}, {"Nut", "3", "x"}}
	if diff := cmp.Diff(rows, doc.Table()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	records := []map[string]string{{"Name": "Pear", "Price": "1.20", "column 3": "new"},
		{"Name": "Fig", "Price": "2.50", "column 3": ""},
		{"Name": "Sold out", "Price": "Sold out", "column 3": "x"}, {"Name": "Nut", "Price": "3", "column 3": "x"}}
	if diff := cmp.Diff(records, doc.Find("table.prices").Records()); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	if doc.Find("ul").Table() != nil || doc.Find("ul").Records() != nil {
		t.Error("there is a table in a list")
	}
	for _, c := range []struct {
		name, page string
		rows       [][]string
		records    []map[string]string
	}{
		{"spans end with their section", "<table><tbody><tr><td rowspan=9>a<td>b</tbody><tbody><tr><td>c</table>",
			[][]string{{"a", "b"}, {"c", ""}}, []map[string]string{{"a": "c", "b": ""}}},
		{"rowspan 0", "<table><tr><td rowspan=0>a<td>b<tr><td>c<tr><td>d</table>",
			[][]string{{"a", "b"}, {"a", "c"}, {"a", "d"}}, []map[string]string{{"a": "a", "b": "c"},
				{"a": "a", "b": "d"}}},
		{"two rows of head, one again",
			"<table><tr><th colspan=2>All<tr><th>a<th>a<tr><th>r<td>1<tr><th>a<th>a<tr><th>s<td>2</table>",
			[][]string{{"All", "All"}, {"a", "a"}, {"r", "1"}, {"a", "a"}, {"s", "2"}},
			[]map[string]string{{"a": "r", "a 2": "1"}, {"a": "s", "a 2": "2"}}},
		{"a table in a cell", "<table><tr><td>a<td><table><tr><td>x<td>y</table></table>", [][]string{{"a", "x y"}},
			[]map[string]string{}},
		{"spans that are no numbers", "<table><tr><td colspan=-1>a<td rowspan=x colspan='2;'>b</table>",
			[][]string{{"a", "b", "b"}}, []map[string]string{}},
		{"no rows", "<table></table>", [][]string{}, nil},
	} {
		doc := parse(t, c.page)
		if diff := cmp.Diff(c.rows, doc.Table()) + cmp.Diff(c.records, doc.Records()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestLinks(t *testing.T) {
	t.Parallel()
	doc := parse(t, shop)
	want := []html.Link{{"Pear", "https://shop.example/en/pear?x=1&y=2"}, {"Fig", "https://else.example/fig"},
		{"up", "https://shop.example/up"}}
	if diff := cmp.Diff(want, doc.Links("https://shop.example/de/index.html")); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
	if got := doc.Find("#b a").Links("https://shop.example/"); len(got) != 1 {
		t.Errorf("a selected link is %v", got)
	}
	if got := parse(t, "<a href='/x'>x</a>").Links(":"); len(got) != 0 {
		t.Errorf("without a base there is %v", got)
	}
}

func TestParseTakes(t *testing.T) {
	t.Parallel()
	for _, page := range []any{"<p>ä", []byte("\ufeff<p>ä"), strings.NewReader("<p>ä")} {
		if got := parse(t, page).Text(); got != "ä" {
			t.Errorf("%T: text %q", page, got)
		}
	}
	if got := parse(t, "<p>a\xffb\x00c").Text(); got != "a\ufffdbc" {
		t.Errorf("bytes that are no text: %q", got)
	}
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		page any
		want string
	}{
		"number":   {7.0, "not float64"},
		"nothing":  {nil, "not <nil>"},
		"reader":   {iotest.ErrReader(broken), "broken"},
		"bytes":    {strings.Repeat("x", 33<<20), "larger than 32 MiB"},
		"a stream": {io.LimitReader(endless{}, 40<<20), "larger than 32 MiB"},
		"tags":     {strings.Repeat("<p>", 1<<20+1), "tags"},
		"depth":    {strings.Repeat("<div>", 600), "cannot be read"},
	} {
		if _, err := html.Parse(c.page); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }
