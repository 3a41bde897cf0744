package fix

import (
	"fmt"
	"go/ast"
	"go/scanner"
	"go/token"
	"slices"
	"strings"
)

// An edit puts text in the place of some bytes.
type edit struct {
	from, to int
	text     string
}

// A mark is a note at a place of the text.
type mark struct {
	at   int
	text string
}

// fix makes edits with their note, all or none: what overlaps an earlier edit waits for the next round. With an empty note the edits are a part of
// another fix.
func (m *fixer) fix(note string, edits ...edit) bool {
	if len(edits) == 0 {
		return false
	}
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

// apply carries out the edits and moves the marks along.
func (m *fixer) apply() {
	slices.SortFunc(m.edits, func(a, b edit) int { return a.from - b.from })
	var b strings.Builder
	last := 0
	moved := make([]int, len(m.notes))
	for i, n := range m.notes {
		moved[i] = n.at
		if n.at < 0 { // of this round
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
			} else if p > e.from { // within what is replaced
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

// offset is a place of the tree as one of the text.
func (m *fixer) offset(p token.Pos) int { return m.fset.PositionFor(p, false).Offset }

func (m *fixer) text(n ast.Node) string { return m.src[m.offset(n.Pos()):m.offset(n.End())] }

func (m *fixer) replace(n ast.Node, text string) edit {
	return edit{m.offset(n.Pos()), m.offset(n.End()), text}
}

func (m *fixer) before(n ast.Node, text string) edit {
	at := m.offset(n.Pos())
	return edit{at, at, text}
}

func (m *fixer) after(n ast.Node, text string) edit {
	at := m.offset(n.End())
	return edit{at, at, text}
}

// end adds text at the end of the file.
func (m *fixer) end(text string) edit {
	return edit{len(m.src), len(m.src), strings.TrimRight("\n\n"+text, "\n") + "\n"}
}

// line deletes a statement or an import with its line, where nothing else is on it, or with the semicolon behind it.
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

// unused returns a name that the file has nowhere.
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

// linesAt returns the lines in the formatted text of marks in the text before. Formatting keeps all tokens but commas and semicolons, and their order, but for
// that of imports.
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

// A place is where a token stands.
type place struct{ offset, line int }

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
