package gate

import (
	"encoding/json"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
)

// Limits of the lists in Facts. Lists over the limit are cut, and longer literals are left out.
const (
	maxLiterals     = 256
	maxLiteralBytes = 200
	maxKeys         = 64
)

// factFinder collects facts from the typed tree. Comments, strings and the program's own names cannot mislead it.
type factFinder struct {
	c        *check
	f        Facts
	patterns map[string]bool // kinds of history queries
	caps     map[string]bool
	reads    map[string]bool
	writes   map[string]bool
	history  map[types.Object]bool // variables that hold history records
	context  map[types.Object]bool // variables that hold the session's context
	// skip marks nodes that are already counted, such as uses of Context, and literals that are names and not data.
	skip     map[ast.Node]bool
	literals map[string]bool
}

// facts returns the facts about a program that passed all checks.
func (c *check) facts() Facts {
	ff := &factFinder{c: c, patterns: map[string]bool{}, caps: map[string]bool{}, reads: map[string]bool{},
		writes:  map[string]bool{},
		history: map[types.Object]bool{}, context: map[types.Object]bool{},
		skip: map[ast.Node]bool{}, literals: map[string]bool{}}
	ff.imports()
	// The aliases must be known before visit counts the uses of history and context.
	ff.aliases()
	ast.Inspect(c.file, ff.visit)
	ff.historyQueries()
	f := &ff.f
	f.HistoryPatterns = sorted(ff.patterns, maxKeys)
	f.CapabilityPatterns = sorted(ff.caps, maxKeys)
	f.ContextReads, f.ContextWrites = sorted(ff.reads, maxKeys), sorted(ff.writes, maxKeys)
	f.Literals = sorted(ff.literals, maxLiterals)
	return *f
}

func sorted(m map[string]bool, limit int) []string {
	list := slices.Sorted(maps.Keys(m))
	return list[:min(len(list), limit)]
}

// imports records the import paths, and marks their literals as names.
func (ff *factFinder) imports() {
	set := map[string]bool{}
	for _, spec := range ff.c.file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		ff.skip[spec.Path] = true
		set[path] = true
	}
	ff.f.Imports = sorted(set, maxKeys)
}

// hostMember returns the host type and the name of the field or method that a selection refers to, or two empty strings
// if it refers to none.
func (ff *factFinder) hostMember(s *ast.SelectorExpr) (typ, member string) {
	sel := ff.c.info.Selections[s]
	if sel == nil {
		return "", ""
	}
	t := sel.Recv()
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	n, ok := types.Unalias(t).(*types.Named)
	if !ok || n.Obj().Pkg() == nil || n.Obj().Pkg().Path() != allow.HostPath {
		if sel.Obj().Pkg() == nil || sel.Obj().Pkg().Path() != allow.HostPath {
			return "", ""
		}
		return "Call", sel.Obj().Name() // promoted from an embedded Call
	}
	return n.Obj().Name(), sel.Obj().Name()
}

// packageCall returns the import path and name of the package function that is called, or two empty strings for any
// other call.
func (ff *factFinder) packageCall(call *ast.CallExpr) (path, name string) {
	fun := ast.Unparen(call.Fun)
	if ix, ok := fun.(*ast.IndexExpr); ok {
		fun = ix.X
	}
	s, ok := fun.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	fn, ok := ff.c.info.Uses[s.Sel].(*types.Func)
	if !ok || fn.Pkg() == nil || fn.Signature().Recv() != nil {
		return "", ""
	}
	return fn.Pkg().Path(), fn.Name()
}

// visit records the facts in one node. Parents come first, so they can mark nodes below them in skip.
func (ff *factFinder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.SelectorExpr:
		ff.skip[ast.Unparen(n.X)] = true
		ff.member(n)
		ff.capability(n)
	case *ast.CallExpr:
		ff.call(n)
	case *ast.AssignStmt:
		ff.assign(n)
	case *ast.IncDecStmt:
		if ix, ok := ast.Unparen(n.X).(*ast.IndexExpr); ok && ff.isContext(ix.X) {
			ff.key(ff.writes, ix.Index)
		}
	case *ast.IndexExpr:
		if ff.isContext(n.X) && !ff.skip[n] {
			ff.key(ff.reads, n.Index)
			ff.skip[ast.Unparen(n.X)] = true
		}
	case *ast.StarExpr:
		ff.skip[ast.Unparen(n.X)] = ff.skip[n]
	// An alias of the context that is neither indexed nor assigned, or the call itself, counts as reading all keys.
	case *ast.Ident:
		if obj := ff.c.info.Uses[n]; obj != nil && (ff.context[obj] || isHostCall(obj)) && !ff.skip[n] {
			ff.reads["*"] = true
		}
	case *ast.Field:
		ff.tag(n.Tag)
	case *ast.BasicLit:
		ff.literal(n)
	}
	return true
}

// assign records the context keys that an assignment writes. An alias of the context is not counted here; its uses are.
func (ff *factFinder) assign(n *ast.AssignStmt) {
	for _, l := range n.Lhs {
		if ix, ok := ast.Unparen(l).(*ast.IndexExpr); ok && ff.isContext(ix.X) {
			ff.key(ff.writes, ix.Index)
			if n.Tok != token.ASSIGN {
				ff.key(ff.reads, ix.Index)
			}
			ff.skip[ix] = true
			ff.skip[ast.Unparen(ix.X)] = true
		}
	}
	if len(n.Lhs) != len(n.Rhs) {
		return
	}
	for i, r := range n.Rhs {
		if _, ok := n.Lhs[i].(*ast.Ident); ok && ff.isContext(r) {
			ff.skip[n.Lhs[i]], ff.skip[ast.Unparen(r)] = true, true
		}
	}
}

// tag records what a struct tag, which may be nil, reveals about the format that the program reads.
func (ff *factFinder) tag(t *ast.BasicLit) {
	if t == nil {
		return
	}
	ff.skip[t] = true
	if strings.Contains(t.Value, "xml:") && (strings.Contains(t.Value, "channel") ||
		strings.Contains(t.Value, "item") || strings.Contains(t.Value, "entry")) {
		ff.caps["rss_parse"] = true
	}
}

// key records a context key, or "*" if the key is not a constant.
func (ff *factFinder) key(set map[string]bool, e ast.Expr) {
	tv := ff.c.info.Types[e]
	if tv.Value == nil || tv.Value.Kind() != constant.String {
		set["*"] = true
		return
	}
	ff.skip[ast.Unparen(e)] = true
	if k := constant.StringVal(tv.Value); len(k) <= maxLiteralBytes {
		set[k] = true
	}
}

// member records the use of a field or method of the host package.
func (ff *factFinder) member(s *ast.SelectorExpr) {
	typ, m := ff.hostMember(s)
	f := &ff.f
	if typ == "Tool" && (m == "Call" || m == "CallWith") {
		f.UsesTools = true
	}
	if typ != "Call" {
		return
	}
	switch m {
	case "Args", "Kwargs", "Arg", "Bind":
		f.UsesArgs = true
	case "History", "HistoryAll", "HistoryPage":
		f.HistoryAccess = true
		if m == "HistoryPage" {
			ff.patterns["slice"] = true
		}
	case "Tool", "Tools":
		f.UsesTools = true
	case "Delegate":
		f.UsesDelegate, f.UsesTools = true, true
	case "Fetch", "FetchWith", "FetchFile":
		f.UsesFetch = true
		ff.caps["http_fetch"] = true
	case "Content":
		f.UsesContent = true
	case "Context":
		if !ff.skip[s] { // parents are visited first: an index expression or an alias has marked it
			ff.reads["*"] = true
		}
	}
}

// call records prints, patterns for HTML, and built-ins that read or change the context.
func (ff *factFinder) call(call *ast.CallExpr) {
	ff.handsOn(call)
	if s, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok {
		if typ, m := ff.hostMember(s); typ == "Call" && m == "Arg" {
			for _, a := range call.Args {
				ff.skip[ast.Unparen(a)] = true // position and name are not data
			}
		}
	}
	path, name := ff.packageCall(call)
	ff.f.Prints = ff.f.Prints || path == "fmt" && strings.HasPrefix(name, "Print")
	if path == "regexp" && len(call.Args) > 0 {
		if v := ff.c.info.Types[call.Args[0]].Value; v != nil && v.Kind() == constant.String &&
			strings.Contains(constant.StringVal(v), "<") &&
			!strings.Contains(constant.StringVal(v), "(?P<") && !strings.Contains(constant.StringVal(v), "(?<") {
			ff.caps["html_extract"] = true
		}
	}
	if id, ok := ast.Unparen(call.Fun).(*ast.Ident); ok {
		b, ok := ff.c.info.Uses[id].(*types.Builtin)
		ff.f.Prints = ff.f.Prints || ok && strings.HasPrefix(b.Name(), "print")
		if ok && len(call.Args) > 0 && ff.isContext(call.Args[0]) {
			switch b.Name() {
			case "delete":
				if len(call.Args) == 2 {
					ff.key(ff.writes, call.Args[1])
				}
			case "clear":
				ff.writes["*"] = true
			case "len":
				ff.reads["*"] = true
			}
			ff.skip[ast.Unparen(call.Args[0])] = true
		}
	}
}

// literal records a string or number as JSON. A character literal is neither.
func (ff *factFinder) literal(lit *ast.BasicLit) {
	if ff.skip[lit] || !lit.Pos().IsValid() { // a name, or added by the gate
		return
	}
	v := constant.MakeFromLiteral(lit.Value, lit.Kind, 0)
	text := ""
	switch v.Kind() {
	case constant.String:
		if s := constant.StringVal(v); len(s) <= maxLiteralBytes {
			text = spelled(s)
		}
	case constant.Int, constant.Float:
		if f, _ := constant.Float64Val(v); lit.Kind != token.CHAR {
			text = spelled(f)
		}
	}
	if text != "" && len(text) <= maxLiteralBytes {
		ff.literals[text] = true
	}
}

// spelled returns the JSON of a string or a number, or "" for a number that has none.
func spelled(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // infinities cannot be encoded
	return strings.TrimSuffix(b.String(), "\n")
}
