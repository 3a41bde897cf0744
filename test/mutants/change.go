package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A mutant is one change.
type mutant struct{ at, kind string }

// A pkg is a package with every change written into its files.
type pkg struct {
	dir, name string
	files     map[string]string // new text by path
	mutants   []mutant          // the number of a change is its index + 1
}

// listed is what `go list -json` says of a package.
type listed struct {
	Dir, ImportPath, Name, Export string
	GoFiles                       []string
	DepOnly                       bool
}

// load parses and checks the package, and writes the changes.
func load(ctx context.Context, s *settings) (*pkg, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-export", "-deps", "-tags", s.tags, "-json=Dir,ImportPath,Name,Export,GoFiles,DepOnly", s.pkg).Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", s.pkg, err)
	}
	exports, target := map[string]string{}, listed{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := d.Decode(&l); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		exports[l.ImportPath] = l.Export
		if !l.DepOnly {
			target = l
		}
	}
	w := &writer{fset: token.NewFileSet(), info: types.Info{Types: map[ast.Expr]types.TypeAndValue{}}}
	var files []*ast.File
	for _, name := range target.GoFiles {
		f, err := parser.ParseFile(w.fset, filepath.Join(target.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	conf := types.Config{Importer: importer.ForCompiler(w.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })}
	if w.pkg, err = conf.Check(target.ImportPath, w.fset, files, &w.info); err != nil {
		return nil, err
	}
	p := &pkg{dir: target.Dir, name: target.Name, files: map[string]string{}}
	for i, f := range files {
		if !s.files.MatchString(target.GoFiles[i]) {
			continue
		}
		path := filepath.Join(target.Dir, target.GoFiles[i])
		if w.src, err = os.ReadFile(path); err != nil {
			return nil, err
		}
		w.file = f
		p.files[path] = w.text(f, f.FileStart, f.FileEnd)
	}
	p.mutants = w.mutants
	return p, nil
}

// A writer writes the files of a package anew, with the changes in them.
type writer struct {
	fset    *token.FileSet
	info    types.Info
	pkg     *types.Package
	file    *ast.File
	src     []byte
	mutants []mutant
}

// text is the source between two places of a node, with changes in the nodes below it.
func (w *writer) text(root ast.Node, from, to token.Pos) string {
	var b strings.Builder
	at := from
	ast.Inspect(root, func(n ast.Node) bool {
		if n == nil || n == root {
			return true
		}
		if d, ok := n.(*ast.GenDecl); ok && d.Tok == token.CONST {
			return false
		}
		if _, ok := n.(*ast.ArrayType); ok {
			return false // lengths are constants
		}
		changed, ok := w.change(n)
		if ok {
			b.WriteString(w.source(at, n.Pos()) + changed)
			at = n.End()
		}
		return !ok
	})
	b.WriteString(w.source(at, to))
	return b.String()
}

// node is the source of a node with the changes in it.
func (w *writer) node(n ast.Node) string {
	if changed, ok := w.change(n); ok {
		return changed
	}
	return w.text(n, n.Pos(), n.End())
}

func (w *writer) source(from, to token.Pos) string {
	return string(w.src[w.fset.Position(from).Offset:w.fset.Position(to).Offset])
}

// add numbers a change.
func (w *writer) add(at token.Pos, kind string) int {
	p := w.fset.Position(at)
	w.mutants = append(w.mutants, mutant{fmt.Sprintf("%s:%d:%d", filepath.Base(p.Filename), p.Line, p.Column), kind})
	return len(w.mutants)
}

// The operators that replace others.
var (
	boundary = map[token.Token]token.Token{token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR}
	other    = map[token.Token]token.Token{token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.QUO: token.MUL, token.REM: token.MUL}
)

// change returns the node with its changes, false when it has none of its own.
func (w *writer) change(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if other[n.Op] != 0 {
			return w.arithmetic(n)
		}
		return w.comparison(n)
	case *ast.UnaryExpr:
		if t, ok := w.number(n); ok && n.Op == token.SUB {
			id, x := w.add(n.OpPos, "INVERT_NEGATIVES"), w.node(n.X)
			return fmt.Sprintf("mutantOf(%d, func() %s { return -%s }, func() %s { return +%s })", id, t, x, t, x), true
		}
	case *ast.IncDecStmt:
		id, x := w.add(n.TokPos, "INCREMENT_DECREMENT"), w.node(n.X)
		was, now := "++", "--"
		if n.Tok == token.DEC {
			was, now = now, was
		}
		return fmt.Sprintf("func() { if mutantOn(%d) { %s%s } else { %s%s } }()", id, x, now, x, was), true
	}
	return "", false
}

func (w *writer) arithmetic(n *ast.BinaryExpr) (string, bool) {
	t, ok := w.number(n)
	if !ok {
		return "", false
	}
	id := w.add(n.OpPos, "ARITHMETIC_BASE")
	x, y := w.node(n.X), w.node(n.Y)
	return fmt.Sprintf("mutantOf(%d, func() %s { return %s %s %s }, func() %s { return %s %s %s })", id, t, x, n.Op, y, t, x, other[n.Op], y), true
}

// comparison negates comparisons, and moves the boundary of those that have one.
func (w *writer) comparison(n *ast.BinaryExpr) (string, bool) {
	moved, ordered := boundary[n.Op]
	if !ordered && n.Op != token.EQL && n.Op != token.NEQ {
		return "", false
	}
	negation := w.add(n.OpPos, "CONDITIONALS_NEGATION")
	edge := 0
	if ordered {
		edge = w.add(n.OpPos, "CONDITIONALS_BOUNDARY")
	}
	x, y := w.node(n.X), w.node(n.Y)
	plain := fmt.Sprintf("%s %s %s", x, n.Op, y)
	if ordered {
		plain = fmt.Sprintf("mutantOf(%d, func() bool { return %s }, func() bool { return %s %s %s })", edge, plain, x, moved, y)
	}
	return fmt.Sprintf("mutantNot(%d, %s)", negation, plain), true
}

// number returns the type of an expression that is a number, as the file writes it.
func (w *writer) number(e ast.Expr) (string, bool) {
	tv := w.info.Types[e]
	if tv.Type == nil {
		return "", false
	}
	basic, ok := tv.Type.Underlying().(*types.Basic)
	if !ok || basic.Info()&types.IsNumeric == 0 || basic.Info()&types.IsUntyped != 0 {
		return "", false
	}
	return types.TypeString(tv.Type, w.qualifier), true
}

// qualifier is the name under which the file imports a package.
func (w *writer) qualifier(p *types.Package) string {
	if p == w.pkg {
		return ""
	}
	for _, spec := range w.file.Imports {
		if strings.Trim(spec.Path.Value, `"`) == p.Path() && spec.Name != nil {
			return spec.Name.Name
		}
	}
	return p.Name()
}

// helpers are what the changes call. The first time that a change is come by its number is written down.
const helpers = `package %s

import (
	"os"
	"strconv"
	"sync/atomic"
)

var (
	mutantNumber, _ = strconv.Atoi(os.Getenv("MUTANT"))
	mutantsCovered  = os.Getenv("MUTANTS_COVERED")
	mutantsSeen     [%d]atomic.Bool
)

func mutantOn(n int) bool {
	if mutantsCovered != "" && !mutantsSeen[n].Swap(true) {
		if f, err := os.OpenFile(mutantsCovered, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
			_, _ = f.WriteString(strconv.Itoa(n) + "\n")
			_ = f.Close()
		}
	}
	return n == mutantNumber
}

func mutantNot(n int, v bool) bool { return v != mutantOn(n) }

func mutantOf[T any](n int, was, now func() T) T {
	if mutantOn(n) {
		return now()
	}
	return was()
}
`

// overlay writes the files into work, and the file by which the go command takes them for those of the package.
func (p *pkg) overlay(work string) (string, error) {
	p.files[filepath.Join(p.dir, "zz_mutants.go")] = fmt.Sprintf(helpers, p.name, len(p.mutants)+1)
	replace := map[string]string{}
	for path, text := range p.files {
		to := filepath.Join(work, filepath.Base(path))
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[path] = to
	}
	raw, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	list := filepath.Join(work, "overlay.json")
	return list, os.WriteFile(list, raw, 0o600)
}
