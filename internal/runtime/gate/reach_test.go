package gate

import (
	"go/importer"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/types/typeutil"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
)

// A reach is a walk over everything that a program can obtain: from every name that it can spell through fields,
// methods, results, elements and parameters, since callbacks receive those. Where a step leads to a type that no
// allowed package declares, the walk stops and records the step. It shares no code with the policy that it tests.
type reach struct {
	named map[*types.TypeName]step // types that an allowed package has an alias for, as owners
	seen  typeutil.Map
	queue []types.Type
	steps []step
	kinds map[string]int // number of steps walked, by kind
}

// A step is a selection that yields a type that no allowed package declares.
type step struct {
	owner string // type that the selection is on, as programs spell it; "" for a package
	pkg   string // import path of the package that declares the selected name
	name  string
	what  string // the type
}

func (r *reach) add(t types.Type) {
	if t != nil && r.seen.Set(t, true) == nil {
		r.queue = append(r.queue, t)
	}
}

// foreign returns the first type in t that no allowed package declares, or adds the parts of t to the walk.
func (r *reach) foreign(t types.Type) string {
	switch t := types.Unalias(t).(type) {
	case *types.Basic:
		if t.Kind() == types.UnsafePointer {
			return "unsafe.Pointer"
		}
	case *types.Named:
		if obj := t.Obj(); obj.Pkg() != nil && !r.visible(obj) {
			return obj.Pkg().Path() + "." + obj.Name()
		}
		r.add(t.Origin())
		var all []types.Type
		for i := range t.TypeArgs().Len() {
			all = append(all, t.TypeArgs().At(i))
		}
		return r.among(all...)
	case *types.Map:
		return r.among(t.Key(), t.Elem())
	case *types.Signature:
		var all []types.Type
		for _, list := range []*types.Tuple{t.Params(), t.Results()} {
			for i := range list.Len() {
				all = append(all, list.At(i).Type())
			}
		}
		for i := range t.TypeParams().Len() {
			all = append(all, t.TypeParams().At(i).Constraint())
		}
		return r.among(all...)
	case *types.Struct:
		for f := range t.Fields() {
			if what := r.foreign(f.Type()); what != "" && f.Exported() {
				return what
			}
		}
	case *types.Interface:
		var all []types.Type
		for m := range t.Methods() {
			if m.Exported() {
				all = append(all, m.Signature())
			}
		}
		return r.among(slices.AppendSeq(all, t.EmbeddedTypes())...)
	case *types.Union:
		var all []types.Type
		for term := range t.Terms() {
			all = append(all, term.Type())
		}
		return r.among(all...)
	case interface{ Elem() types.Type }:
		return r.foreign(t.Elem())
	}
	return ""
}

func (r *reach) among(all ...types.Type) string {
	for _, t := range all {
		if what := r.foreign(t); what != "" {
			return what
		}
	}
	return ""
}

// visible reports whether an allowed package declares the type or has an alias for it.
func (r *reach) visible(obj *types.TypeName) bool {
	if _, ok := r.named[obj]; ok {
		return true
	}
	p, ok := allow.Find(allow.SeenPath(obj.Pkg().Path()))
	return ok && p.Shows(obj.Name())
}

// take records a step of the program.
func (r *reach) take(kind string, s step, t types.Type) {
	r.kinds[kind]++
	if s.what = r.foreign(t); s.what != "" {
		r.steps = append(r.steps, s)
	}
}

// walk goes on until there is nothing new.
func (r *reach) walk() {
	for len(r.queue) > 0 {
		t := r.queue[0]
		r.queue = r.queue[1:]
		n, ok := types.Unalias(t).(*types.Named)
		if !ok || n.Obj().Pkg() == nil {
			continue
		}
		at, ok := r.named[n.Obj()]
		if !ok {
			at = step{owner: n.Obj().Name(), pkg: n.Obj().Pkg().Path()}
		}
		for _, m := range typeutil.IntuitiveMethodSet(n, nil) {
			if m.Obj().Exported() {
				at.name = m.Obj().Name()
				r.take("methods", at, m.Type())
			}
		}
		s, ok := n.Underlying().(*types.Struct)
		if !ok {
			r.take("underlying", at, n.Underlying())
			continue
		}
		for f := range s.Fields() {
			switch at.name = f.Name(); {
			case f.Exported():
				r.take("fields", at, f.Type())
			case f.Embedded(): // its exported fields are reached through it
				r.add(f.Type())
			}
		}
	}
}

// TestReach shows that a program obtains nothing of unsafe, syscall, net or runtime, or of any other package that is
// not allowed: each step that would lead there is refused. The walk finds these steps; there is no fixed list.
func TestReach(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	r := &reach{named: map[*types.TypeName]step{}, kinds: map[string]int{}}
	var objects []types.Object
	for _, p := range allow.Packages() {
		pkg, err := g.lib.load(p.Path)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range pkg.Scope().Names() {
			obj := pkg.Scope().Lookup(name)
			if !obj.Exported() {
				continue
			}
			objects = append(objects, obj)
			if tn, ok := obj.(*types.TypeName); ok {
				if n, ok := types.Unalias(tn.Type()).(*types.Named); ok {
					r.named[n.Obj()] = step{owner: name, pkg: obj.Pkg().Path()}
				}
			}
		}
	}
	for _, obj := range objects {
		r.take("names", step{pkg: obj.Pkg().Path(), name: obj.Name()}, obj.Type())
	}
	r.walk()
	if r.kinds["names"] < 1000 || r.kinds["methods"] < 800 || r.kinds["fields"] < 150 {
		t.Fatalf("the walk is too short: %v", r.kinds)
	}
	r.dynamic(t)
	for _, known := range []step{{"Value", "reflect", "UnsafePointer", "unsafe.Pointer"},
		{"Certificate", "crypto/x509", "IPAddresses", "net.IP"}} {
		if !slices.Contains(r.steps, known) {
			t.Errorf("the walk has not found %+v", known)
		}
	}
	for _, s := range r.steps {
		source := program(s.pkg, "", "var x "+packageOf(s.pkg)+"."+s.owner+"\nv := x."+s.name+"; _ = v")
		if s.owner == "" {
			source = program(s.pkg, "", "v := "+packageOf(s.pkg)+"."+s.name+"; _ = v")
		}
		_, refusal := g.Check(strings.ReplaceAll(source, `"`+allow.HostPath, `"`+allow.Host))
		t.Logf("%s.%s.%s: %s", s.pkg, s.owner, s.name, s.what)
		if refusal == nil || refusal.Type != dependencyPolicy ||
			!strings.Contains(refusal.Message, "is not available") {
			t.Errorf("a program gets %s by %s.%s.%s: %+v", s.what, s.pkg, s.owner, s.name, refusal)
		}
	}
	t.Log(r.kinds)
}

func packageOf(path string) string {
	p, _ := allow.Find(path)
	return p.Name()
}

// dynamic adds types that only the values of interfaces have: a program may assert an interface of its own and call its
// method. The method must be spelled with types that the program can name, so only its results can lead further.
func (r *reach) dynamic(t *testing.T) {
	imp := importer.ForCompiler(token.NewFileSet(), "source", nil)
	before := len(r.steps)
	for _, p := range allow.Packages() {
		if allow.TruePath(p.Path) != p.Path || len(p.Only) > 0 {
			continue
		}
		pkg, err := imp.Import(p.Path)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range pkg.Scope().Names() {
			tn, ok := pkg.Scope().Lookup(name).(*types.TypeName)
			if !ok || tn.Exported() || tn.IsAlias() {
				continue
			}
			for _, m := range typeutil.IntuitiveMethodSet(tn.Type(), nil) {
				if m.Obj().Exported() {
					r.take("methods of unexported types", step{owner: name, pkg: p.Path, name: m.Obj().Name()},
						m.Type())
				}
			}
		}
	}
	for _, s := range r.steps[before:] {
		t.Logf("cannot be spelled: %s.%s.%s: %s", s.pkg, s.owner, s.name, s.what)
	}
	r.steps = r.steps[:before]
	r.walk()
}
