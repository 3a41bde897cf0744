package fix

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
)

// A use is what a program does with the bytes of a file.
type use int

const (
	neutral  use = iota // as much with text as with bytes: it compares them with nil, or closes the file
	isText              // it reads text
	mayBytes            // it may need the bytes as they are
)

// textReaders are functions that take bytes, or a reader of them, for text.
var textReaders = []string{"encoding/csv.NewReader", "bufio.NewScanner", "encoding/json.NewDecoder",
	"encoding/xml.NewDecoder", allow.Page + ".Parse", "encoding/json.Unmarshal", "encoding/json.Valid",
	"encoding/xml.Unmarshal", "bytes.Split", "bytes.SplitN", "bytes.Fields", "bytes.Lines", "bytes.SplitSeq",
	"bytes.FieldsSeq"}

// passing are functions whose result holds the bytes of their first argument, or reads them.
var passing = []string{"io.ReadAll", "bufio.NewReader", "bufio.NewReaderSize", "bytes.NewReader", "bytes.NewBuffer",
	"bytes.TrimSpace", "bytes.TrimPrefix", "bytes.ReplaceAll", "strings.NewReader", "bytes.NewBufferString"}

// looking are functions that learn something of the bytes, and keep none.
var looking = []string{"unicode/utf8.Valid", "bytes.HasPrefix", "bytes.Contains", "bytes.Count"}

// A textFlow follows the bytes of one file through a program.
type textFlow struct {
	*fixer
	seen map[*types.Var]bool
}

func (m *fixer) newTextFlow() *textFlow { return &textFlow{m, map[*types.Var]bool{}} }

// result returns the use of the first result of a call.
func (t *textFlow) result(call ast.Expr) use {
	as, ok := t.parents[call].(*ast.AssignStmt)
	if !ok {
		return t.expression(call)
	}
	at := slices.Index(as.Rhs, call)
	if at < 0 || len(as.Lhs) <= at {
		return mayBytes
	}
	return t.variable(t.fixer.variable(as.Lhs[at]), as)
}

// variable returns the use of a variable that def sets to bytes of the file. Other statements may set it only to
// another file, or to what they make of itself.
func (t *textFlow) variable(v *types.Var, def ast.Node) use {
	if v == nil || v.Parent() == v.Pkg().Scope() {
		return mayBytes
	}
	if t.seen[v] {
		return neutral
	}
	t.seen[v] = true
	found := neutral
	for _, id := range t.usesOf(v) {
		if as, ok := t.parents[id].(*ast.AssignStmt); ok && slices.Contains(as.Lhs, ast.Expr(id)) {
			if ast.Node(as) != def && !t.ofFile(as, v) {
				return mayBytes
			}
			continue
		}
		found = max(found, t.expression(id))
	}
	return found
}

// ofFile reports whether an assignment sets the variable to another file, or to what a call makes of itself.
func (t *textFlow) ofFile(as *ast.AssignStmt, v *types.Var) bool {
	if len(as.Rhs) != 1 {
		return false
	}
	call, ok := as.Rhs[0].(*ast.CallExpr)
	if !ok || len(call.Args) == 0 {
		return false
	}
	if s, ok := call.Fun.(*ast.SelectorExpr); ok && t.takesFile(s) {
		return true
	}
	return t.fixer.variable(call.Args[0]) == v && slices.Contains(passing, t.calledName(call))
}

// expression returns the use of the bytes that an expression stands for.
func (t *textFlow) expression(x ast.Expr) use {
	switch p := t.parents[x].(type) {
	case *ast.ParenExpr:
		return t.expression(p)
	case *ast.CallExpr:
		if p.Fun != x {
			return t.argument(p, slices.Index(p.Args, x))
		}
	case *ast.SelectorExpr:
		return t.method(p)
	case *ast.BinaryExpr:
		if p.Op == token.EQL || p.Op == token.NEQ {
			return neutral
		}
	case *ast.TypeAssertExpr:
		if types.ExprString(p.Type) == "io.Closer" {
			return neutral
		}
	case *ast.AssignStmt:
		if at := slices.Index(p.Rhs, x); at >= 0 && len(p.Lhs) == len(p.Rhs) {
			return t.variable(t.fixer.variable(p.Lhs[at]), p)
		}
	}
	return mayBytes
}

// argument returns the use of an argument of a call.
func (t *textFlow) argument(call *ast.CallExpr, at int) use {
	if t.Info.Types[call.Fun].IsType() {
		if isPlainString(t.Info.TypeOf(call)) {
			return t.string(call)
		}
		return mayBytes
	}
	switch name := t.calledName(call); {
	case at == 0 && slices.Contains(textReaders, name):
		return isText
	case at == 0 && slices.Contains(passing, name):
		return t.result(call)
	case slices.Contains(looking, name):
		return neutral
	}
	id, _ := ast.Unparen(call.Fun).(*ast.Ident)
	if id == nil {
		return mayBytes
	}
	if _, ok := t.Info.Uses[id].(*types.Builtin); ok && id.Name == "len" {
		if b, ok := t.parents[call].(*ast.BinaryExpr); ok && (b.Op == token.EQL || b.Op == token.GTR) &&
			t.text(b.Y) == "0" {
			return neutral
		}
		return mayBytes
	}
	f, ok := t.Info.Uses[id].(*types.Func)
	if !ok || f.Signature().Variadic() || at >= f.Signature().Params().Len() {
		return mayBytes
	}
	return t.variable(f.Signature().Params().At(at), nil)
}

// method returns the use of a reader whose method the program calls.
func (t *textFlow) method(s *ast.SelectorExpr) use {
	switch s.Sel.Name {
	case "ReadString", "ReadBytes", "ReadLine", "ReadRune", "String":
		return isText
	case "Peek", "Discard", "UnreadRune", "Close":
		return neutral
	}
	return mayBytes
}

// string returns the use of a string of the bytes: text, unless the program makes bytes or a reader of it again.
func (t *textFlow) string(x ast.Expr) use {
	switch p := t.parents[x].(type) {
	case *ast.CallExpr:
		if t.Info.Types[p.Fun].IsType() && types.TypeString(t.Info.TypeOf(p), nil) == "[]byte" {
			return t.expression(p)
		}
		if slices.Contains(passing, t.calledName(p)) {
			return t.result(p)
		}
	case *ast.AssignStmt:
		at := slices.Index(p.Rhs, x)
		v := t.fixer.variable(p.Lhs[min(max(at, 0), len(p.Lhs)-1)])
		if at < 0 || v == nil {
			return mayBytes
		}
		found := isText
		for _, id := range t.usesOf(v) {
			if call, ok := t.parents[id].(*ast.CallExpr); ok && call.Fun != ast.Expr(id) {
				found = max(found, t.string(id))
			}
		}
		return found
	}
	return isText
}
