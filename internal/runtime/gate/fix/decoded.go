package fix

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/lazy"
)

// These functions are added to a program that takes decoded JSON for a type of its own, or for JSON text.
const (
	fromJSON = `func fromJSON[T any](v any) (T, bool) {
	var out, none T
	text, err := json.Marshal(v)
	if v == nil || err != nil || json.Unmarshal(text, &out) != nil {
		return none, false
	}
	return out, true
}`
	textOfJSON = `func textOfJSON(v any) []byte {
	if s, ok := v.(string); ok {
		return []byte(s)
	}
	text, err := json.Marshal(v)
	if v == nil || err != nil {
		return nil
	}
	return text
}`
)

// given returns the edits that add a helper function to the program, or none if it is there already. ok is false if the
// program declares something else by that name.
func (m *fixer) given(name, decl string) (edits []edit, ok bool) {
	if f := m.function(name); f != nil {
		return nil, m.text(f) == decl
	}
	return []edit{m.end(decl)}, !m.declares(name)
}

// oneWord matches field names that encoding/json fills without a tag whatever naming style the JSON uses.
var oneWord = lazy.Regexp(`^[A-Z](?:[a-z0-9]*|[A-Z0-9]*)$`)

// ofStructs reports whether a type contains types of the program that JSON fills completely: all fields of structs are
// exported and have a tag or a name of one word.
func (m *fixer) ofStructs(t types.Type) bool {
	own := map[*types.Named]bool{}
	return m.filled(t, own) && len(own) > 0
}

// filled reports whether JSON fills the type, and collects the types of the program that it contains.
func (m *fixer) filled(t types.Type, own map[*types.Named]bool) bool {
	switch t := types.Unalias(t).(type) {
	case *types.Basic:
		return true
	case *types.Interface:
		return t.Empty()
	case *types.Slice:
		return m.filled(t.Elem(), own)
	case *types.Pointer:
		return m.filled(t.Elem(), own)
	case *types.Map:
		return isPlainString(t.Key()) && m.filled(t.Elem(), own)
	case *types.Named:
		if own[t] || t.Obj().Pkg() != m.Pkg || len(own) > 20 {
			return own[t]
		}
		own[t] = true
		if s, ok := t.Underlying().(*types.Struct); ok {
			return m.filledStruct(s, own)
		}
		u := types.TypeString(t.Underlying(), nil)
		return (u != "map[string]any" && u != "[]any" || types.NewMethodSet(types.NewPointer(t)).Len() > 0) &&
			m.filled(t.Underlying(), own)
	}
	return false
}

func (m *fixer) filledStruct(s *types.Struct, own map[*types.Named]bool) bool {
	for i := range s.NumFields() {
		f, tag := s.Field(i), s.Tag(i)
		if !f.Exported() || f.Embedded() || !strings.HasPrefix(tag, `json:"`) && !oneWord().MatchString(f.Name()) ||
			!m.filled(f.Type(), own) {
			return false
		}
	}
	return s.NumFields() > 0
}

// structured decodes an argument, or a member of the memory, that the program asserts to be one of its own structs or
// to contain such structs.
func (m *fixer) structured(n *ast.TypeAssertExpr, t types.Type, from origin) bool {
	if !m.ofStructs(t) || len(m.edits) > 0 || m.asksKind(n.X) {
		return false
	}
	edits, ok := m.given("fromJSON", fromJSON)
	if !ok {
		return false
	}
	const note = "JSON has no structs: it is decoded"
	value := "fromJSON[" + m.text(n.Type) + "](" + m.text(n.X) + ")"
	if from != ofArguments {
		return m.keptStructs(n, edits)
	}
	if m.commaOK(n) {
		return m.refuses(n) && m.fix(note, append(edits, m.replace(n, value))...)
	}
	as, ok := m.parents[n].(*ast.AssignStmt)
	if !ok || as.Tok != token.DEFINE || len(as.Lhs) != 1 || !m.inBlock(as) || isName(as.Lhs[0], "_") {
		return false
	}
	fails := m.failing(as, `recurgent.Fail("invalid_input", "an argument has not the form that is wanted")`)
	held := m.unused("fits", "decoded")
	return fails != "" && m.useHost(note, append(edits, m.after(as.Lhs[0], ", "+held), m.replace(n, value),
		m.after(as, "\nif !"+held+" {\n"+fails+"\n}"))...)
}

// keptStructs makes Run decode a member of the memory in place, before anything else.
func (m *fixer) keptStructs(n *ast.TypeAssertExpr, edits []edit) bool {
	run := m.function("Run")
	ix, ok := m.memberOf(n.X).(*ast.IndexExpr)
	if !ok || run == nil || !m.isKept(ix, run, m.Info.TypeOf(n.Type)) {
		return false
	}
	place := m.text(ix)
	value := "fromJSON[" + m.text(n.Type) + "](" + place + ")"
	at := m.offset(run.Body.Lbrace) + 1
	text := "\nif " + place + " != nil {\nheld, ok := " + value +
		"\nif !ok {\nreturn nil, errors.New(\"the memory holds another form\")\n}\n" + place + " = held\n}\n"
	return m.fix("JSON has no structs: that of the memory is decoded", append(edits, edit{at, at, text})...)
}

// unmarshalled repairs json.Unmarshal of an argument. The argument is decoded already, unless it is a string of JSON.
func (m *fixer) unmarshalled(c *ast.CallExpr) bool {
	if m.callee(c) != "json.Unmarshal" || len(c.Args) != 2 || !m.fillsMembers(c.Args[1]) {
		return false
	}
	x := ast.Unparen(c.Args[0])
	if conv, ok := x.(*ast.CallExpr); ok && len(conv.Args) == 1 && m.Info.Types[conv.Fun].IsType() {
		x = ast.Unparen(conv.Args[0])
	}
	if a, ok := x.(*ast.TypeAssertExpr); ok && a.Type != nil {
		x = ast.Unparen(a.X)
	}
	from, ok := m.isJSON(x)
	if !ok || from != ofArguments {
		return false
	}
	edits, ok := m.given("textOfJSON", textOfJSON)
	return ok && m.fix("arguments are decoded already", append(edits,
		m.replace(c.Args[0], "textOfJSON("+m.text(x)+")"))...)
}

// unmarshalledAt applies unmarshalled to the call that the assertion is an argument of.
func (m *fixer) unmarshalledAt(n *ast.TypeAssertExpr) bool {
	if isString(m.Info.TypeOf(n.Type)) {
		return false // JSON text, if the argument is a string
	}
	p := m.parents[n]
	if conv, ok := p.(*ast.CallExpr); ok && m.Info.Types[conv.Fun].IsType() {
		p = m.parents[conv]
	}
	c, ok := p.(*ast.CallExpr)
	return ok && len(c.Args) == 2 && c.Args[0].Pos() <= n.Pos() && n.End() <= c.Args[0].End() && m.unmarshalled(c)
}

// fillsMembers reports whether x is a list, a map, a struct, or a pointer to one.
func (m *fixer) fillsMembers(x ast.Expr) bool {
	t := m.Info.TypeOf(x)
	if t == nil {
		return false
	}
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	switch t.Underlying().(type) {
	case *types.Slice, *types.Map, *types.Struct:
		return true
	}
	return false
}

// boundList repairs call.Bind(&list) of a program that reads no other argument. Bind fills only structs, so the
// argument itself is meant.
func (m *fixer) boundList(c *ast.CallExpr, s *ast.SelectorExpr) bool {
	u, ok := ast.Unparen(c.Args[0]).(*ast.UnaryExpr)
	if !ok || u.Op != token.AND || len(m.terms.Parameters) > 1 || m.readsCall("Arg", "Args", "Kwargs") ||
		!m.readsCall("Bind") {
		return false
	}
	v := m.variable(u.X)
	if v == nil || !m.fillsMembers(c.Args[0]) {
		return false
	}
	if _, isStruct := v.Type().Underlying().(*types.Struct); isStruct {
		return false
	}
	name := v.Name()
	if len(m.terms.Parameters) == 1 {
		name = m.terms.Parameters[0].Name
	}
	edits, ok := m.given("textOfJSON", textOfJSON)
	return ok && isNameText().MatchString(name) && m.fix("Bind fills structs: the one argument is decoded",
		append(edits, m.replace(c, "json.Unmarshal(textOfJSON("+m.text(s.X)+".Arg(0, \""+name+"\")), "+
			m.text(c.Args[0])+")"))...)
}

// readsCall reports whether the program selects one of these members of the call. For Bind it must be exactly one
// place.
func (m *fixer) readsCall(names ...string) bool {
	times := 0
	ast.Inspect(m.file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if owner, name := m.hostMember(s); owner == "Call" && slices.Contains(names, name) {
				times++
			}
		}
		return true
	})
	return times == 1 || times > 1 && names[0] != "Bind"
}
