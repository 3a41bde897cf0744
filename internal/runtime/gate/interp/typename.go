package interp

import (
	"fmt"
	"go/types"
	"iter"
	"slices"
	"strconv"
	"strings"
)

// Names of types as the toolchain writes them into run-time types: fmt's %T and the texts of panics show them.

// typeName returns a named type's name, with type arguments without spaces and with full import paths. The type arguments of the function that declares
// the type come first; a semicolon separates them from the type's own.
func (tt *typeTable) typeName(t *types.Named) string {
	name := t.Obj().Name()
	if p := t.Obj().Pkg(); p != nil {
		name = p.Name() + "." + name
	}
	args := tt.argNames(slices.Values(tt.locals[t.Obj()]))
	if own := tt.argNames(t.TypeArgs().Types()); args != "" && own != "" {
		args += ";" + own
	} else {
		args += own
	}
	if args == "" {
		return name
	}
	return name + "[" + args + "]"
}

func (tt *typeTable) argNames(args iter.Seq[types.Type]) string {
	var names []string
	for a := range args {
		names = append(names, tt.argName(a))
	}
	return strings.Join(names, ",")
}

// argName returns the name of a type as an argument of another: with whole paths.
func (tt *typeTable) argName(t types.Type) string {
	switch t := types.Unalias(t).(type) {
	case *types.Basic:
		return basicType(t).String()
	case *types.Named:
		p := t.Obj().Pkg()
		if p == nil {
			return t.Obj().Name()
		}
		return p.Path() + "." + strings.TrimPrefix(tt.typeName(t), p.Name()+".") + tt.number(t.Obj())
	case *types.Pointer:
		return "*" + tt.argName(t.Elem())
	case *types.Slice:
		return "[]" + tt.argName(t.Elem())
	case *types.Array:
		return fmt.Sprintf("[%d]%s", t.Len(), tt.argName(t.Elem()))
	case *types.Map:
		return "map[" + tt.argName(t.Key()) + "]" + tt.argName(t.Elem())
	case *types.Chan:
		elem := tt.argName(t.Elem())
		if strings.HasPrefix(elem, "<-") && t.Dir() != types.RecvOnly {
			elem = "(" + elem + ")"
		}
		return map[types.ChanDir]string{types.SendRecv: "chan ", types.SendOnly: "chan<- ", types.RecvOnly: "<-chan "}[t.Dir()] + elem
	case *types.Signature:
		return "func" + tt.signatureName(t)
	case *types.Struct:
		return structForm(t, tt.argName, func(v *types.Var) string { return v.Pkg().Path() })
	case *types.Interface:
		return interfaceForm(t, tt.signatureName, func(m *types.Func) string { return m.Pkg().Path() })
	}
	return t.String()
}

// signatureName returns parameters and results.
func (tt *typeTable) signatureName(t *types.Signature) string {
	params := make([]string, t.Params().Len())
	for i := range params {
		params[i] = tt.argName(t.Params().At(i).Type())
	}
	if n := len(params) - 1; t.Variadic() {
		params[n] = "..." + strings.TrimPrefix(params[n], "[]")
	}
	results := make([]string, t.Results().Len())
	for i := range results {
		results[i] = tt.argName(t.Results().At(i).Type())
	}
	out := "(" + strings.Join(params, ", ") + ")"
	switch len(results) {
	case 0:
		return out
	case 1:
		return out + " " + results[0]
	}
	return out + " (" + strings.Join(results, ", ") + ")"
}

// interfaceName returns the name of an interface type without one.
func (tt *typeTable) interfaceName(t types.Type) string {
	signature := func(s *types.Signature) string { return strings.TrimPrefix(tt.of(s).String(), "func") }
	return interfaceForm(t.(*types.Interface), signature, func(m *types.Func) string { return m.Pkg().Name() })
}

// structName returns the name of a struct type without one.
func (tt *typeTable) structName(t types.Type) string {
	return structForm(t.(*types.Struct), func(t types.Type) string { return tt.of(t).String() }, nil)
}

// interfaceForm writes an interface type: its methods sorted, unexported ones with their package.
func interfaceForm(t *types.Interface, signature func(*types.Signature) string, pkg func(*types.Func) string) string {
	list := make([]string, t.NumMethods())
	for i := range list {
		m := t.Method(i)
		list[i] = m.Name() + signature(noReceiver(m.Signature()))
		if !m.Exported() {
			list[i] = pkg(m) + "." + list[i]
		}
	}
	if len(list) == 0 {
		return "interface {}"
	}
	slices.Sort(list)
	return "interface { " + strings.Join(list, "; ") + " }"
}

// namedLike reports whether the toolchain takes an embedded field's name for that of its type. It does not for predeclared types, names
// that stand for other types, instances of generic ones, and those that functions declare.
func namedLike(f *types.Var) bool {
	t := types.Unalias(f.Type())
	if p, ok := t.(*types.Pointer); ok {
		t = types.Unalias(p.Elem())
	}
	n, ok := t.(*types.Named)
	return ok && n.Obj().Pkg() != nil && n.Obj().Parent() == n.Obj().Pkg().Scope() && n.Obj().Name() == f.Name() && n.TypeArgs().Len() == 0
}

// structForm writes a struct type: where pkg is not nil, unexported names stand with their package.
func structForm(t *types.Struct, name func(types.Type) string, pkg func(*types.Var) string) string {
	list := make([]string, t.NumFields())
	for i := range list {
		f := t.Field(i)
		list[i] = name(f.Type())
		if !f.Embedded() {
			list[i] = f.Name() + " " + list[i]
		}
		if pkg != nil && f.Embedded() && !namedLike(f) {
			list[i] = f.Name() + " = " + list[i]
		}
		if pkg != nil && !f.Exported() && strings.HasPrefix(list[i], f.Name()+" ") {
			list[i] = pkg(f) + "." + list[i]
		}
		if tag := t.Tag(i); tag != "" {
			list[i] += " " + strconv.Quote(tag)
		}
	}
	if len(list) == 0 {
		return "struct {}"
	}
	return "struct { " + strings.Join(list, "; ") + " }"
}
