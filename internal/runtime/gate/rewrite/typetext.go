package rewrite

import (
	"go/types"
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
)

// typeText returns the text of a type at package level. A predeclared name that the program redeclares is taken from
// package support.
func (w *writer) typeText(t types.Type) string {
	switch t := t.(type) {
	case *types.Basic:
		return w.universe(t.Name())
	case *types.Named:
		return w.named(t.Obj(), t.TypeArgs())
	case *types.Alias:
		return w.named(t.Obj(), t.TypeArgs())
	case *types.Pointer:
		return "*" + w.typeText(t.Elem())
	case *types.Slice:
		return "[]" + w.typeText(t.Elem())
	case *types.Array:
		return "[" + strconv.FormatInt(t.Len(), 10) + "]" + w.typeText(t.Elem())
	case *types.Map:
		return "map[" + w.typeText(t.Key()) + "]" + w.typeText(t.Elem())
	case *types.Chan:
		return [...]string{types.SendRecv: "chan ", types.SendOnly: "chan<- ", types.RecvOnly: "<-chan "}[t.Dir()] +
			"(" + w.typeText(t.Elem()) + ")"
	case *types.Struct:
		return "struct{ " + strings.Join(w.fields(t), "; ") + " }"
	case *types.Signature:
		return "func" + w.signature(t)
	case *types.Interface:
		return "interface{ " + strings.Join(w.methods(t), "; ") + " }"
	}
	w.refuse("a variable has the type " + t.String())
	return "any"
}

// universe returns the text of a predeclared name.
func (w *writer) universe(name string) string {
	if w.pkg.Scope().Lookup(name) == nil {
		return name
	}
	return w.support(strings.ToUpper(name[:1]) + name[1:])
}

// named returns the name of a type with its type arguments.
func (w *writer) named(o *types.TypeName, args *types.TypeList) string {
	name := o.Name()
	switch p := o.Pkg(); p {
	case nil:
		return w.universe(name)
	case w.pkg:
	default:
		path := allow.SeenPath(p.Path())
		if to := replacement(path, name, o); to != "" {
			return w.standIn(to) // it has no type parameters
		}
		if _, ok := allow.Find(path); !ok {
			w.refuse("a variable has a type of " + path)
		}
		if w.imports[p] == "" {
			w.imports[p] = w.name("Import") + strconv.Itoa(len(w.imports))
		}
		name = w.imports[p] + "." + name
	}
	var list []string
	for t := range args.Types() {
		list = append(list, w.typeText(t))
	}
	if list == nil {
		return name
	}
	return name + "[" + strings.Join(list, ", ") + "]"
}

// fields returns the text of each field, with its tag.
func (w *writer) fields(t *types.Struct) (list []string) {
	for i := range t.NumFields() {
		f := t.Field(i)
		text := w.typeText(f.Type())
		if !f.Embedded() {
			text = f.Name() + " " + text
		}
		if tag := t.Tag(i); tag != "" {
			text += " " + strconv.Quote(tag)
		}
		list = append(list, text)
	}
	return list
}

// methods returns the text of each method and embedded type.
func (w *writer) methods(t *types.Interface) (list []string) {
	for m := range t.ExplicitMethods() {
		list = append(list, m.Name()+w.signature(m.Signature()))
	}
	for e := range t.EmbeddedTypes() {
		list = append(list, w.typeText(e))
	}
	return list
}

// signature returns the text of parameters and results.
func (w *writer) signature(t *types.Signature) string {
	var params, results []string
	for i := range t.Params().Len() {
		p := t.Params().At(i).Type()
		if s, ok := p.(*types.Slice); ok && t.Variadic() && i == t.Params().Len()-1 {
			params = append(params, "..."+w.typeText(s.Elem()))
			continue
		}
		params = append(params, w.typeText(p))
	}
	for r := range t.Results().Variables() {
		results = append(results, w.typeText(r.Type()))
	}
	text := "(" + strings.Join(params, ", ") + ")"
	if results == nil {
		return text
	}
	return text + " (" + strings.Join(results, ", ") + ")"
}
