package html

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/recurgent/html/internal/html"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent/html/internal/html/atom"
)

// maxCells bounds the cells of a table after spans are expanded.
const maxCells = 1 << 20

// maxColspan is the largest colspan that browsers accept.
const maxColspan = 1000

// Table returns the cell texts, row by row, of the first table that is selected or lies within the selection, or nil if
// there is none. All rows have the same length: a cell that spans several columns or rows is repeated in each, and
// missing cells are "". A table within a cell counts as text.
func (s *Selection) Table() [][]string {
	g := s.grid()
	if g == nil {
		return nil
	}
	return g.cells
}

// Records returns the rows of Table as maps keyed by column name, or nil if there is no table. The names are the texts
// of the last row of the head, which is thead or the leading rows that have only th cells; without a head, they are
// those of the first row. A column without a name is called "column 3", a repeated name "price 2". Later rows that have
// only th cells are left out.
func (s *Selection) Records() []map[string]string {
	g := s.grid()
	if g == nil || len(g.cells) == 0 {
		return nil
	}
	head := 0
	for head+1 < len(g.cells) && g.head[head+1] && g.head[head] {
		head++
	}
	names := columnNames(g.cells[head])
	out := []map[string]string{}
	for i := head + 1; i < len(g.cells); i++ {
		if g.head[i] {
			continue
		}
		record := make(map[string]string, len(names))
		for k, name := range names {
			record[name] = g.cells[i][k]
		}
		out = append(out, record)
	}
	return out
}

// columnNames returns unique names for the columns with these head texts.
func columnNames(texts []string) []string {
	names := make([]string, len(texts))
	used := map[string]bool{}
	for i, text := range texts {
		if text == "" {
			text = fmt.Sprintf("column %d", i+1)
		}
		name := text
		for k := 2; used[name]; k++ {
			name = fmt.Sprintf("%s %d", text, k)
		}
		used[name] = true
		names[i] = name
	}
	return names
}

// A grid is a table with its spans expanded.
type grid struct {
	cells [][]string
	head  []bool // whether the row is in thead or has only th cells
	count int
}

// A span is a cell that extends into later rows.
type span struct {
	text string
	rows int // later rows to fill; never reaches 0 for rowspan="0", which starts below 0
}

// grid returns the first table with its spans expanded and its rows padded to one length, or nil.
func (s *Selection) grid() *grid {
	table := s.Filter("table").First()
	if table.Length() == 0 {
		table = s.Find("table").First()
	}
	if table.Length() == 0 {
		return nil
	}
	g := &grid{cells: [][]string{}}
	g.rows(s.page, table.nodes[0], map[int]span{})
	width := 0
	for _, row := range g.cells {
		width = max(width, len(row))
	}
	for i, row := range g.cells {
		g.add(width - len(row))
		g.cells[i] = append(row, make([]string, width-len(row))...)
	}
	return g
}

// rows adds the rows below a table or section. down has the spans that reach into the next row, by column.
func (g *grid) rows(page *document, within *html.Node, down map[int]span) {
	for n := within.FirstChild; n != nil; n = n.NextSibling {
		switch n.DataAtom {
		case atom.Thead, atom.Tbody, atom.Tfoot:
			// A rowspan ends with its section.
			g.rows(page, n, map[int]span{})
		case atom.Tr:
			g.row(page, n, down)
		}
	}
}

// row adds one row. An empty row that no span reaches into is dropped.
func (g *grid) row(page *document, tr *html.Node, down map[int]span) {
	var row []string
	fill := func() { // adds the cells that extend into this row
		for {
			over, ok := down[len(row)]
			if !ok {
				return
			}
			if over.rows--; over.rows == 0 {
				delete(down, len(row))
			} else {
				down[len(row)] = over
			}
			g.add(1)
			row = append(row, over.text)
		}
	}
	head, own := true, 0
	for n := tr.FirstChild; n != nil; n = n.NextSibling {
		if n.DataAtom != atom.Td && n.DataAtom != atom.Th {
			continue
		}
		own++
		head = head && n.DataAtom == atom.Th
		fill()
		text := (&Selection{[]*html.Node{n}, page}).Text()
		rows := spanOf(n, "rowspan", 65534)
		for range min(max(spanOf(n, "colspan", maxColspan), 1), maxColspan) {
			if rows != 1 {
				// A rowspan of 0 extends to the end of the section: rows is -1 and counts down without reaching 0.
				down[len(row)] = span{text, rows - 1}
			}
			g.add(1)
			row = append(row, text)
		}
	}
	fill()
	if own == 0 && len(row) == 0 {
		return
	}
	g.cells = append(g.cells, row)
	g.head = append(g.head, own > 0 && head || tr.Parent.DataAtom == atom.Thead)
}

// add counts cells, and panics over maxCells, before the cells are allocated.
func (g *grid) add(cells int) {
	if g.count += cells; g.count > maxCells {
		panic(fmt.Errorf("html: the table has more than %d cells; find its rows and cells instead", maxCells))
	}
}

// spanOf returns a span attribute as browsers read it, at most most. It is 1 if the attribute is missing or not a
// number.
func spanOf(n *html.Node, name string, most int) int {
	v, ok := attr(n, name)
	if !ok {
		return 1
	}
	v = strings.TrimSpace(v)
	end := 0
	for end < len(v) && end < 6 && v[end] >= '0' && v[end] <= '9' {
		end++
	}
	k, err := strconv.Atoi(v[:end])
	if err != nil {
		return 1
	}
	return min(k, most)
}

// A Link is a hyperlink of a page.
type Link struct {
	Text string `json:"text"`
	URL  string `json:"url"`
}

// Links returns the http and https links that are selected or lie within the selection, in document order, as absolute
// URLs. base is the URL of the page; a base element in the page overrides it. Links to a fragment of the page itself
// are left out.
func (s *Selection) Links(base string) []Link {
	at, err := url.Parse(base)
	if err != nil {
		at = &url.URL{}
	}
	page := &Selection{[]*html.Node{s.page.root}, s.page}
	if href, ok := page.Find("base[href]").Attr("href"); ok {
		if u, err := at.Parse(strings.TrimSpace(href)); err == nil {
			at = u
		}
	}
	out := []Link{}
	seen := map[*html.Node]bool{}
	for _, list := range []*Selection{s.Filter("a[href], area[href]"), s.Find("a[href], area[href]")} {
		list.Each(func(_ int, a *Selection) {
			href := strings.TrimSpace(a.AttrOr("href", ""))
			u, err := at.Parse(href)
			if err != nil || seen[a.nodes[0]] || strings.HasPrefix(href, "#") || u.Host == "" || u.Scheme != "http" &&
				u.Scheme != "https" {
				return
			}
			seen[a.nodes[0]] = true
			out = append(out, Link{a.Text(), u.String()})
		})
	}
	return out
}
