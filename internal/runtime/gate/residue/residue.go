// Package residue finds programs that may leave something in the state of other packages, where the next run in the
// same process would find it: in a map or table that belongs to a variable of the standard library and that the program
// reaches through another name.
//
// It does not track values. It knows the uses that change nothing; a program with any other use counts as one that may
// leave something.
package residue

import (
	"go/ast"
	"go/token"
	"go/types"
	"strconv"
)

// Possible reports whether a run of a type-checked program may change state of other packages. The caller must have
// refused direct assignments to their variables already.
func Possible(file *ast.File, info *types.Info, pkg *types.Package) bool {
	f := &finder{info: info, pkg: pkg, lent: map[*types.Var]bool{}, tables: mentions{pkg: pkg, names: tables},
		opaque: mentions{pkg: pkg, names: opaque}}
	f.imports(file)
	f.declarations(file)
	f.walk(file, f.node)
	if f.decoders {
		f.tables.names = withDecoder
	}
	// The second walk is only needed if a table can be in reach of the program.
	if !f.found && (f.typed || f.decoders) {
		f.walk(file, f.flow)
	}
	if f.generic && !f.found {
		f.instances(&f.opaque, nil)
	}
	// A shared token is only visible to programs that read tokens as bytes.
	return f.found || f.runes && f.tokens
}

// A finder examines one program.
type finder struct {
	info           *types.Info
	pkg            *types.Package
	path           []ast.Node // from the file down to the current node, which is last
	tables, opaque mentions

	lent     map[*types.Var]bool // lent parameters; true if the bytes beyond the length belong to others
	lends    bool                // the program declares a method with such a parameter
	reader   bool                // the program declares a method Read
	runes    bool                // it uses bufio.ScanRunes
	tokens   bool                // it uses bufio.Scanner.Bytes
	typed    bool                // the program imports a package with tables
	decoders bool                // a decoder holds a table of package xml
	generic  bool                // the program assigns through a pointer to a type parameter
	found    bool                // a use that may change something
}

// imports examines the imported packages. The import of regexp/syntax is enough to find something.
func (f *finder) imports(file *ast.File) {
	for _, spec := range file.Imports {
		switch path, _ := strconv.Unquote(spec.Path.Value); path {
		case "regexp/syntax": // compiled expressions share slices that programs can change
			f.found = true
		case "unicode", "hash/crc32", "hash/crc64":
			f.typed = true
		}
	}
}

// walk visits all nodes, outer ones first, until something is found.
func (f *finder) walk(file *ast.File, visit func(ast.Node)) {
	ast.Inspect(file, func(n ast.Node) bool {
		if n == nil {
			f.path = f.path[:len(f.path)-1]
			return true
		}
		if f.found {
			return false
		}
		f.path = append(f.path, n)
		visit(n)
		return true
	})
	f.path = f.path[:0]
}

// around returns the nearest enclosing node that is not a parenthesis, and its child on the path.
func (f *finder) around() (parent, child ast.Node) {
	i := len(f.path) - 1
	for i > 0 {
		if _, ok := f.path[i-1].(*ast.ParenExpr); !ok {
			return f.path[i-1], f.path[i]
		}
		i--
	}
	return nil, f.path[0]
}

// node examines one node in the first walk.
func (f *finder) node(n ast.Node) {
	switch n := n.(type) {
	case *ast.Ident:
		if f.lends {
			f.parameter(n)
		}
	case *ast.SelectorExpr:
		f.selector(n)
	case *ast.TypeSpec:
		if t := f.info.Defs[n.Name]; t != nil && disguised(t.Type()) {
			f.found = true
		}
	case *ast.AssignStmt:
		for _, e := range n.Lhs {
			f.store(e)
		}
	case *ast.RangeStmt:
		f.store(n.Key)
		f.store(n.Value)
	}
}

// store examines the target of an assignment. Encodings and locations can only be changed as a whole.
func (f *finder) store(e ast.Expr) {
	star, ok := ast.Unparen(e).(*ast.StarExpr)
	if !ok {
		return
	}
	switch t := types.Unalias(f.info.TypeOf(star)).(type) {
	case *types.TypeParam:
		f.generic = true
	case *types.Named:
		f.found = f.found || f.opaque.names.has(nameOf(t))
	}
}

// selector examines variables of other packages, and fields through which tables can be changed.
func (f *finder) selector(s *ast.SelectorExpr) {
	o := f.info.Uses[s.Sel]
	if o == nil || o.Pkg() == nil || o.Pkg() == f.pkg {
		return
	}
	switch o := o.(type) {
	case *types.Func:
		f.scanning(o)
		f.found = f.found || changes(o)
	case *types.Var:
		if o.IsField() {
			f.found = f.found || o.Pkg().Path() == "unicode" && tableFields.has(o.Name())
		} else {
			f.found = f.found || !f.harmless(o)
		}
	}
}

// scanning looks for uses of bufio.ScanRunes, which shares one token for all invalid encodings.
func (f *finder) scanning(o *types.Func) {
	if o.Pkg().Path() != "bufio" {
		return
	}
	switch o.Name() {
	case "Bytes":
		f.tokens = true
	case "ScanRunes":
		parent, _ := f.around()
		call, ok := parent.(*ast.CallExpr)
		f.runes = true
		f.found = f.found || !ok || f.callee(call) == o || f.callee(call) == nil || f.callee(call).Name() != "Split"
	}
}

// harmless reports whether the current node, a use of another package's variable, changes nothing or is examined by
// flow.
func (f *finder) harmless(v *types.Var) bool {
	if v.Pkg().Path() == "io" && v.Name() == "Discard" { // it passes shared buffers to readers
		return !f.reader || f.argumentOf(writers)
	}
	switch t := v.Type().Underlying().(type) {
	case *types.Map, *types.Slice:
		return f.read(v)
	case *types.Pointer:
		name := nameOf(t.Elem())
		return tables.has(name) || opaque.has(name) || name == "image.Uniform" && f.argumentOf(drawers)
	case *types.Struct:
		return plainStruct(v.Type(), t)
	case *types.Basic, *types.Interface:
		return true
	}
	return false
}

// read reports whether the current node, a map or slice of another package, is only read.
func (f *finder) read(v *types.Var) bool {
	parent, child := f.around()
	switch p := parent.(type) {
	case *ast.IndexExpr:
		return p.X == child && f.elementRead()
	case *ast.RangeStmt:
		return p.X == child
	case *ast.BinaryExpr:
		return true
	case *ast.SelectorExpr:
		_, isMethod := f.info.Uses[p.Sel].(*types.Func)
		return isMethod
	case *ast.AssignStmt: // decoder.Entity = xml.HTMLEntity
		if to, ok := f.assigned(p,
			child).(*ast.SelectorExpr); ok && v.Pkg().Path() == "encoding/xml" && f.info.Uses[to.Sel].Pkg() == v.Pkg() {
			f.decoders = true
			return true
		}
	case *ast.CallExpr:
		if b, ok := f.callee(p).(*types.Builtin); ok {
			return b.Name() == "len" || p.Args[0] != child && (b.Name() == "append" || b.Name() == "copy")
		}
		return f.argumentOf(readers)
	}
	return false
}

// elementRead reports whether an element of the current node is only copied: nothing slices it or calls a method on it
// in place.
func (f *finder) elementRead() bool {
	for i := len(f.path) - 1; i > 0; i-- {
		e, outer := f.path[i], f.path[i-1]
		switch outer := outer.(type) {
		case *ast.ParenExpr:
		case *ast.IndexExpr:
			if outer.X != e {
				return true
			}
		case *ast.SelectorExpr:
			if v, ok := f.info.Uses[outer.Sel].(*types.Var); !ok || !v.IsField() {
				return false
			}
		case *ast.SliceExpr:
			return outer.X != e
		default:
			return true
		}
	}
	return true
}

// argumentOf reports whether the current node is an argument of one of the functions.
func (f *finder) argumentOf(functions names) bool {
	parent, child := f.around()
	call, ok := parent.(*ast.CallExpr)
	if !ok || call.Fun == child {
		return false
	}
	callee, ok := f.callee(call).(*types.Func)
	return ok && callee.Pkg() != nil && callee.Signature().Recv() == nil &&
		functions.has(callee.Pkg().Path()+"."+callee.Name())
}

// callee returns the function or built-in that a call names, or nil for any other call.
func (f *finder) callee(call *ast.CallExpr) types.Object {
	fun := ast.Unparen(call.Fun)
	switch x := fun.(type) {
	case *ast.IndexExpr:
		fun = ast.Unparen(x.X)
	case *ast.IndexListExpr:
		fun = ast.Unparen(x.X)
	}
	switch x := fun.(type) {
	case *ast.Ident:
		return f.info.Uses[x]
	case *ast.SelectorExpr:
		return f.info.Uses[x.Sel]
	}
	return nil
}

// assigned returns the operand on the left that an assignment gives the value to. It returns nil if value is not on the
// right, if the two sides differ in length, and for :=.
func (f *finder) assigned(n *ast.AssignStmt, value ast.Node) ast.Expr {
	for i, e := range n.Rhs {
		if e == value && len(n.Lhs) == len(n.Rhs) && n.Tok != token.DEFINE {
			return ast.Unparen(n.Lhs[i])
		}
	}
	return nil
}
