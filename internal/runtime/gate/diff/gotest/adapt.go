package gotest

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Adapt writes a test whose recipe is "run" as a program of ours that means the same: Run calls the init functions and main, and returns
// what was printed, to whichever stream. It changes nothing but what the tables of this package list; what the policy refuses it leaves
// in place, for the gate to refuse.
func Adapt(source string) (string, error) {
	a := &adapter{source: source, fset: token.NewFileSet(), parts: map[string]bool{}, sized: map[types.Object]int{}}
	file, err := parser.ParseFile(a.fset, "test.go", source, parser.ParseComments)
	if err != nil {
		return "", err
	}
	a.file = file
	a.resolve()
	a.directives()
	a.functions()
	a.names()
	a.variables()
	a.imports()
	slices.SortFunc(a.edits, func(x, y edit) int { return cmp.Compare(x.from, y.from) })
	var b bytes.Buffer
	last := 0
	for _, e := range a.edits {
		b.WriteString(source[last:e.from])
		b.WriteString(e.text)
		last = e.to
	}
	b.WriteString(source[last:])
	b.WriteString(a.prelude())
	return b.String(), nil
}

// An edit puts text in place of source[from:to].
type edit struct {
	from, to int
	text     string
}

type adapter struct {
	source string
	fset   *token.FileSet
	file   *ast.File
	info   *types.Info
	edits  []edit
	inits  int                  // init functions
	left   map[string]bool      // names of imported packages that are still used
	used   map[string]bool      // names of all that is declared
	parts  map[string]bool      // of the prelude
	sized  map[types.Object]int // how often a size was all that was asked of it
	fmt    string               // the name of package fmt
}

func (a *adapter) replace(from, to token.Pos, text string) {
	a.edits = append(a.edits, edit{a.fset.PositionFor(from, false).Offset, a.fset.PositionFor(to, false).Offset, text})
}

// resolve finds what each identifier stands for. Imported packages are empty: their contents do not matter here.
func (a *adapter) resolve() {
	a.info = &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Error: func(error) {}, Importer: empty{}, Sizes: types.SizesFor("gc", "amd64")}
	_, _ = conf.Check("main", a.fset, []*ast.File{a.file}, a.info)
}

type empty struct{}

func (empty) Import(name string) (*types.Package, error) {
	if name == "unsafe" {
		return types.Unsafe, nil
	}
	p := types.NewPackage(name, path.Base(name))
	p.MarkComplete()
	return p, nil
}

var harmless = regexp.MustCompile(`^//(go:(noinline|nosplit|norace|noline|registerparams|uintptrescapes|build)\b| \+build\b)`)

// directives makes plain comments of what only steers the compiler's optimiser, or says where a test runs.
func (a *adapter) directives() {
	for _, group := range a.file.Comments {
		for _, c := range group.List {
			if harmless.MatchString(c.Text) {
				a.replace(c.Pos(), c.Pos()+2, "// was ")
			}
		}
	}
}

// functions numbers the init functions, which Run calls.
func (a *adapter) functions() {
	for _, d := range a.file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" && f.Body != nil {
			a.inits++
			a.replace(f.Name.Pos(), f.Name.End(), fmt.Sprintf("gotestInit%d", a.inits))
		}
	}
}

// mainName is package main's name where a text names a type of the program, as in "main.T".
var mainName = regexp.MustCompile(`\bmain\.`)

// names puts the prelude's functions in place of those that a program here lacks, or that print elsewhere.
func (a *adapter) names() {
	a.left, a.used = map[string]bool{}, map[string]bool{}
	ast.Inspect(a.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			return !a.size(n)
		case *ast.SelectorExpr:
			id, ok := n.X.(*ast.Ident)
			if !ok {
				break
			}
			p, ok := a.info.Uses[id].(*types.PkgName)
			if !ok {
				break
			}
			if r, ok := replacements()[p.Imported().Path()+"."+n.Sel.Name]; ok {
				a.replace(n.Pos(), n.End(), r.text)
				a.parts[r.part] = true
			} else {
				a.left[p.Name()] = true
			}
			return false
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				if text := mainName.ReplaceAllString(n.Value, "tool."); text != n.Value {
					a.replace(n.Pos(), n.End(), text)
				}
			}
		case *ast.ImportSpec:
			return false
		case *ast.Ident:
			a.name(n)
		}
		return true
	})
}

// size puts the number in place of unsafe.Sizeof and the like, where it is a constant. It is the same on amd64 and arm64.
func (a *adapter) size(call *ast.CallExpr) bool {
	s, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	b, ok := a.info.Uses[s.Sel].(*types.Builtin)
	if !ok || b.Pkg() != types.Unsafe || a.info.Types[call].Value == nil {
		return false
	}
	a.replace(call.Pos(), call.End(), "uintptr("+a.info.Types[call].Value.ExactString()+")")
	ast.Inspect(call, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && a.info.Uses[id] != nil {
			a.sized[a.info.Uses[id]]++
		}
		return true
	})
	return true
}

// variables puts those to use of which only the size was used.
func (a *adapter) variables() {
	uses := map[types.Object]int{}
	for _, o := range a.info.Uses {
		uses[o]++
	}
	ast.Inspect(a.file, func(n ast.Node) bool {
		d, ok := n.(*ast.DeclStmt)
		if !ok {
			return true
		}
		ast.Inspect(d, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				if v, ok := a.info.Defs[id].(*types.Var); ok && !v.IsField() && a.sized[v] > 0 && a.sized[v] == uses[v] {
					a.replace(d.End(), d.End(), "; _ = "+v.Name())
				}
			}
			return true
		})
		return true
	})
}

func (a *adapter) name(id *ast.Ident) {
	if a.info.Defs[id] != nil {
		a.used[id.Name] = true
	}
	o := a.info.Uses[id]
	if o == nil {
		o = a.info.Defs[id]
	}
	switch {
	case o == nil:
	case o.Name() == "Run" && o.Parent() != nil && o.Pkg() != nil && o.Parent() == o.Pkg().Scope():
		a.replace(id.Pos(), id.End(), "gotestOtherRun")
	default:
		if b, ok := o.(*types.Builtin); ok && (b.Name() == "print" || b.Name() == "println") {
			a.replace(id.Pos(), id.End(), "gotestBuiltin"+strings.ToUpper(b.Name()[:1])+b.Name()[1:])
			a.parts["builtin"] = true
		}
	}
}

// imports removes the imports that are not needed any more, and adds what Run and the prelude need.
func (a *adapter) imports() {
	fmtName := ""
	for _, d := range a.file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.IMPORT {
			continue
		}
		for _, s := range g.Specs {
			spec := s.(*ast.ImportSpec)
			p, _ := strconv.Unquote(spec.Path.Value)
			name := path.Base(p)
			if spec.Name != nil {
				name = spec.Name.Name
			}
			switch {
			case name == "." || name == "_" || a.left[name]:
			case g.Lparen.IsValid():
				a.replace(spec.Pos(), spec.End(), "")
			default:
				a.replace(g.Pos(), g.End(), "")
			}
			if p == "fmt" && name == "fmt" && a.left["fmt"] {
				fmtName = "fmt"
			}
		}
	}
	text := "tool; import \"recurgent\""
	a.fmt = fmtName
	if fmtName == "" && a.needsFmt() {
		a.fmt = "fmt"
		if a.used["fmt"] {
			a.fmt = "gotestfmt"
		}
		text += "; import " + a.fmt + " \"fmt\""
	}
	a.replace(a.file.Name.Pos(), a.file.Name.End(), text)
}
