package html

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/recurgent/html/internal/html"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent/html/internal/html/atom"
)

// maxCells bounds a table with its spans written out.
const maxCells = 1 << 20

// maxColspan is what browsers take.
const maxColspan = 1000

// Table returns the texts of the first table that is selected or lies within the selection, row by row. All rows have the same length: a cell
// that spans several columns or rows stands in each of them, missing cells are "". Tables within cells count as text. nil when there is no table.
func (s *Selection) Table() [][]string {
	g := s.grid()
	if g == nil {
		return nil
	}
	return g.cells
}

// Records returns the rows of Table as maps by column name. The names are the texts of the last row of the table's head, which is thead or the
// rows at the top with nothing but th cells, else of its first row. A column without a name is "column 3", a name that comes again "price 2".
// Later rows with nothing but th cells are left out.
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

// A grid is a table with its spans written out.
type grid struct {
	cells [][]string
	head  []bool // rows of thead, and those with nothing but th cells
	count int
}

// A span is a cell that reaches down into further rows.
type span struct {
	text string
	rows int // that are still to come
}

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

func (g *grid) rows(page *document, within *html.Node, down map[int]span) {
	for n := within.FirstChild; n != nil; n = n.NextSibling {
		switch n.DataAtom {
		case atom.Thead, atom.Tbody, atom.Tfoot:
			g.rows(page, n, map[int]span{}) // spans end with their section
		case atom.Tr:
			g.row(page, n, down)
		}
	}
}

func (g *grid) row(page *document, tr *html.Node, down map[int]span) {
	var row []string
	fill := func() { // the cells that reach down into this row
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
				down[len(row)] = span{text, rows - 1} // 0 reaches to the end of the section: below 0 it never ends
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

func (g *grid) add(cells int) {
	if g.count += cells; g.count > maxCells {
		panic(fmt.Errorf("html: the table has more than %d cells; find its rows and cells instead", maxCells))
	}
}

// spanOf returns a cell's span as browsers read it: 1 where it is no number.
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

// Links returns the http and https links that are selected or lie within the selection, in the page's order, as absolute URLs: base is the URL of the
// page, and counts unless the page names another in its base element. Links to a place in the page itself are left out.
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
