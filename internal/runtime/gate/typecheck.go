package gate

import (
	"errors"
	"go/ast"
	"go/types"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/goversion"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/inputs"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/outside"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/residue"
)

// check type-checks the program against the packages that it imports.
func (c *check) check() *Refusal {
	c.local = map[string]Unit{}
	if r := c.generics(); r != nil {
		return r
	}
	c.typeCheck()
	if len(c.errs) == 0 && len(c.unused) > 0 && len(c.info.Instances) > 0 {
		// Any error, even of an unused variable, keeps go/types from looking for generic functions that instantiate
		// themselves without end. With generics in play the variables are put to use.
		c.useVariables()
		c.typeCheck()
		c.errs = append(c.errs, c.unused...)
	}
	what := ""
	if len(c.faults) == 0 && len(c.errs) > 0 {
		what = "does not compile: "
	}
	c.typeErrors()
	c.runPolicy()
	if r := c.refusal(what); r != nil {
		return r
	}
	if r := c.heldPolicy(); r != nil { //
		return r
	}
	c.inputs = string(inputs.Of(c.file, c.info).JSON())
	c.outside = outside.Of(c.file, c.info)
	c.residue = residue.Possible(c.file, c.info, c.pkg)
	return nil
}

// generics has a library that suits the program if it imports packages that are compiled from source.
func (c *check) generics() *Refusal {
	for _, spec := range c.file.Imports {
		if path, _ := strconv.Unquote(spec.Path.Value); !c.gate.lib.allowed[path].Source {
			continue
		}
		lib, err := c.gate.lib.withIter()
		if err != nil {
			return &Refusal{Type: InvalidCode, Message: err.Error()}
		}
		c.gate.lib = lib
		break
	}
	return nil
}

func (c *check) typeCheck() {
	c.info, c.errs, c.unused = newInfo(), nil, nil
	conf := types.Config{
		Importer: importerFunc(c.load), Sizes: types.SizesFor("gc", runtime.GOARCH), GoVersion: goversion.Name,
		DisableUnusedImportCheck: true,
		Error: func(err error) {
			var te types.Error
			switch {
			case !errors.As(err, &te):
			case te.Soft && strings.HasPrefix(te.Msg, "declared and not used"):
				c.unused = append(c.unused, te) // the compiler insists, but nobody needs it
			default:
				c.errs = append(c.errs, te)
			}
		},
	}
	c.pkg, _ = conf.Check("tool", c.fset, []*ast.File{c.file}, c.info)
}

// typeErrors notes what the type checker found. Of a package that is not available the import alone is a fault.
func (c *check) typeErrors() {
	for _, e := range c.errs {
		if strings.HasPrefix(e.Msg, "\t") || strings.HasPrefix(e.Msg, "could not import ") { // more about the error before
			continue
		}
		hint, kind := c.hintFor(e)
		c.fault(kind, e.Pos, plainMessage(e), hint)
	}
	if len(c.errs) > 0 && len(c.faults) == 0 {
		c.fault(InvalidCode, c.errs[0].Pos, plainMessage(c.errs[0]), "")
	}
}

// load imports for the type checker: a generic package with just what the program uses of it, any other from the library.
func (c *check) load(path string) (*types.Package, error) {
	lib := c.gate.lib
	if !lib.allowed[path].Source || slices.Contains(whole, path) {
		return lib.load(path)
	}
	if u, ok := c.local[path]; ok {
		return u.Pkg, nil
	}
	u, err := lib.checkGeneric(c.fset, path, lib.source(path, c.usedNames(path)), importerFunc(c.load))
	if err != nil {
		return nil, err
	}
	c.local[path] = u
	c.order = append(c.order, path)
	return u.Pkg, nil
}

// usedNames returns the names by which the program selects from a package.
func (c *check) usedNames(path string) map[string]bool {
	names := map[string]bool{}
	local := map[string]bool{}
	for _, spec := range c.file.Imports {
		if p, _ := strconv.Unquote(spec.Path.Value); p == path {
			if spec.Name != nil {
				local[spec.Name.Name] = true
			} else {
				local[c.gate.lib.allowed[path].Name()] = true
			}
		}
	}
	ast.Inspect(c.file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && local[x.Name] {
				names[s.Sel.Name] = true
			}
		}
		return true
	})
	return names
}
