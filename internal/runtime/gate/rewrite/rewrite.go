// Package rewrite turns a checked program into the text that a Go toolchain compiles to a native executable. The text
// calls package support where the engine replaces something: the clock, randomness, the order of map ranges, output.
// Package variables are initialised by a function at the start of each run. Positions refer to the lines of the source.
//
// A program computes the same numbers on every processor (floats.go). A program that cannot be expressed this way is
// refused as Unsupported, for example if a package variable has a type that no package exports.
package rewrite

import (
	"fmt"
	"go/ast"
	"go/printer"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/ast/astutil"

	"github.com/recurgentd/recurgentd/internal/runtime/gate"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
)

// supportPath is the import path of package support.
const supportPath = "github.com/recurgentd/recurgentd/internal/runtime/native/support"

// prefix starts every name that the text adds to the program. If the program contains it, a number follows.
const prefix = "RecurgentNative"

// prefixFor returns the first prefix that does not occur in the source.
func prefixFor(source string) string {
	own := prefix
	for n := 1; strings.Contains(source, own); n++ {
		own = prefix + strconv.Itoa(n)
	}
	return own
}

// name returns a name that the text adds.
func (w *writer) name(of string) string { return w.prefix + of }

// support returns the qualified name of something in package support.
func (w *writer) support(of string) string { return w.prefix + "Support." + of }

// Unsupported is the reason why a program cannot be compiled.
type Unsupported string

// Error returns the reason for logs.
func (u Unsupported) Error() string { return "the program cannot be compiled: " + string(u) }

// Text returns the text of a program. It modifies the syntax tree of p. The error is an Unsupported if the program
// cannot be compiled. source is the program as it is stored. The last line of the text declares a variable that holds
// the support.Program; it begins with "var " and the variable's name.
func Text(p *gate.Program, source string) (string, error) {
	w := &writer{prefix: prefixFor(source), pkg: p.Pkg, info: p.Info, file: p.File, unused: map[token.Pos]bool{},
		imports: map[*types.Package]string{}, standIns: map[string]string{}}
	for _, pos := range p.Unused {
		w.unused[pos] = true
	}
	p.GuardDigits(func(name string) ast.Expr { return &ast.Ident{Name: w.support(name)} })
	// Uses are added first, because replace turns some of the statements that declare variables into others.
	w.useVariables()
	astutil.Apply(w.file, nil, w.replace)
	decls := w.declarations()
	if w.refused != "" {
		return "", w.refused
	}
	// Comments must not be nil: the printer would then print those of the declarations.
	f := &ast.File{Name: &ast.Ident{Name: "tool"}, Decls: append(w.importDecls(), decls...),
		Comments: []*ast.CommentGroup{}}
	var b strings.Builder
	if err := (&printer.Config{Mode: printer.UseSpaces | printer.TabIndent | printer.SourcePos, Tabwidth: 8}).Fprint(&b,
		p.Fset, f); err != nil {
		return "", err
	}
	fmt.Fprintf(&b, "\nvar %s = %s{Source: %s, Once: %t, Reset: %s, Run: Run}\n", w.name("Program"),
		w.support("Program"), strconv.Quote(source), p.Residue, w.name("Reset"))
	return b.String(), nil
}

// A writer rewrites one program.
type writer struct {
	prefix  string
	pkg     *types.Package
	info    *types.Info
	file    *ast.File
	unused  map[token.Pos]bool        // positions of unused variable declarations
	imports map[*types.Package]string // names of packages imported only for types of variables
	// standIns has the packages below support that the text imports, by name.
	standIns map[string]string
	made     int         // number of names created
	refused  Unsupported // the first reason; "" if none
}

// refuse records why the program has no text. The first reason counts.
func (w *writer) refuse(why string) {
	if w.refused == "" {
		w.refused = Unsupported(why)
	}
}

// replace replaces a node if the engine handles it differently.
func (w *writer) replace(c *astutil.Cursor) bool {
	switch n := c.Node().(type) {
	case *ast.Ident:
		w.ident(n)
	case *ast.SelectorExpr:
		if e := w.method(n); e != nil {
			c.Replace(e)
			break
		}
		w.selector(n)
	case *ast.BinaryExpr:
		if e := w.unfused(n); e != nil {
			c.Replace(e)
		}
	case *ast.AssignStmt:
		if s := w.unfusedAssign(n); s != nil {
			c.Replace(s)
		}
	case *ast.RangeStmt:
		if loop := w.mapRange(n); loop != nil {
			c.Replace(loop)
		}
	case *ast.SelectStmt:
		if s := w.inOrder(n); s != nil {
			c.Replace(s)
		}
	}
	return true
}

// ident replaces the built-in print and println, which would write to standard error.
func (w *writer) ident(id *ast.Ident) {
	if b, ok := w.info.Uses[id].(*types.Builtin); ok && (b.Name() == "print" || b.Name() == "println") {
		id.Name = w.support("Discard")
	}
}

// selector replaces a name of a package if the engine has its own version.
func (w *writer) selector(s *ast.SelectorExpr) {
	x, ok := s.X.(*ast.Ident)
	if !ok {
		return
	}
	name, ok := w.info.Uses[x].(*types.PkgName)
	if !ok {
		return
	}
	path := name.Imported().Path()
	if to := replacement(path, s.Sel.Name, w.info.Uses[s.Sel]); to != "" {
		pkg, name, _ := strings.Cut(w.standIn(to), ".")
		s.X = &ast.Ident{NamePos: x.NamePos, Name: pkg}
		s.Sel = &ast.Ident{NamePos: s.Sel.NamePos, Name: name}
	}
}

// importDecls returns the imports that the text needs. An unused import would not compile. An import without a name is
// there for what its package does when the process begins, such as to register a format of pictures.
func (w *writer) importDecls() []ast.Decl {
	used := map[*types.PkgName]bool{}
	ast.Inspect(w.file, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			if name, ok := w.info.Uses[id].(*types.PkgName); ok {
				used[name] = true
			}
		}
		return true
	})
	list := map[string]string{w.name("Support"): supportPath}
	for name := range used {
		list[name.Name()] = name.Imported().Path()
	}
	for pkg, name := range w.imports {
		list[name] = allow.SeenPath(pkg.Path())
	}
	maps.Copy(list, w.standIns)
	var blank []string
	for _, spec := range w.file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		if spec.Name != nil && spec.Name.Name == "_" {
			blank = append(blank, path)
		}
		if pkg := companions[path]; pkg != "" {
			blank = append(blank, supportPath+"/"+pkg)
		}
	}
	slices.Sort(blank)
	return append(importDecls(list, w.file.Package), blankImports(slices.Compact(blank), w.file.Package)...)
}
