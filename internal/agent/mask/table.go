package mask

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// Document masks the beginning and the end of a file as Text does, and also the cells, elements and attributes that
// are secrets by the name of their column, element or attribute. The columns of both parts are those of the beginning.
// A row, an element or a value that cannot be read as a whole is masked as far as it goes.
func (e Ending) Document(beginning, end string) (first, last string) {
	p := pass{rules: e.rules, until: e.until, document: true}
	masked, _ := p.text([]byte(beginning))
	first = string(masked)
	p.within = p.tables
	masked, _ = p.text([]byte(end))
	return first, string(masked)
}

// A table is a header whose columns include secrets.
type table struct {
	between string  // separator of its cells
	columns []match // by the names of the columns
}

// separators of cells. The last one occurs in no text: such a table has a single column.
var separators = []string{";", "\t", ",", "|", ":", "~", "^", "\x1f", "  ", "\x00"}

const oneColumn = "\x00"

// lastHeader is the number of rows among which a header may follow other rows of its width.
const lastHeader = 50

// findTables masks the secret columns of tables, and the second cell of rows whose first cell names a secret.
func (p *pass) findTables() {
	p.tables = nil
	for _, between := range separators {
		if between != oneColumn && !bytes.Contains(p.b, []byte(between)) {
			continue
		}
		if p.ends(len(p.b)) {
			return
		}
		r := rows{p: p, between: between, widths: map[int]bool{}}
		for i := range p.within {
			if p.within[i].between == between {
				r.head, r.cut = &p.within[i], true
			}
		}
		for r.next() {
			r.mask()
		}
		if r.head != nil {
			p.tables = append(p.tables, *r.head)
		}
	}
}

// rows reads the rows of a text as those of a table with one separator.
type rows struct {
	p        *pass
	between  string
	from, to int    // of the row, without its line end
	after    int    // the next row
	cells    []span // trimmed
	cut      bool   // the text is the end of a table, where a quotation mark may close a cell that began before
	torn     bool   // the row has a quotation mark that does not close
	head     *table
	widths   map[int]bool // of the rows so far
	n        int
}

// next reads the next row that is not blank.
func (r *rows) next() bool {
	for r.after < len(r.p.b) {
		r.read()
		if len(r.cells) > 0 {
			r.n++
			return true
		}
	}
	return false
}

// read reads a row. Blank cells at its end do not count.
func (r *rows) read() {
	b := r.p.b
	r.from, r.cells, r.torn = r.after, r.cells[:0], false
	filled := 0
	for at := r.from; ; {
		at = r.skipSpaces(at)
		end := r.cellEnd(at)
		r.cells = append(r.cells, inner(b, at, end))
		if c := r.cells[len(r.cells)-1]; c.from < c.to {
			filled = len(r.cells)
		}
		if end == len(b) || !bytes.HasPrefix(b[end:], []byte(r.between)) {
			r.to, r.after = end, min(end+1, len(b))
			break
		}
		at = end + len(r.between)
	}
	r.cells = r.cells[:filled]
}

func (r *rows) skipSpaces(at int) int {
	for at < len(r.p.b) && r.p.b[at] == ' ' {
		at++
	}
	return at
}

// cellEnd returns the end of the cell at i: its separator, its line end, or the end of the text.
func (r *rows) cellEnd(i int) int {
	b := r.p.b
	if i < len(b) && b[i] == '"' {
		within := b
		if r.cut {
			within = b[:endOfLine(b, i)]
		}
		if end := closingQuote(within, i+1); end > 0 {
			i = end
		} else {
			i, r.torn = len(within), true
		}
	}
	for i < len(b) && b[i] != '\n' && b[i] != '\r' && !bytes.HasPrefix(b[i:], []byte(r.between)) {
		i++
	}
	return i
}

// closingQuote returns the index after the quotation mark that closes a cell, or 0. A doubled mark stands for itself.
func closingQuote(b []byte, i int) int {
	for {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return 0
		}
		if i += n + 1; i == len(b) || b[i] != '"' {
			return i
		}
		i++
	}
}

func endOfLine(b []byte, i int) int {
	if n := bytes.IndexAny(b[i:], "\r\n"); n >= 0 {
		return i + n
	}
	return len(b)
}

// inner returns the bounds of what a cell holds, without quotation marks, brackets and spaces around it.
func inner(b []byte, from, to int) span {
	const around = " \t\"'`()[]{}*:"
	for from < to && bytes.IndexByte([]byte(around), b[from]) >= 0 {
		from++
	}
	for from < to && bytes.IndexByte([]byte(around), b[to-1]) >= 0 {
		to--
	}
	return span{from, to, Masked}
}

// mask masks the secrets of the row, or takes it for a header.
func (r *rows) mask() {
	if bytes.HasPrefix(r.p.b[r.from:r.to], []byte("sep=")) { // a spreadsheet's note of its separator
		r.n--
		return
	}
	first := !r.widths[len(r.cells)]
	r.widths[len(r.cells)] = true
	if columns := r.header(first); columns != nil {
		r.head = &table{r.between, columns}
		return
	}
	switch {
	case r.head == nil:
	case r.torn || len(r.cells) > len(r.head.columns) || r.columns() < len(r.head.columns):
		r.maskRagged()
		return
	default:
		for i, c := range r.cells {
			r.p.secret(r.head.columns[i], c)
		}
	}
	if r.between != ":" && len(r.cells) > 1 && !r.prose() { // assignments have been masked
		r.p.secret(r.p.nameOf(r.cells[0]), r.cells[1])
	}
}

// maskRagged masks a row whose cells may be in any column.
func (r *rows) maskRagged() {
	how := slices.Max(r.head.columns)
	if how == always {
		r.p.secret(how, inner(r.p.b, r.from, r.to))
		return
	}
	for _, c := range r.cells {
		r.p.secret(how, c)
	}
}

// columns returns the number of cells with the blank ones at the end.
func (r *rows) columns() int {
	if r.between == "  " {
		return len(r.cells)
	}
	last := r.from
	if len(r.cells) > 0 {
		last = r.cells[len(r.cells)-1].to
	}
	return len(r.cells) + bytes.Count(r.p.b[last:r.to], []byte(r.between))
}

// header returns the columns of a header with secrets, or nil for another row. A header is the first row of its width,
// or one of the first rows, of names alone. A row of two cells that begins with the name of a secret may assign it.
func (r *rows) header(first bool) []match {
	if r.torn || r.prose() || (r.between == oneColumn) != (len(r.cells) == 1) || r.n > lastHeader {
		return nil
	}
	if r.between == oneColumn && (r.n > 1 || bytes.Contains(r.p.b[r.from:r.to], []byte("  ")) ||
		len(bytes.Fields(r.p.b[r.from:r.to])) > 2) {
		return nil // a line of a text
	}
	var columns []match
	secret := -1
	for i, c := range r.cells {
		if !nameLike(r.p.b[c.from:c.to]) || r.between == ":" && c.from > 0 && r.p.b[c.from-1] == ' ' {
			return nil
		}
		columns = append(columns, r.p.nameOf(c))
		if columns[i] != never {
			secret = i
		}
	}
	if secret < 0 || !first && secret == 0 {
		return nil
	}
	if second := r.cells[min(1, len(r.cells)-1)]; len(r.cells) == 2 && secret == 0 &&
		bytes.ContainsAny(r.p.b[second.from:second.to], "0123456789") {
		return nil
	}
	return columns
}

// prose reports whether the row is the end of a sentence.
func (r *rows) prose() bool {
	row := r.p.b[r.from:r.to]
	return bytes.HasSuffix(row, []byte(".")) && bytes.Contains(row, []byte(", "))
}

// nameOf returns the verdict on a value under the name that a cell or an element holds.
func (p *pass) nameOf(c span) match {
	if name := p.b[c.from:c.to]; nameLike(name) {
		return p.rules.match(name)
	}
	return never
}

// nameLike reports whether a text may be the name of a column: a few words without punctuation.
func nameLike(b []byte) bool {
	const longest, words = 60, 4
	if len(b) > longest || len(bytes.Fields(b)) > words {
		return false
	}
	for _, c := range b {
		if !nameChar(c) && c != ' ' && c < utf8.RuneSelf && bytes.IndexByte([]byte("()/#%$&+\r\n"), c) < 0 {
			return false
		}
	}
	return true
}

// secret masks a value under a name with that match.
func (p *pass) secret(how match, s span) {
	v := p.b[s.from:s.to]
	if how == never || len(v) == 0 || alreadyMasked(v) || literal(v) || how == looking && !p.opaque(v) {
		return
	}
	p.all = append(p.all, span{s.from, s.to, Masked})
}
