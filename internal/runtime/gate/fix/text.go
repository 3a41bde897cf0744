package fix

import (
	"go/ast"
	"go/scanner"
	"go/token"
	"slices"
	"strings"
)

// wholeText repairs a text that is not one Go file: the package clause is missing or not first, or there are several
// files.
func (m *fixer) wholeText() {
	clauses, first := packageClauses(m.src)
	switch {
	case len(clauses) == 0 && first >= 0:
		m.fix("the package clause was missing", edit{0, 0, "package tool\n\n"})
	case len(clauses) > 1:
		m.join(clauses)
	case len(clauses) == 1 && first >= 0:
		m.fix("the package clause comes first", edit{0, len(m.src),
			m.src[clauses[0].from:] + "\n\n" + m.src[:clauses[0].from]})
	case len(clauses) == 1 && clauses[0].name != "tool" && m.begun():
		c := clauses[0]
		m.fix("", edit{c.nameAt, c.nameAt + len(c.name), "tool"})
	}
}

// begun reports whether something was fixed already, so that the text differs from the model's anyway.
func (m *fixer) begun() bool { return len(m.notes) > 0 }

var (
	// goKeywords are the keywords that start a declaration.
	goKeywords = []token.Token{token.IMPORT, token.FUNC, token.TYPE, token.VAR, token.CONST}
)

// A clause is a package clause.
type clause struct {
	from, to int // offsets of the clause
	name     string
	nameAt   int
}

// packageClauses returns the package clauses of the text, and the offset of its first token if that starts a
// declaration, or -1.
func packageClauses(src string) (out []clause, first int) {
	fset := token.NewFileSet()
	f := fset.AddFile("", -1, len(src))
	var s scanner.Scanner
	s.Init(f, []byte(src), nil, 0)
	first = -1
	depth, count := 0, 0
	var c *clause
	for {
		pos, tok, lit := s.Scan()
		at := f.Offset(pos)
		switch {
		case tok == token.EOF:
			return out, first
		case count == 0 && slices.Contains(goKeywords, tok):
			first = at
		case tok == token.LBRACE:
			depth++
		case tok == token.RBRACE:
			depth--
		case tok == token.PACKAGE && depth <= 0:
			c = &clause{from: at}
		case tok == token.IDENT && c != nil:
			c.to, c.name, c.nameAt = at+len(lit), lit, at
			out = append(out, *c)
			c = nil
		}
		count++
	}
}

// join merges several files that each parse into one: it drops the later package clauses and moves the imports to the
// first. It drops a file that imports the program as package tool, because that only shows how to use it.
func (m *fixer) join(clauses []clause) {
	var body, imports strings.Builder
	seen := map[string]bool{}
	for i, c := range clauses {
		end := len(m.src)
		if i+1 < len(clauses) {
			end = commentsBefore(m.src, clauses[i+1].from)
		}
		part := m.src[c.from:end]
		fset, file, err := m.checker.Parse(part)
		if err != nil {
			return
		}
		from := c.to - c.from
		for _, d := range file.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.IMPORT {
				from = fset.Position(g.End()).Offset
			}
		}
		if slices.ContainsFunc(file.Imports, func(spec *ast.ImportSpec) bool {
			return i > 0 &&
				importPath(spec) == "tool"
		}) {
			continue
		}
		for _, spec := range file.Imports {
			line := spec.Path.Value
			if spec.Name != nil {
				line = spec.Name.Name + " " + line
			}
			if !seen[line] {
				imports.WriteString(line + "\n")
			}
			seen[line] = true
		}
		body.WriteString("\n" + strings.TrimSpace(part[from:]) + "\n")
	}
	head := m.src[:commentsBefore(m.src, clauses[0].from)] + "package tool\n"
	if imports.Len() > 0 {
		head += "\nimport (\n" + imports.String() + ")\n"
	}
	m.fix("several files in one", edit{0, len(m.src), head + body.String()})
}

// commentsBefore returns the start of the comment lines directly before an offset.
func commentsBefore(src string, at int) int {
	for at > 0 {
		begin := strings.LastIndexByte(src[:at-1], '\n') + 1
		line := strings.TrimSpace(src[begin:at])
		if line != "" && !strings.HasPrefix(line, "//") {
			return at
		}
		at = begin
	}
	return at
}
