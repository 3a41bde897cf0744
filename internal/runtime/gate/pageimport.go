package gate

import (
	"go/ast"
	"slices"
	"strconv"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
)

// choosePage corrects a program that imports "html" but means allow.Page, or that imports both under one name.
// allow.Page has all that "html" has.
func (c *check) choosePage() {
	var plain, page *ast.ImportSpec
	for _, spec := range c.file.Imports {
		switch path, _ := strconv.Unquote(spec.Path.Value); {
		case spec.Name != nil && spec.Name.Name != "html":
		case path == "html":
			plain = spec
		case path == allow.Page:
			page = spec
		}
	}
	switch {
	case plain == nil || plain.Name != nil:
	case page != nil:
		c.replaceImport(plain, "_ "+plain.Path.Value)
		plain.Name = &ast.Ident{NamePos: plain.Path.Pos(), Name: "_"}
	case c.meansPage():
		c.replaceImport(plain, strconv.Quote(allow.Page))
		plain.Path.Value = strconv.Quote(allow.Page)
	}
}

// replaceImport replaces the path of an import by text in the source. Positions in the tree do not change.
func (c *check) replaceImport(spec *ast.ImportSpec, text string) {
	at := c.fset.PositionFor(spec.Pos(), false).Offset
	c.source = c.source[:at] + text + c.source[at+len(spec.Path.Value):]
}

// meansPage reports whether the program selects a name from html that only allow.Page has.
func (c *check) meansPage() bool {
	var names []string
	ast.Inspect(c.file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "html" && x.Obj == nil {
				names = append(names, s.Sel.Name)
			}
		}
		return true
	})
	if len(names) == 0 {
		return false
	}
	plain, err := c.gate.lib.load("html")
	if err != nil {
		return false
	}
	page, err := c.gate.lib.load(allow.Page)
	return err == nil && slices.ContainsFunc(names, func(name string) bool {
		return plain.Scope().Lookup(name) == nil &&
			page.Scope().Lookup(name) != nil
	})
}
