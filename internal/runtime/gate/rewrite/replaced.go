package rewrite

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// replaced maps names of packages to their replacements in package support, or in a package below it, whose name is
// before a dot then. It covers the clock, randomness, the terminal, the decoding of numbers, the functions of package
// maps that range over maps, contexts and loggers.
var replaced = map[string]map[string]string{
	"time":          {"Now": "Now", "Since": "Since", "Until": "Until", "Sleep": "Sleep", "LoadLocation": "LoadLocation"},
	"crypto/rand":   {"Read": "Read", "Text": "Text", "Reader": "Reader"},
	"encoding/json": {"Unmarshal": "Unmarshal"},
	"fmt": {"Print": "Print", "Println": "Println", "Printf": "Printf", "Scan": "Scan", "Scanln": "Scanln",
		"Scanf": "Scanf"},
	"maps": {"All": "MapsAll", "Keys": "MapsKeys", "Values": "MapsValues", "Equal": "MapsEqual",
		"EqualFunc": "MapsEqualFunc", "DeleteFunc": "MapsDeleteFunc"},
	"context": {"WithCancel": "contexts.WithCancel", "WithCancelCause": "contexts.WithCancelCause",
		"WithDeadline": "contexts.WithDeadline", "WithDeadlineCause": "contexts.WithDeadlineCause",
		"WithTimeout": "contexts.WithTimeout", "WithTimeoutCause": "contexts.WithTimeoutCause",
		"Cause": "contexts.Cause"},
	"log/slog": {"New": "logs.New", "NewLogLogger": "logs.NewLogLogger"},
	"reflect":  {"MapIter": "reflection.MapIter"},
}

// methods maps methods to functions that take the receiver and return what replaces the method.
var methods = map[string]string{
	"sync.WaitGroup.Go":      "WaitGroupGo",
	"sync.Map.Range":         "SyncMapRange",
	"reflect.Value.MapKeys":  "reflection.MapKeys",
	"reflect.Value.MapRange": "reflection.MapRange",
	"reflect.Value.Seq":      "reflection.Seq",
	"reflect.Value.Seq2":     "reflection.Seq2",
}

// companions maps packages to packages below support that programs are linked with if they import them.
var companions = map[string]string{"log": "logs", "log/slog": "logs", "mime/multipart": "random"}

// generators maps packages whose functions are methods of one generator to the name of that generator in package
// support.
var generators = map[string]string{"math/rand": "Rand", "math/rand/v2": "RandV2"}

// constructors are functions of these packages that are not methods of a generator.
var constructors = map[string]bool{"New": true, "NewSource": true, "NewZipf": true, "NewPCG": true, "NewChaCha8": true}

// replacement returns the name in package support that replaces a name, or "" if there is none.
func replacement(path, name string, obj types.Object) string {
	if to := replaced[path][name]; to != "" {
		return to
	}
	generator := generators[path]
	if _, isFunc := obj.(*types.Func); generator == "" || !isFunc || constructors[name] {
		return ""
	}
	if path == "math/rand/v2" && name == "N" {
		return "N"
	}
	return generator + "." + name
}

// method returns what replaces a method that is selected, or nil if nothing does.
func (w *writer) method(s *ast.SelectorExpr) ast.Expr {
	sel := w.info.Selections[s]
	if sel == nil {
		return nil
	}
	f, ok := sel.Obj().(*types.Func)
	if !ok || f.Pkg() == nil || f.Pkg() == w.pkg {
		return nil
	}
	of := receiver(f)
	if of == nil {
		return nil
	}
	to := methods[f.Pkg().Path()+"."+of.Obj().Name()+"."+f.Name()]
	if to == "" {
		return nil
	}
	if sel.Kind() == types.MethodExpr {
		w.refuse("a method expression of " + of.Obj().Name() + "." + f.Name())
		return nil
	}
	return &ast.CallExpr{Fun: &ast.Ident{NamePos: s.Pos(), Name: w.standIn(to)}, Lparen: s.Sel.Pos(),
		Args: []ast.Expr{receiverOf(s, sel, f)}, Rparen: s.Sel.Pos()}
}

// receiver returns the named type whose method a function is, or nil.
func receiver(f *types.Func) *types.Named {
	if f.Signature().Recv() == nil {
		return nil
	}
	n, _ := types.Unalias(pointed(f.Signature().Recv().Type())).(*types.Named)
	return n
}

// receiverOf returns the receiver of a selected method, with the embedded fields that lead to it.
func receiverOf(s *ast.SelectorExpr, sel *types.Selection, f *types.Func) ast.Expr {
	x, t := s.X, sel.Recv()
	path := sel.Index()
	for _, i := range path[:len(path)-1] {
		field := pointed(t).Underlying().(*types.Struct).Field(i)
		x, t = &ast.SelectorExpr{X: x, Sel: &ast.Ident{NamePos: s.Pos(), Name: field.Name()}}, field.Type()
	}
	_, have := t.Underlying().(*types.Pointer)
	_, want := f.Signature().Recv().Type().(*types.Pointer)
	switch {
	case want && !have:
		return &ast.UnaryExpr{OpPos: s.Pos(), Op: token.AND, X: x}
	case have && !want:
		return &ast.StarExpr{Star: s.Pos(), X: x}
	}
	return x
}

// standIn returns the qualified name of a replacement, and has the text import its package.
func (w *writer) standIn(name string) string {
	below, of, apart := strings.Cut(name, ".")
	if !apart || below == "Rand" || below == "RandV2" {
		return w.support(name)
	}
	return w.below(below) + "." + of
}

// below returns the name under which the text imports a package below support.
func (w *writer) below(pkg string) string {
	name := w.name(strings.ToUpper(pkg[:1]) + pkg[1:])
	w.standIns[name] = supportPath + "/" + pkg
	return name
}
