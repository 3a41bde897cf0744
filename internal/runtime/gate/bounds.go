package gate

import (
	"fmt"
	"go/ast"
	"go/scanner"
	"go/token"
	"math"
	"strconv"
)

// Limits on a program. Beyond them the parser or the type checker could be kept busy for long. No honest program comes
// near them.
const (
	maxBrackets = 150     // open at once
	maxPrefixes = 60      // consecutive operators: ----x, [][][]int
	maxDepth    = 1500    // of the syntax tree; a long a+b+c... is deep
	maxConst    = 1 << 20 // bytes of a constant string
	maxFields   = 1 << 14 // of a struct, including those of nested structs
)

// boundTokens scans the source once and rejects nesting deep enough to exhaust the parser's stack.
func (c *check) boundTokens() *Refusal {
	var s scanner.Scanner
	fset := token.NewFileSet()
	file := fset.AddFile(fileName, -1, len(c.source))
	s.Init(file, []byte(c.source), nil, 0)
	depth, run := 0, 0
	for {
		pos, tok, _ := s.Scan()
		switch tok {
		case token.EOF:
			return nil
		case token.LPAREN, token.LBRACE:
			depth++
			run = 0
		case token.LBRACK:
			depth++
			run++
		case token.RPAREN, token.RBRACE:
			depth--
			run = 0
		case token.RBRACK:
			depth--
		case token.IDENT, token.INT, token.FLOAT, token.IMAG, token.CHAR, token.STRING, token.SEMICOLON, token.COMMA:
			run = 0
		default:
			run++
		}
		// Nothing is parsed yet, so the position comes from the file set of this scan.
		if depth > maxBrackets || run > maxPrefixes {
			at := fset.PositionFor(pos, false)
			return &Refusal{Type: invalidCode, Line: at.Line, Column: at.Column,
				Hint:    "Split the expression or the function into smaller parts.",
				Message: fmt.Sprintf("%s:%d:%d: the program is nested too deeply", fileName, at.Line, at.Column)}
		}
	}
}

// boundTree bounds the work of the type checker: the depth of the tree, and constant strings and structs that grow by
// repeated doubling.
func (c *check) boundTree() *Refusal {
	depth := 0
	var deep token.Pos
	ast.Inspect(c.file, func(n ast.Node) bool {
		if n == nil {
			depth--
			return true
		}
		if depth++; depth > maxDepth && !deep.IsValid() {
			deep = n.Pos()
		}
		return !deep.IsValid()
	})
	if deep.IsValid() {
		return c.refuse(invalidCode, deep, "the program is nested too deeply",
			"Split the expression or the function into smaller parts.")
	}
	s := &sizes{consts: map[string][]ast.Expr{}, types: map[string][]ast.Expr{}, known: map[string]float64{}}
	s.collect(c.file)
	for name := range s.consts {
		if s.name(name, s.consts, s.constant) > maxConst {
			return c.refuse(invalidCode, s.consts[name][0].Pos(), "the constant "+name+" is too large",
				"Build long texts at run time, with strings.Repeat.")
		}
	}
	for name := range s.types {
		if s.name("type "+name, s.types, s.typ) > maxFields {
			return c.refuse(invalidCode, s.types[name][0].Pos(),
				fmt.Sprintf("the type %s is too large: it has more than %d fields, those of the structs and arrays in it counted", name, maxFields), "Use slices or pointers instead of structs within structs, and smaller interfaces.")
		}
	}
	return nil
}

// sizes estimates constants and types from their syntax. It ignores scope: a name counts as the largest of all things
// declared under it.
type sizes struct {
	consts map[string][]ast.Expr
	types  map[string][]ast.Expr
	// known holds the sizes computed so far. The keys of types begin with "type ".
	known map[string]float64
	depth int // of the recursion
}

// collect records the expressions of all constants and types by name.
func (s *sizes) collect(f *ast.File) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			if n.Tok == token.CONST {
				s.collectConsts(n)
			}
		case *ast.TypeSpec:
			s.types[n.Name.Name] = append(s.types[n.Name.Name], n.Type)
		}
		return true
	})
}

func (s *sizes) collectConsts(d *ast.GenDecl) {
	var last []ast.Expr // a spec without values repeats the one before
	for _, spec := range d.Specs {
		v, ok := spec.(*ast.ValueSpec)
		if !ok {
			continue
		}
		if len(v.Values) > 0 {
			last = v.Values
		}
		for i, name := range v.Names {
			if i < len(last) {
				s.consts[name.Name] = append(s.consts[name.Name], last[i])
			}
		}
	}
}

// name returns the size of what a name stands for. A name in a cycle counts 1: the type checker rejects it.
func (s *sizes) name(key string, table map[string][]ast.Expr, size func(ast.Expr) float64) float64 {
	if n, ok := s.known[key]; ok {
		return n
	}
	name := key
	if len(key) > 5 && key[:5] == "type " {
		name = key[5:]
	}
	exprs := table[name]
	if len(exprs) == 0 || s.depth > maxDepth {
		return 1
	}
	// The preliminary 1 ends the recursion in a cycle.
	s.known[key] = 1
	s.depth++
	n := 1.0
	for _, e := range exprs {
		n = math.Max(n, size(e))
	}
	s.depth--
	s.known[key] = n
	return n
}

// constant estimates the length in bytes of a constant string. Other constants count by their literals, which are
// small.
func (s *sizes) constant(e ast.Expr) float64 {
	switch e := e.(type) {
	case *ast.BasicLit:
		return float64(len(e.Value))
	case *ast.Ident:
		return s.name(e.Name, s.consts, s.constant)
	case *ast.ParenExpr:
		return s.constant(e.X)
	case *ast.UnaryExpr:
		return s.constant(e.X)
	case *ast.BinaryExpr:
		return s.constant(e.X) + s.constant(e.Y)
	case *ast.CallExpr:
		n := 1.0
		for _, a := range e.Args {
			n = math.Max(n, s.constant(a))
		}
		return n
	}
	return 1
}

// typ counts the fields of a struct, including those of structs and arrays in it, or the methods and terms of an
// interface. Pointers, slices and all other types count 1.
func (s *sizes) typ(e ast.Expr) float64 {
	switch e := e.(type) {
	case *ast.Ident:
		return s.name("type "+e.Name, s.types, s.typ)
	case *ast.ParenExpr:
		return s.typ(e.X)
	case *ast.ArrayType:
		if e.Len == nil {
			return 1
		}
		n := 1.0
		if lit, ok := e.Len.(*ast.BasicLit); ok {
			if v, err := strconv.ParseFloat(lit.Value, 64); err == nil {
				n = v
			}
		}
		elem := s.typ(e.Elt)
		if elem > 1 { // a long array of numbers is harmless
			return n * elem
		}
		return 1
	case *ast.StructType:
		n := 1.0
		for _, f := range e.Fields.List {
			n += s.typ(f.Type) * float64(max(len(f.Names), 1))
		}
		return n
	case *ast.InterfaceType:
		n := 1.0
		for _, f := range e.Methods.List {
			if len(f.Names) > 0 {
				n++
			} else { // an embedded interface or a union
				n += s.typ(f.Type)
			}
		}
		return n
	case *ast.BinaryExpr:
		return s.typ(e.X) + s.typ(e.Y)
	case *ast.UnaryExpr:
		return s.typ(e.X)
	case *ast.IndexExpr:
		return s.typ(e.X) * math.Max(1, s.typ(e.Index))
	case *ast.IndexListExpr:
		n := s.typ(e.X)
		for _, i := range e.Indices {
			n *= math.Max(1, s.typ(i))
		}
		return n
	}
	return 1
}
