package gate

import (
	"go/ast"
	"go/constant"
	"go/types"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent/html"
)

// takeSelectors lists the methods of html.Selection whose arguments are selectors.
var takeSelectors = []string{"Find", "Filter", "Not", "Has", "Is", "Children", "Closest", "Next", "Prev", "NextAll",
	"NextUntil", "Siblings", "Parents"}

// selectorPolicy refuses constant selectors that are invalid. At run time they would end the run.
func (c *check) selectorPolicy() (refused *Refusal) {
	if !slices.ContainsFunc(c.pkg.Imports(), func(p *types.Package) bool { return p.Path() == allow.Page }) {
		return nil
	}
	ast.Inspect(c.file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || refused != nil {
			return refused == nil
		}
		s, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
		if !ok || !slices.Contains(takeSelectors, s.Sel.Name) {
			return true
		}
		method := c.info.Uses[s.Sel]
		if method == nil || method.Pkg() == nil || method.Pkg().Path() != allow.TruePath(allow.Page) {
			return true
		}
		for _, arg := range call.Args {
			v := c.info.Types[arg].Value
			if v == nil || v.Kind() != constant.String {
				continue
			}
			if err := html.CheckSelector(constant.StringVal(v)); err != nil {
				refused = c.refuse(invalidCode, arg.Pos(), err.Error(),
					"Write a CSS selector; :contains(\"text\"), :has(selector) and :not(selector) are known, those of jQuery are not.")
				return false
			}
		}
		return true
	})
	return refused
}

// pageHint lists the names of package html if pkg is that package. It returns "" otherwise.
func (c *check) pageHint(pkg string) string {
	for _, spec := range c.file.Imports {
		if path, _ := strconv.Unquote(spec.Path.Value); path == allow.Page && c.importName(spec) == pkg {
			if page, err := c.gate.lib.load(allow.Page); err == nil {
				return "The package has " + strings.Join(page.Scope().Names(), ", ") + ", and methods of a Selection."
			}
		}
	}
	return ""
}

// selectionHint lists the methods of a selection if the message reports one that it lacks. It returns "" otherwise.
func selectionHint(message string) string {
	if !strings.Contains(message, "html.Selection has no field or method") &&
		!strings.Contains(message, "html.Document has no field or method") {
		return ""
	}
	var names []string
	for m := range reflect.TypeFor[*html.Selection]().Methods() {
		names = append(names, m.Name)
	}
	return "A Selection has " + strings.Join(names, ", ") + "."
}
