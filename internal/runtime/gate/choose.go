package gate

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// Engines that Choose decides between.
const (
	EngineYaegi = "yaegi"
	EngineSSA   = "ssa"
)

// Choose names the engine for a program: yaegi where everything the program is made of is on the list of what yaegi
// runs exactly as the toolchain does, else ssa.
func Choose(p *Program) string {
	if WhyNotYaegi(p) == "" {
		return EngineYaegi
	}
	return EngineSSA
}

// WhyNotYaegi returns the first thing in the program that is not on yaegi's list, or "". The list is what the differential tests
// prove; what nobody has tried is not on it.
func WhyNotYaegi(p *Program) string {
	u := p.Units[len(p.Units)-1]
	c := &chooser{info: u.Info, pkg: u.Pkg, calls: map[types.Object][]types.Object{}}
	for _, imp := range u.Pkg.Imports() {
		if !slices.Contains(yaegiPackages(), imp.Path()) {
			return "package " + imp.Path()
		}
	}
	if len(u.Info.Instances) > 0 {
		return "generics"
	}
	for _, f := range u.Files {
		if f.Name.Name != "tool" {
			return "another package name"
		}
		for _, d := range f.Decls {
			c.decl(d)
		}
	}
	if c.why == "" && c.recursive() {
		return "recursion" // the other engine bounds its depth
	}
	return c.why
}

func yaegiPackages() []string {
	return strings.Fields("recurgent strings strconv fmt math errors unicode unicode/utf8 regexp sort time html path net/url encoding/hex encoding/base64 encoding/json")
}

type chooser struct {
	info  *types.Info
	pkg   *types.Package
	fun   types.Object // the declared function that is looked at
	blank types.Type   // what was assigned to _ there
	loops []*ast.BlockStmt
	own   map[types.Object]bool // its variables that hold nothing but containers made there
	calls map[types.Object][]types.Object
	why   string
}

func (c *chooser) no(why string) bool {
	if c.why == "" {
		c.why = why
	}
	return false
}

func (c *chooser) decl(d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv != nil || d.Type.TypeParams != nil {
			c.no("methods and generic functions")
			return
		}
		if r := d.Type.Results; r != nil && len(r.List) > 0 && r.List[0].Names != nil {
			c.no("named results") // they keep what the last call left
			return
		}
		c.fun, c.blank, c.loops = c.info.Defs[d.Name], nil, nil
		c.findOwn(d)
		ast.Inspect(d, c.node)
	case *ast.GenDecl:
		switch d.Tok {
		case token.IMPORT:
			for _, s := range d.Specs {
				if s.(*ast.ImportSpec).Name != nil {
					c.no("renamed imports")
				}
			}
		case token.CONST:
			ast.Inspect(d, c.node)
		case token.VAR:
			for _, s := range d.Specs {
				c.packageVar(s.(*ast.ValueSpec))
			}
		default:
			c.no("declared types")
		}
	}
}

// packageVar allows compiled patterns and replacers alone: what they hold does not change, so that no run leaves anything to the next.
func (c *chooser) packageVar(s *ast.ValueSpec) {
	for _, name := range s.Names {
		switch t := c.info.Defs[name].Type().String(); t {
		case "*regexp.Regexp", "*strings.Replacer":
		default:
			c.no("package variables")
		}
	}
	for _, v := range s.Values {
		call, ok := v.(*ast.CallExpr)
		if !ok {
			c.no("package variables")
			return
		}
		for _, a := range call.Args {
			if c.info.Types[a].Value == nil {
				c.no("package variables")
			}
		}
		ast.Inspect(v, c.node)
	}
}

func (c *chooser) node(n ast.Node) bool {
	if c.why != "" {
		return false
	}
	if e, ok := n.(ast.Expr); ok {
		if tv, known := c.info.Types[e]; known && !tv.IsBuiltin() && !c.knownType(tv.Type, 0) {
			return c.no("type " + tv.Type.String())
		}
	}
	switch n := n.(type) {
	case *ast.BlockStmt:
		return len(n.List) > 0 || c.no("empty blocks")
	case *ast.IfStmt:
		return c.varies(n.Cond)
	case *ast.ForStmt:
		c.loops = append(c.loops, n.Body)
		if n.Cond == nil && n.Init != nil || (n.Init == nil) != (n.Post == nil) {
			return c.no("loops that lack one of their three parts") // the first of them was run again every time
		}
		if c.changesCounter(n) {
			return c.no("loop variables that the body changes") // the change is lost at the end of the round
		}
		return c.varies(n.Cond)
	case nil, *ast.CaseClause, *ast.DeclStmt, *ast.ValueSpec,
		*ast.ExprStmt, *ast.IncDecStmt, *ast.ReturnStmt, *ast.EmptyStmt, *ast.FuncDecl, *ast.FuncType, *ast.FieldList, *ast.Field,
		*ast.BasicLit, *ast.SliceExpr, *ast.IndexExpr, *ast.KeyValueExpr,
		*ast.ArrayType, *ast.MapType, *ast.InterfaceType, *ast.Ellipsis, *ast.Comment, *ast.CommentGroup, *ast.TypeAssertExpr:
		return c.slots(n)
	case *ast.GenDecl:
		if n.Tok == token.TYPE {
			return c.no("declared types")
		}
		return true
	case *ast.CompositeLit:
		elem := types.Type(nil)
		switch t := c.info.TypeOf(n).Underlying().(type) {
		case *types.Slice:
			elem = t.Elem()
		case *types.Map:
			elem = t.Elem()
		default:
			return c.no("literals of other than slices and maps")
		}
		for _, e := range n.Elts {
			if kv, ok := e.(*ast.KeyValueExpr); ok {
				e = kv.Value
			}
			if types.IsInterface(elem) && !c.settled(e) {
				return c.no("results of operators as elements of interface type")
			}
		}
		return true
	case *ast.ParenExpr:
		_, operator := n.X.(*ast.BinaryExpr)
		return operator || c.no("parentheses around other than an operator")
	case *ast.StarExpr:
		return c.info.Types[n].IsType() || c.no("pointers")
	case *ast.Ident:
		return c.ident(n)
	case *ast.SwitchStmt:
		return c.switches(n)
	case *ast.BranchStmt:
		return n.Label == nil && (n.Tok == token.BREAK || n.Tok == token.CONTINUE) || c.no("labels, goto and fallthrough")
	case *ast.RangeStmt:
		c.loops = append(c.loops, n.Body)
		if n.Key == nil {
			return c.no("ranges without variables")
		}
		switch t := c.info.TypeOf(n.X).Underlying().(type) {
		case *types.Slice:
			return n.Tok != token.ASSIGN || c.no("a range that assigns")
		case *types.Basic:
			if t.Info()&types.IsString == 0 || n.Tok == token.ASSIGN {
				return c.no("a range over integers")
			}
			_, plain := n.X.(*ast.Ident)
			key, _ := n.Key.(*ast.Ident)
			return plain && key.Name == "_" && c.info.Types[n.X].Value == nil || c.no("a range over a string for its indexes, or over no variable") // yaegi converts to runes first
		}
		return c.no("a range over other than slices and strings")
	case *ast.AssignStmt:
		return c.assign(n)
	case *ast.BinaryExpr:
		return c.binary(n)
	case *ast.UnaryExpr:
		if _, paren := n.X.(*ast.ParenExpr); paren && n.Op == token.NOT {
			return c.no("a negated parenthesis")
		}
		return n.Op == token.SUB || n.Op == token.NOT && c.varies(n.X) || n.Op == token.ADD || c.no("the operator "+n.Op.String())
	case *ast.SelectorExpr:
		return c.selector(n)
	case *ast.CallExpr:
		return c.call(n)
	}
	return c.no(strings.TrimPrefix(fmt.Sprintf("%T", n), "*ast."))
}

// changesCounter reports whether the body of a loop assigns to a variable that the loop declares.
func (c *chooser) changesCounter(n *ast.ForStmt) (found bool) {
	init, ok := n.Init.(*ast.AssignStmt)
	if !ok {
		return false
	}
	counts := func(e ast.Expr) bool {
		id, ok := e.(*ast.Ident)
		return ok && c.info.Uses[id] != nil && slices.ContainsFunc(init.Lhs, func(l ast.Expr) bool {
			counter, ok := l.(*ast.Ident)
			return ok && c.info.Defs[counter] == c.info.Uses[id]
		})
	}
	ast.Inspect(n.Body, func(s ast.Node) bool {
		switch s := s.(type) {
		case *ast.AssignStmt:
			found = found || slices.ContainsFunc(s.Lhs, counts)
		case *ast.IncDecStmt:
			found = found || counts(s.X)
		}
		return !found
	})
	return found
}

// switches allows those on a value of basic type and those on one condition a case.
func (c *chooser) switches(n *ast.SwitchStmt) bool {
	if n.Init != nil {
		return c.no("switches with a statement before them")
	}
	if n.Tag != nil {
		basic, plain := c.info.TypeOf(n.Tag).Underlying().(*types.Basic)
		return plain && basic.Info()&types.IsFloat == 0 || c.no("switches on other than plain values") // 0.5 has been case 0
	}
	for i, s := range n.Body.List {
		list := s.(*ast.CaseClause).List
		if list == nil && i < len(n.Body.List)-1 {
			return c.no("a default that is not last") // conditions after it have not been evaluated
		}
		if len(list) > 1 { // all but the first have been passed over
			return c.no("a case with several conditions")
		}
		if len(list) == 1 && !c.varies(list[0]) {
			return false
		}
	}
	return true
}

// slots refuses the forms of a listed construct that are not on the list.
func (c *chooser) slots(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.ReturnStmt:
		if sig, ok := c.fun.Type().(*types.Signature); ok && len(n.Results) == sig.Results().Len() {
			for i, r := range n.Results {
				if call, ok := r.(*ast.CallExpr); ok && i > 0 && (c.info.Types[call.Fun].IsBuiltin() || c.info.Types[call.Fun].IsType()) {
					return c.no("built-in calls as other than the first result") // they have gone to the first
				}
				if types.IsInterface(sig.Results().At(i).Type()) && !c.boxable(r) {
					return c.no("results of operators returned as interfaces")
				}
			}
		}
	case *ast.ValueSpec:
		if len(n.Names) > 1 && len(n.Values) > 1 && c.fun != nil {
			return c.no("several values assigned at once")
		}
		for i, v := range n.Values {
			if len(n.Names) == len(n.Values) && types.IsInterface(c.info.TypeOf(n.Names[i])) && !plainValue(v) {
				return c.no("results of operators assigned to interfaces")
			}
		}
	case *ast.SliceExpr:
		if n.Slice3 {
			return c.no("slices with a capacity")
		}
	case *ast.IncDecStmt:
		return c.plainNumber(c.info.TypeOf(n.X)) || c.no("arithmetic on sized numbers")
	case *ast.TypeAssertExpr:
		if n.Type == nil {
			return c.no("type switches")
		}
		if _, tuple := c.info.TypeOf(n).(*types.Tuple); !tuple {
			return c.no("assertions that may panic")
		}
	case *ast.BasicLit:
		if n.Kind == token.STRING && (strings.Contains(n.Value, "%T") || strings.Contains(n.Value, "#v")) {
			return c.no("names of types in texts")
		}
		return n.Kind != token.IMAG || c.no("complex numbers")
	}
	return true
}

func (c *chooser) ident(n *ast.Ident) bool {
	switch obj := c.info.ObjectOf(n).(type) {
	case *types.Builtin:
		return slices.Contains([]string{"len", "append", "make", "delete"}, obj.Name()) || c.no("the built-in "+obj.Name())
	case *types.Func:
		if obj.Pkg() == c.pkg && c.fun != nil && c.info.Defs[n] == nil {
			c.calls[c.fun] = append(c.calls[c.fun], obj)
		}
	case *types.Const:
		if obj.Name() == "iota" {
			return c.no("iota")
		}
	case *types.Var:
		if strings.HasPrefix(obj.Name(), "·") {
			return c.no("an order of evaluation that the language leaves open")
		}
	}
	return true
}

func (c *chooser) assign(n *ast.AssignStmt) bool {
	if n.Tok != token.ASSIGN && n.Tok != token.DEFINE {
		return c.plainNumber(c.info.TypeOf(n.Lhs[0])) && n.Tok != token.SHL_ASSIGN && n.Tok != token.SHR_ASSIGN ||
			isString(c.info.TypeOf(n.Lhs[0])) || c.no("arithmetic on sized numbers")
	}
	if len(n.Rhs) > 1 {
		return c.no("several values assigned at once")
	}
	if _, call := n.Rhs[0].(*ast.CallExpr); len(n.Lhs) > len(n.Rhs) && !call {
		if n.Tok == token.ASSIGN || slices.ContainsFunc(c.loops, func(b *ast.BlockStmt) bool { return b.Pos() < n.Pos() && n.Pos() < b.End() }) {
			return c.no("comma-ok forms that assign or are in loops") // where not ok they left the old value
		}
	}
	for i, l := range n.Lhs {
		if id, ok := l.(*ast.Ident); ok && id.Name == "_" && !c.blanks(n, i) {
			return false
		}
		if len(n.Lhs) == len(n.Rhs) && c.info.TypeOf(l) != nil && types.IsInterface(c.info.TypeOf(l)) && !plainValue(n.Rhs[i]) {
			return c.no("results of operators assigned to interfaces")
		}
		switch l := l.(type) {
		case *ast.Ident:
			if obj, ok := c.info.ObjectOf(l).(*types.Var); ok && obj.Parent() == c.pkg.Scope() {
				return c.no("package variables that change")
			}
		case *ast.IndexExpr:
			if len(n.Lhs) > 1 {
				return c.no("several values assigned at once")
			}
			if !c.mayChange(l.X) {
				return false
			}
		default:
			return c.no("assignments to fields and through pointers")
		}
	}
	return true
}

// blanks refuses values of several types for _ in one function, which is one variable to yaegi, and literals.
func (c *chooser) blanks(n *ast.AssignStmt, i int) bool {
	t := c.info.TypeOf(n.Rhs[min(i, len(n.Rhs)-1)])
	if tuple, ok := t.(*types.Tuple); ok {
		t = tuple.At(i).Type()
	} else if _, variable := n.Rhs[0].(*ast.Ident); !variable && len(n.Lhs) == len(n.Rhs) {
		return c.no("values given away")
	}
	if c.blank == nil {
		c.blank = t
	}
	return types.Identical(c.blank, t) || c.no("blanks of several types")
}

// recursive reports whether a declared function reaches itself.
func (c *chooser) recursive() bool {
	const active, done = 1, 2
	state := map[types.Object]int{}
	var visit func(o types.Object) bool
	visit = func(o types.Object) bool {
		switch state[o] {
		case active:
			return true
		case done:
			return false
		}
		state[o] = active
		if slices.ContainsFunc(c.calls[o], visit) {
			return true
		}
		state[o] = done
		return false
	}
	for o := range c.calls {
		if visit(o) {
			return true
		}
	}
	return false
}
