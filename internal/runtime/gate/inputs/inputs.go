// Package inputs infers from a type-checked program what it reads of its call: parameters with their names, positions,
// types, and whether the program fails without them.
//
// It follows the call, its arguments and its keywords from Run through variables, closures and the program's own functions, each
// function once per call site, so that helpers such as number(call, 0, "a") are understood. What it cannot follow makes
// the interface open: then the program may read more than is listed. It trusts nothing and its work is bounded.
package inputs

import (
	"go/ast"
	"go/types"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
)

const (
	hostPath  = allow.HostPath
	maxSteps  = 100_000 // syntax nodes visited, each function counted once per call site
	maxDepth  = 12      // of calls of the program's own functions
	maxReads  = maxParameters
	maxPlaces = 32 // positions that are kept apart
)

// Of returns what the program in file takes and returns. It does not panic on any type-checked program; an interface
// without parameters and open is the worst answer.
func Of(file *ast.File, info *types.Info, pkg *types.Package) *Interface {
	f := &finder{info: info, pkg: pkg, decls: map[*types.Func]*ast.FuncDecl{}, visited: map[ast.Node]bool{}, positions: map[int]*read{}, names: map[string]*read{}}
	f.globals = &frame{f: f, vars: map[types.Object]*value{}}
	var run *ast.FuncDecl
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if fn, ok := info.Defs[d.Name].(*types.Func); ok {
				f.decls[fn] = d
			}
			if d.Recv == nil && d.Name.Name == "Run" {
				run = d
			}
		case *ast.GenDecl:
			f.globals.declare(d)
		}
	}
	if run == nil || run.Body == nil {
		return unknown()
	}
	f.enter(f.globals, run.Type, run.Body, []*value{{call: true}})
	out := f.assemble()
	out.Returns = f.returns(run)
	return out
}

// A finder is one inference.
type finder struct {
	info    *types.Info
	pkg     *types.Package
	decls   map[*types.Func]*ast.FuncDecl
	globals *frame
	visited map[ast.Node]bool // functions that were followed without a known argument
	steps   int
	depth   int

	positions map[int]*read
	names     map[string]*read
	ordered   []*read // as first seen
	rest      *read   // all arguments from some place on
	restFrom  int
	minimum   int // positional arguments without which the program fails
	open      bool
}

// step counts a visited node; false when the budget is used up.
func (f *finder) step() bool {
	if f.steps++; f.steps > maxSteps {
		f.open = true
		return false
	}
	return true
}

// A value is what is known of an expression's value. nil: nothing.
type value struct {
	call, kwargs bool // it is the call, or its keyword arguments
	args         bool // it is the positional arguments, from
	from         int
	reads        []*read // it is a parameter's value, or
	derived      bool    // was made of it: asserted, converted, trimmed
	as           bool    // recurgent.As has converted it to the types that it is asserted to
	or           bool    // recurgent.Or has: it is there

	other   bool    // it may be something that is no argument's, which stands for a missing one
	present []*read // a boolean that is true only when these are there
	count   bool    // the number of positional arguments, less from
	sizes   []*read // the length of these
	texts   []string
	fn      *closure
	fields  map[string]*read // of a struct that Bind has filled
	preset  map[string][]byte
}

// A closure is a function literal with the variables that it sees.
type closure struct {
	lit   *ast.FuncLit
	frame *frame
}

// join is what a variable holds that may hold either.
func (f *finder) join(a, b *value) *value {
	if a == nil || b == nil || a == b {
		if a == nil {
			return b
		}
		return a
	}
	out := *a
	out.call, out.kwargs = a.call || b.call, a.kwargs || b.kwargs
	if b.args {
		if a.args && a.from != b.from {
			out.from = min(a.from, b.from)
			f.readRest(out.from)
		}
		if !a.args {
			out.from = b.from
		}
		out.args = true
	}
	out.reads = union(a.reads, b.reads)
	out.derived = (a.derived || len(a.reads) == 0) && (b.derived || len(b.reads) == 0)
	out.other = a.other || b.other
	out.present, out.sizes = union(a.present, b.present), union(a.sizes, b.sizes)
	out.count = a.count || b.count
	if out.texts = a.texts; len(b.texts) > 0 && len(a.texts) < 64 {
		out.texts = unionTexts(a.texts, b.texts)
	}
	if b.fn != nil {
		out.fn = b.fn
	}
	if b.fields != nil {
		out.fields = b.fields
	}
	if b.preset != nil {
		out.preset = b.preset
	}
	return &out
}

func union(a, b []*read) []*read {
	if len(b) == 0 {
		return a
	}
	out := a[:len(a):len(a)]
	for _, r := range b {
		found := false
		for _, s := range a {
			found = found || s.root() == r.root()
		}
		if !found && len(out) < maxReads {
			out = append(out, r)
		}
	}
	return out
}

func unionTexts(a, b []string) []string {
	out := a[:len(a):len(a)]
	for _, t := range b {
		found := false
		for _, s := range a {
			found = found || s == t
		}
		if !found {
			out = append(out, t)
		}
	}
	return out
}
