package gate

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
)

// aliases finds the variables that hold history or context, following plain assignments until it finds no more.
func (ff *factFinder) aliases() {
	// A variable may be assigned before its source is found to be an alias, so passes repeat until nothing changes.
	for again := true; again; {
		again = false
		mark := func(id ast.Expr, from ast.Expr) {
			x, ok := id.(*ast.Ident)
			if !ok {
				return
			}
			obj := ff.c.info.ObjectOf(x)
			if obj == nil {
				return
			}
			if ff.isHistory(from) && !ff.history[obj] {
				ff.history[obj], again = true, true
			}
			if ff.isContext(from) && !ff.context[obj] {
				ff.context[obj], again = true, true
			}
		}
		ast.Inspect(ff.c.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for i, l := range n.Lhs {
					if len(n.Lhs) == len(n.Rhs) {
						mark(l, n.Rhs[i])
					}
				}
				if len(n.Lhs) == 2 && len(n.Rhs) == 1 && !isCall(n.Rhs[0]) { // v, ok := x.([]any)
					mark(n.Lhs[0], n.Rhs[0])
				}
			case *ast.ValueSpec:
				for i, l := range n.Names {
					if len(n.Values) == len(n.Names) {
						mark(l, n.Values[i])
					}
				}
				if len(n.Names) == 2 && len(n.Values) == 1 && !isCall(n.Values[0]) {
					mark(n.Names[0], n.Values[0])
				}
			case *ast.CallExpr:
				ff.markParams(n, mark)
			}
			return true
		})
	}
}

// markParams marks the parameters of the program's own functions that receive history or context.
func (ff *factFinder) markParams(call *ast.CallExpr, mark func(id, from ast.Expr)) {
	id, ok := ast.Unparen(call.Fun).(*ast.Ident)
	if !ok {
		return
	}
	fn, ok := ff.c.info.Uses[id].(*types.Func)
	if !ok || fn.Pkg() != ff.c.pkg {
		return
	}
	for _, d := range ff.c.file.Decls {
		decl, ok := d.(*ast.FuncDecl)
		if !ok || ff.c.info.Defs[decl.Name] != fn {
			continue
		}
		i := 0
		for _, field := range decl.Type.Params.List {
			for _, name := range field.Names {
				if i < len(call.Args) {
					mark(name, call.Args[i])
				}
				i++
			}
		}
	}
}

// isCall reports whether an expression is a call.
func isCall(e ast.Expr) bool {
	_, ok := ast.Unparen(e).(*ast.CallExpr)
	return ok
}

// isHistory reports whether an expression is a list of history records: from a method of the call, from the context, or
// from a variable or slice of one of these.
func (ff *factFinder) isHistory(e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.TypeAssertExpr:
		return ff.isHistory(e.X)
	case *ast.IndexExpr:
		key := ff.c.info.Types[e.Index].Value
		return ff.isContext(e.X) && key != nil && key.Kind() == constant.String &&
			constant.StringVal(key) == report.ContextHistory
	case *ast.Ident:
		obj := ff.c.info.ObjectOf(e)
		return obj != nil && ff.history[obj]
	case *ast.SliceExpr:
		return ff.isHistory(e.X)
	case *ast.CallExpr:
		if s, ok := ast.Unparen(e.Fun).(*ast.SelectorExpr); ok {
			if typ, m := ff.hostMember(s); typ == "Call" && strings.HasPrefix(m, "History") {
				return true
			}
			if pkg, _ := ff.packageCall(e); pkg == "slices" && len(e.Args) > 0 {
				return ff.isHistory(e.Args[0])
			}
		}
	}
	return false
}

// isContext reports whether an expression is the context or an alias of it.
func (ff *factFinder) isContext(e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		obj := ff.c.info.ObjectOf(e)
		return obj != nil && ff.context[obj]
	case *ast.SelectorExpr:
		typ, m := ff.hostMember(e)
		return typ == "Call" && m == "Context"
	}
	return false
}

// historyQueries records how the program reads its history.
func (ff *factFinder) historyQueries() {
	ast.Inspect(ff.c.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SliceExpr:
			if ff.isHistory(n.X) {
				ff.patterns["slice"] = true
			}
		case *ast.IndexExpr:
			if ff.isHistory(n.X) {
				ff.patterns["slice"] = true
			}
		case *ast.CallExpr:
			ff.historyCall(n)
		case *ast.RangeStmt:
			if ff.isHistory(n.X) {
				ff.historyLoop(n.Body)
			}
		case *ast.ForStmt:
			if n.Cond != nil && ff.mentionsHistory(n) {
				ff.historyLoop(n.Body)
			}
		}
		return true
	})
}

// mentionsHistory reports whether a for loop counts over history: its condition or init statement calls a function on
// it, such as len.
func (ff *factFinder) mentionsHistory(f *ast.ForStmt) bool {
	found := false
	inspect := func(n ast.Node) {
		if n == nil {
			return
		}
		ast.Inspect(n, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && len(call.Args) == 1 && ff.isHistory(call.Args[0]) {
				found = true
			}
			return true
		})
	}
	inspect(f.Cond)
	if f.Init != nil {
		inspect(f.Init)
	}
	return found
}

// historyCall records calls on a list of records that count or filter it.
func (ff *factFinder) historyCall(call *ast.CallExpr) {
	if len(call.Args) == 0 || !ff.isHistory(call.Args[0]) {
		return
	}
	if id, ok := ast.Unparen(call.Fun).(*ast.Ident); ok {
		if b, ok := ff.c.info.Uses[id].(*types.Builtin); ok && b.Name() == "len" {
			ff.patterns["count"] = true
		}
	}
	if pkg, name := ff.packageCall(call); pkg == "slices" {
		if strings.HasSuffix(name, "Func") && !strings.HasPrefix(name, "Sort") {
			ff.patterns["filter"] = true
		}
	}
}

// historyLoop records what a loop over records does with them.
func (ff *factFinder) historyLoop(body *ast.BlockStmt) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt, *ast.SwitchStmt:
			ff.patterns["filter"] = true
		case *ast.IncDecStmt:
			if _, ok := ast.Unparen(n.X).(*ast.IndexExpr); ok {
				ff.patterns["group"] = true
			}
			ff.patterns["count"] = true
		case *ast.AssignStmt:
			for _, l := range n.Lhs {
				if ix, ok := ast.Unparen(l).(*ast.IndexExpr); ok {
					if _, isMap := ff.c.info.TypeOf(ix.X).Underlying().(*types.Map); isMap {
						ff.patterns["group"] = true
					}
				}
			}
			if n.Tok == token.ADD_ASSIGN {
				ff.patterns["count"] = true
			}
		case *ast.CallExpr:
			if id, ok := ast.Unparen(n.Fun).(*ast.Ident); ok && id.Name == "append" && len(n.Args) > 1 {
				if _, whole := ast.Unparen(n.Args[1]).(*ast.Ident); !whole {
					ff.patterns["map"] = true
				}
			}
		}
		return true
	})
}
