package residue

import (
	"go/ast"
	"go/token"
	"go/types"
)

// Libraries lend slices and printers to methods of programs for the time of a call, and share them among all callers.
// Write gets the pooled buffer of fmt.Fprint, which holds earlier output beyond its length, and the escape sequences of
// package xml. UnmarshalJSON gets the one shared text "null". A program may only read such a parameter, up to its
// length. It may only call methods of a fmt.State.

// declarations examines the methods that libraries call.
func (f *finder) declarations(file *ast.File) {
	for _, d := range file.Decls {
		fun, ok := d.(*ast.FuncDecl)
		if !ok || fun.Recv == nil {
			continue
		}
		switch name := fun.Name.Name; name {
		case "Read":
			f.reader = true
		case "AppendText", "AppendBinary": // these append to buffers of encoders
			f.found = true
		case "Format", "Scan", "Write", "UnmarshalJSON":
			f.lends = true
			if params := f.info.Defs[fun.Name].Type().(*types.Signature).Params(); params.Len() == 1 {
				// For UnmarshalJSON, the bytes beyond the length are the program's own.
				f.lent[params.At(0)] = name == "Write"
			}
		}
	}
}

// parameter examines the use of a variable that may be lent.
func (f *finder) parameter(id *ast.Ident) {
	v, ok := f.info.Uses[id].(*types.Var)
	if !ok {
		return
	}
	if behind, ok := f.lent[v]; ok {
		f.found = f.found || !f.onlyReads(len(f.path)-1, behind)
	}
	if name := nameOf(v.Type()); name == "fmt.State" || name == "fmt.ScanState" {
		f.found = f.found || !f.called(v)
	}
}

// onlyReads reports whether the slice at that index of the path is only read. If behind is set, it must not be read
// beyond its length.
func (f *finder) onlyReads(at int, behind bool) bool {
	e := f.path[at]
	switch p := f.path[at-1].(type) {
	case *ast.ParenExpr:
		return f.onlyReads(at-1, behind)
	case *ast.SliceExpr:
		return p.X != e || (!behind || p.High == nil) && f.onlyReads(at-1, behind)
	case *ast.IndexExpr:
		return p.X != e || f.onlyValue(at-1)
	case *ast.RangeStmt:
		return p.X == e
	case *ast.BinaryExpr:
		return true
	case *ast.CallExpr:
		return f.onlyReadBy(p, e, at, behind)
	}
	return false
}

// onlyValue reports whether the element at that index of the path is neither assigned to nor has its address taken.
func (f *finder) onlyValue(at int) bool {
	switch p := f.path[at-1].(type) {
	case *ast.ParenExpr:
		return f.onlyValue(at - 1)
	case *ast.AssignStmt:
		return indexOf(p.Lhs, f.path[at]) < 0
	case *ast.RangeStmt:
		return p.X == f.path[at]
	case *ast.UnaryExpr:
		return p.Op != token.AND
	case *ast.IncDecStmt:
		return false
	}
	return true
}

// onlyReadBy reports whether a call only reads its argument e, or returns a part of it that is only read.
func (f *finder) onlyReadBy(call *ast.CallExpr, e ast.Node, at int, behind bool) bool {
	if t := f.info.Types[call.Fun]; t.IsType() {
		b, ok := t.Type.Underlying().(*types.Basic)
		return ok && b.Info()&types.IsString != 0
	}
	switch callee := f.callee(call).(type) {
	case *types.Builtin:
		return callee.Name() == "len" || call.Args[0] != e && (callee.Name() == "append" || callee.Name() == "copy")
	case *types.Func:
		if callee.Signature().Recv() != nil {
			return callee.Name() == "Write" || callee.Name() == "EncodeToString"
		}
		if callee.Pkg() == nil {
			return false
		}
		name := callee.Pkg().Path() + "." + callee.Name()
		return bytesReaders.has(name) || !behind && trimmers.has(name) && f.onlyReads(at-1, behind)
	}
	return false
}

// called reports whether the current node, a variable that holds a printer or scanner, is a parameter of the function
// around it and is used only to call a method or to be passed on with its type.
func (f *finder) called(v *types.Var) bool {
	parent, child := f.around()
	if !f.ownParameter(v) {
		return false
	}
	switch p := parent.(type) {
	case *ast.SelectorExpr:
		outer, ok := f.path[len(f.path)-3].(*ast.CallExpr)
		return ok && outer.Fun == p && p.Sel.Name != "Token" // Token returns a part of the pooled buffer
	case *ast.CallExpr:
		return f.argumentOf(printers) || f.callee(p) != nil && f.callee(p).Pkg() == f.pkg &&
			f.passes(p, child, v.Type())
	}
	return false
}

// ownParameter reports whether a variable is a parameter of the innermost function around the current node.
func (f *finder) ownParameter(v *types.Var) bool {
	for p := range f.function().Params().Variables() {
		if p == v {
			return true
		}
	}
	return false
}
