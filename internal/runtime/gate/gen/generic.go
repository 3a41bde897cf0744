package main

//lint:file-ignore SA1019 it reads the toolchain's own archives and tree

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
)

// A decl is a package-level declaration of a generic package, with what it needs.
type decl struct {
	Names   []string `json:"names"`
	Text    string   `json:"text"`
	Needs   []string `json:"needs,omitempty"`   // names of the same package
	Imports []string `json:"imports,omitempty"` // import paths
}

// writeGeneric writes the declarations of the generic packages, so that a program is checked and compiled with just those
// that it uses. Files in gen/override take the place of what cannot be interpreted.
func writeGeneric(dir string) error {
	var bundle bytes.Buffer
	for _, p := range allow.Packages() {
		if !p.Source {
			continue
		}
		decls, err := readPackage(dir, p.Path)
		if err != nil {
			return fmt.Errorf("%s: %w", p.Path, err)
		}
		data, err := json.Marshal(decls)
		if err != nil {
			return err
		}
		fmt.Fprintf(&bundle, "%s %d\n%s", p.Path, len(data), data)
	}
	return os.WriteFile(filepath.Join(dir, "exports", tag()+".txt"), bundle.Bytes(), 0o644)
}

func readPackage(dir, path string) ([]decl, error) {
	fset := token.NewFileSet()
	override := filepath.Join(dir, "gen", "override", strings.ReplaceAll(path, "/", "_")+".go.txt")
	seen := map[string]bool{}
	var out []decl
	read := func(name string) error {
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range fileDecls(fset, f) {
			d.Names = slices.DeleteFunc(d.Names, func(n string) bool { return seen[n] })
			if len(d.Names) > 0 {
				out = append(out, d)
			}
		}
		return nil
	}
	whole := false // an override may replace the package as a whole
	if data, err := os.ReadFile(override); err == nil {
		if err := read(override); err != nil {
			return nil, err
		}
		whole = bytes.HasPrefix(data, []byte("// whole"))
	}
	for _, d := range out {
		for _, n := range d.Names {
			seen[n] = true
		}
	}
	if !whole {
		files, err := filepath.Glob(filepath.Join(runtime.GOROOT(), "src", path, "*.go"))
		if err != nil {
			return nil, err
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			if err := read(name); err != nil {
				return nil, err
			}
		}
	}
	keepLocalNeeds(out)
	return out, nil
}

// keepLocalNeeds drops from Needs what is not declared at package level.
func keepLocalNeeds(decls []decl) {
	declared := map[string]bool{}
	for _, d := range decls {
		for _, n := range d.Names {
			declared[n] = true
		}
	}
	for i := range decls {
		decls[i].Needs = slices.DeleteFunc(decls[i].Needs, func(n string) bool {
			return !declared[n] || slices.Contains(decls[i].Names, n)
		})
	}
}

func fileDecls(fset *token.FileSet, f *ast.File) []decl {
	imports := map[string]string{}
	for _, spec := range f.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		name := allow.Package{Path: path}.Name()
		if spec.Name != nil {
			name = spec.Name.Name
		}
		imports[name] = path
	}
	var out []decl
	for _, d := range f.Decls {
		if g, ok := d.(*ast.GenDecl); ok {
			if g.Tok == token.IMPORT {
				continue
			}
			g.Doc = nil
		}
		if fn, ok := d.(*ast.FuncDecl); ok {
			fn.Doc = nil
			if fn.Name.Name == "init" {
				continue
			}
		}
		out = append(out, oneDecl(fset, d, imports))
	}
	return out
}

func oneDecl(fset *token.FileSet, d ast.Decl, imports map[string]string) decl {
	var b bytes.Buffer
	if err := printer.Fprint(&b, fset, d); err != nil {
		panic(err) // a declaration that was parsed
	}
	out := decl{Text: b.String(), Names: declNames(d)}
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && imports[x.Name] != "" {
				out.Imports = append(out.Imports, imports[x.Name])
				return false
			}
		case *ast.Ident:
			out.Needs = append(out.Needs, n.Name)
		}
		return true
	})
	slices.Sort(out.Needs)
	slices.Sort(out.Imports)
	out.Needs, out.Imports = slices.Compact(out.Needs), slices.Compact(out.Imports)
	return out
}

// declNames returns what a declaration declares. A method stands under "Type.": it is wanted whenever the type is.
func declNames(d ast.Decl) []string {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			return []string{d.Name.Name}
		}
		t := d.Recv.List[0].Type
		if star, ok := t.(*ast.StarExpr); ok {
			t = star.X
		}
		return []string{t.(*ast.Ident).Name + "." + d.Name.Name}
	case *ast.GenDecl:
		var names []string
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				names = append(names, s.Name.Name)
			case *ast.ValueSpec:
				for _, n := range s.Names {
					names = append(names, n.Name)
				}
			}
		}
		return names
	}
	return nil
}
