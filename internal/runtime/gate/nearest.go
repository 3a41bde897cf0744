package gate

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ast/astutil"
)

// Limits of a hint that lists members of a package or a type.
const (
	maxNearest      = 5
	maxNearestBytes = 500
)

// nearest returns the names that are most like the one that is wanted, the most alike first: at most maxNearest.
func nearest(names []string, wanted string) []string {
	wanted = strings.ToLower(wanted)
	distance := map[string]int{}
	for _, name := range names {
		lower := strings.ToLower(name)
		d := editDistance(lower, wanted)
		switch limit := 1 + len(wanted)/3; {
		case strings.HasPrefix(lower, wanted) || strings.HasPrefix(wanted, lower) && len(lower) > 2:
			d = min(d, 2)
		case strings.Contains(lower, wanted) || strings.Contains(wanted, lower) && len(lower) > 3:
			d = min(d, 3)
		case d > limit && !(len(wanted) > 1 && strings.HasPrefix(lower, wanted[:2])):
			continue
		}
		distance[name] = d
	}
	var found []string
	for name := range distance {
		found = append(found, name)
	}
	slices.SortFunc(found, func(a, b string) int {
		return cmp.Or(cmp.Compare(distance[a], distance[b]), strings.Compare(a, b))
	})
	return found[:min(len(found), maxNearest)]
}

// nearMembers returns the members of a package that are most like the name that it lacks or, if there are none, the
// functions of a small package.
func (c *check) nearMembers(path string, names []string, lacks string) []types.Object {
	const small = 12 // functions
	var near, functions []types.Object
	members := c.gate.lib.shown[path].Scope()
	for _, n := range nearest(names, lacks) {
		near = append(near, members.Lookup(n))
	}
	for _, n := range names {
		if f, ok := members.Lookup(n).(*types.Func); ok {
			functions = append(functions, f)
		}
	}
	if len(near) == 0 && len(functions) <= small {
		return functions
	}
	return near
}

// editDistance returns how many bytes must be inserted, deleted or replaced to make one text of the other. Names are
// short; of longer ones only the beginnings are compared.
func editDistance(a, b string) int {
	const longest = 40
	a, b = a[:min(len(a), longest)], b[:min(len(b), longest)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := before
			if a[i] != b[j] {
				change++
			}
			before = row[j+1]
			row[j+1] = min(change, row[j]+1, before+1)
		}
	}
	return row[len(b)]
}

// described lists objects with their signatures, up to the limit of a hint.
func described(objects []types.Object) string {
	var b strings.Builder
	for _, o := range objects {
		text := o.Name()
		if f, ok := o.(*types.Func); ok {
			text += strings.TrimPrefix(types.TypeString(f.Type(), packageName), "func")
		}
		if b.Len()+len(text) > maxNearestBytes {
			continue
		}
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		b.WriteString(text)
	}
	return b.String()
}

// libraryHint describes the member of a library that a type error is about: the members of a type that are most like
// one that it lacks, or the signature of a function whose argument does not fit. It returns "" if there is none.
func (c *check) libraryHint(e types.Error) string {
	path, _ := astutil.PathEnclosingInterval(c.file, e.Pos, e.Pos)
	for _, n := range path {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if strings.Contains(e.Msg, "has no field or method") {
				return c.lackingHint(n)
			}
		case *ast.CallExpr:
			if strings.Contains(e.Msg, "in argument to ") || strings.Contains(e.Msg, "arguments in call to ") {
				return c.signatureHint(n)
			}
		case ast.Stmt:
			return ""
		}
	}
	return ""
}

// lackingHint lists the members that are most like the selected one, which the type of a library lacks.
func (c *check) lackingHint(s *ast.SelectorExpr) string {
	t := c.info.TypeOf(s.X)
	if t == nil {
		return ""
	}
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	named, ok := types.Unalias(t).(*types.Named)
	if !ok || named.Obj().Pkg() == nil || named.Obj().Pkg() == c.pkg {
		return ""
	}
	members := map[string]types.Object{}
	addFields(members, named, 0)
	for m := range types.NewMethodSet(types.NewPointer(named)).Methods() {
		members[m.Obj().Name()] = m.Obj()
	}
	var names []string
	for name := range members {
		if ast.IsExported(name) {
			names = append(names, name)
		}
	}
	var near []types.Object
	for _, name := range nearest(names, s.Sel.Name) {
		near = append(near, members[name])
	}
	if len(near) == 0 {
		return ""
	}
	return fmt.Sprintf("A %s has %s.", types.TypeString(named, packageName), described(near))
}

// addFields adds the fields of a struct and of those that it embeds.
func addFields(members map[string]types.Object, t types.Type, depth int) {
	s, ok := t.Underlying().(*types.Struct)
	if !ok || depth > 4 {
		return
	}
	for f := range s.Fields() {
		if f.Embedded() {
			addFields(members, f.Type(), depth+1)
		}
		members[f.Name()] = f
	}
}

// signatureHint returns the signature of the library function that a call names, or "".
func (c *check) signatureHint(call *ast.CallExpr) string {
	s, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	f, ok := c.info.Uses[s.Sel].(*types.Func)
	if !ok || f.Pkg() == nil || f.Pkg() == c.pkg {
		return ""
	}
	if text := described([]types.Object{f}); text != "" {
		return types.ExprString(s.X) + "." + text + " is its signature."
	}
	return ""
}
