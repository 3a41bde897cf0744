package order

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strconv"
)

// typeExpr returns the expression for a type as the program can write it at a position; nil if it cannot.
func (o *orderer) typeExpr(t types.Type, at token.Pos) ast.Expr {
	switch t := t.(type) {
	case *types.Basic:
		return o.typeName(types.Universe.Lookup(t.Name()), at)
	case *types.Named:
		return o.instance(t.Obj(), t.TypeArgs(), at)
	case *types.Alias:
		return o.instance(t.Obj(), t.TypeArgs(), at)
	case *types.TypeParam:
		return o.typeName(t.Obj(), at)
	case *types.Pointer:
		if elem := o.typeExpr(t.Elem(), at); elem != nil {
			return &ast.StarExpr{Star: at, X: elem}
		}
	case *types.Slice:
		if elem := o.typeExpr(t.Elem(), at); elem != nil {
			return &ast.ArrayType{Lbrack: at, Elt: elem}
		}
	case *types.Array:
		if elem := o.typeExpr(t.Elem(), at); elem != nil {
			return &ast.ArrayType{Lbrack: at, Len: number(&ast.Ident{NamePos: at}, int(t.Len())), Elt: elem}
		}
	case *types.Map:
		key, elem := o.typeExpr(t.Key(), at), o.typeExpr(t.Elem(), at)
		if key != nil && elem != nil {
			return &ast.MapType{Map: at, Key: key, Value: elem}
		}
	case *types.Chan:
		if elem := o.typeExpr(t.Elem(), at); elem != nil {
			dir := map[types.ChanDir]ast.ChanDir{types.SendRecv: ast.SEND | ast.RECV, types.SendOnly: ast.SEND, types.RecvOnly: ast.RECV}[t.Dir()]
			return &ast.ChanType{Begin: at, Arrow: at, Dir: dir, Value: &ast.ParenExpr{Lparen: at, X: elem, Rparen: at}}
		}
	case *types.Signature:
		return o.funcType(t, at, "")
	case *types.Struct:
		return o.structType(t, at)
	case *types.Interface:
		return o.interfaceType(t, at)
	}
	return nil
}

func (o *orderer) structType(t *types.Struct, at token.Pos) ast.Expr {
	list := &ast.FieldList{Opening: at, Closing: at}
	for i := range t.NumFields() {
		v := t.Field(i)
		f := &ast.Field{Type: o.typeExpr(v.Type(), at)}
		if f.Type == nil {
			return nil
		}
		if !v.Embedded() {
			f.Names = []*ast.Ident{{NamePos: at, Name: v.Name()}}
		}
		if tag := t.Tag(i); tag != "" {
			f.Tag = &ast.BasicLit{ValuePos: at, Kind: token.STRING, Value: strconv.Quote(tag)}
		}
		list.List = append(list.List, f)
	}
	return &ast.StructType{Struct: at, Fields: list}
}

func (o *orderer) interfaceType(t *types.Interface, at token.Pos) ast.Expr {
	if !t.IsMethodSet() {
		return nil
	}
	list := &ast.FieldList{Opening: at, Closing: at}
	for m := range t.Methods() { // includes those of embedded interfaces
		f := &ast.Field{Names: []*ast.Ident{{NamePos: at, Name: m.Name()}}, Type: o.funcType(m.Signature(), at, "")}
		if f.Type == nil {
			return nil
		}
		list.List = append(list.List, f)
	}
	return &ast.InterfaceType{Interface: at, Methods: list}
}

func (o *orderer) instance(obj types.Object, args *types.TypeList, at token.Pos) ast.Expr {
	name := o.typeName(obj, at)
	if name == nil || args.Len() == 0 {
		return name
	}
	list := &ast.IndexListExpr{X: name, Lbrack: at, Rbrack: at}
	for arg := range args.Types() {
		x := o.typeExpr(arg, at)
		if x == nil {
			return nil
		}
		list.Indices = append(list.Indices, x)
	}
	return list
}

// typeName returns the name of a type, qualified if it belongs to another package; nil if the program has no name for it at that position.
func (o *orderer) typeName(obj types.Object, at token.Pos) ast.Expr {
	if obj == nil {
		return nil
	}
	scope := o.pkg.Scope().Innermost(at)
	if scope == nil {
		return nil
	}
	if _, found := scope.LookupParent(obj.Name(), at); found == obj {
		return &ast.Ident{NamePos: at, Name: obj.Name()}
	}
	if obj.Pkg() == nil || obj.Pkg() == o.pkg || !obj.Exported() {
		return nil
	}
	for _, name := range o.survey.imports[obj.Pkg().Path()] {
		_, found := scope.LookupParent(name, at)
		if p, ok := found.(*types.PkgName); ok && p.Imported().Path() == obj.Pkg().Path() {
			return &ast.SelectorExpr{X: &ast.Ident{NamePos: at, Name: name}, Sel: &ast.Ident{NamePos: at, Name: obj.Name()}}
		}
	}
	return nil
}

// funcType returns the expression for a function type. If names is not empty, parameters are called that, followed by a number.
func (o *orderer) funcType(sig *types.Signature, at token.Pos, names string) ast.Expr {
	params := o.fields(sig.Params(), at, names)
	results := o.fields(sig.Results(), at, "")
	if params == nil || results == nil {
		return nil
	}
	if last := len(params.List) - 1; sig.Variadic() {
		s, ok := params.List[last].Type.(*ast.ArrayType)
		if !ok {
			return nil
		}
		params.List[last].Type = &ast.Ellipsis{Ellipsis: at, Elt: s.Elt}
	}
	return &ast.FuncType{Func: at, Params: params, Results: results}
}

// fields returns the field list of parameters or results; nil if a type cannot be written.
func (o *orderer) fields(t *types.Tuple, at token.Pos, names string) *ast.FieldList {
	list := &ast.FieldList{Opening: at, Closing: at}
	for i := range t.Len() {
		f := &ast.Field{Type: o.typeExpr(t.At(i).Type(), at)}
		if f.Type == nil {
			return nil
		}
		if names != "" {
			f.Names = []*ast.Ident{{NamePos: at, Name: fmt.Sprintf("%s%d", names, i)}}
		}
		list.List = append(list.List, f)
	}
	return list
}
