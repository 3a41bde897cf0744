package fix

import (
	"fmt"
	"go/ast"
	"go/scanner"
	"go/token"
	"slices"
	"strings"
)

// An edit replaces the bytes [from, to) with text.
type edit struct {
	from, to int
	text     string
}

// A mark is a note about a position in the text. While the edits of a round are pending, at is -1 minus the position
// for the notes of that round.
type mark struct {
	at   int
	text string
}

// fix records edits with their note, either all or none. It returns false if an edit overlaps an earlier one; the next
// round will try again. An empty note means that the edits belong to another fix.
func (m *fixer) fix(note string, edits ...edit) bool {
	if len(edits) == 0 {
		return false
	}
	// Two insertions at the same place count as an overlap, since their order would be arbitrary.
	for i, e := range edits {
		for _, o := range slices.Concat(m.edits, edits[:i]) {
			if e.from < o.to && o.from < e.to || e.from == o.from {
				return false
			}
		}
	}
	m.edits = append(m.edits, edits...)
	if note != "" {
		first := slices.MinFunc(edits, func(a, b edit) int { return a.from - b.from })
		m.notes = append(m.notes, mark{-1 - first.from, note})
	}
	return true
}

// apply carries out the edits of the round and moves the marks to the new positions.
func (m *fixer) apply() {
	slices.SortFunc(m.edits, func(a, b edit) int { return a.from - b.from })
	var b strings.Builder
	last := 0
	moved := make([]int, len(m.notes))
	for i, n := range m.notes {
		moved[i] = n.at
		if n.at < 0 { // from this round
			moved[i] = -1 - n.at
		}
	}
	shift := 0
	at := slices.Clone(moved)
	for _, e := range m.edits {
		b.WriteString(m.src[last:e.from])
		b.WriteString(e.text)
		last = e.to
		delta := len(e.text) - (e.to - e.from)
		for i, p := range at {
			if p >= e.to && p > e.from {
				moved[i] += delta
			} else if p > e.from { // inside the replaced text
				moved[i] = e.from + shift
			}
		}
		shift += delta
	}
	b.WriteString(m.src[last:])
	m.src = b.String()
	for i := range m.notes {
		m.notes[i].at = min(moved[i], len(m.src))
	}
}

// offset returns the byte offset of a position of the tree.
func (m *fixer) offset(p token.Pos) int { return m.fset.PositionFor(p, false).Offset }

// text returns the source of a node.
func (m *fixer) text(n ast.Node) string { return m.src[m.offset(n.Pos()):m.offset(n.End())] }

// replace returns the edit that replaces a node.
func (m *fixer) replace(n ast.Node, text string) edit {
	return edit{m.offset(n.Pos()), m.offset(n.End()), text}
}

// before returns the edit that inserts text before a node.
func (m *fixer) before(n ast.Node, text string) edit {
	at := m.offset(n.Pos())
	return edit{at, at, text}
}

// after returns the edit that inserts text after a node.
func (m *fixer) after(n ast.Node, text string) edit {
	at := m.offset(n.End())
	return edit{at, at, text}
}

// end appends text to the file.
func (m *fixer) end(text string) edit {
	return edit{len(m.src), len(m.src), strings.TrimRight("\n\n"+text, "\n") + "\n"}
}

// line deletes a statement or an import: the whole line if nothing else is on it, otherwise with the semicolon after
// it.
func (m *fixer) line(n ast.Node) edit {
	from, to := m.offset(n.Pos()), m.offset(n.End())
	begin := strings.LastIndexByte(m.src[:from], '\n') + 1
	if strings.TrimSpace(m.src[begin:from]) == "" {
		if end := strings.IndexByte(m.src[to:], '\n'); end >= 0 && strings.Trim(m.src[to:to+end], " \t\r;") == "" {
			return edit{begin, to + end + 1, ""}
		}
	}
	if rest := strings.TrimLeft(m.src[to:], " \t"); strings.HasPrefix(rest, ";") {
		to = len(m.src) - len(rest) + 1
	}
	return edit{from, to, ""}
}

// unused returns the first of the names that the file does not use, or the first name with a number.
func (m *fixer) unused(names ...string) string {
	used := map[string]bool{}
	ast.Inspect(m.file, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			used[id.Name] = true
		}
		return true
	})
	for _, n := range names {
		if !used[n] {
			return n
		}
	}
	for i := 2; ; i++ {
		if n := fmt.Sprint(names[0], i); !used[n] {
			return n
		}
	}
}

// linesAt maps marks in the text before formatting to lines of the text after. It counts tokens: formatting keeps all
// of them except commas and semicolons, and keeps their order except that of imports.
func linesAt(before, after string, marks []mark) []int {
	from, to := tokensOf(before), tokensOf(after)
	out := make([]int, len(marks))
	for i, n := range marks {
		k, _ := slices.BinarySearchFunc(from, n.at, func(t place, at int) int { return t.offset - at })
		out[i] = 1
		if k = min(k, len(to)-1); k >= 0 {
			out[i] = to[k].line
		}
	}
	return out
}

// A place is the position of a token.
type place struct{ offset, line int }

// tokensOf returns the positions of all tokens except commas and semicolons.
func tokensOf(src string) (out []place) {
	fset := token.NewFileSet()
	f := fset.AddFile("", -1, len(src))
	var s scanner.Scanner
	s.Init(f, []byte(src), nil, 0)
	for {
		pos, tok, _ := s.Scan()
		switch tok {
		case token.EOF:
			return out
		case token.COMMA, token.SEMICOLON:
		default:
			out = append(out, place{f.Offset(pos), f.PositionFor(pos, false).Line})
		}
	}
}
