package gate

import (
	"errors"
	"go/ast"
	"go/types"
	"runtime"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/goversion"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/inputs"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/outside"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/residue"
)

// check type-checks the program against the packages that it imports, and infers its interface and its facts.
func (c *check) check() *Refusal {
	c.typeCheck()
	if len(c.errs) == 0 && len(c.unused) > 0 && len(c.info.Instances) > 0 {
		// Any error, even of an unused variable, keeps go/types from looking for generic functions that instantiate
		// themselves without end. With generics in play, the variables are made used before a second pass.
		c.useVariables()
		c.typeCheck()
		c.errs = append(c.errs, c.unused...)
	}
	what := ""
	if len(c.faults) == 0 && len(c.errs) > 0 {
		what = "does not compile: "
	}
	// The type errors come first: runPolicy says nothing about a signature with an undefined name.
	c.typeErrors()
	c.runPolicy()
	if r := c.refusal(what); r != nil {
		return r
	}
	// Only a program without errors has complete types, which the remaining steps need.
	if r := c.heldPolicy(); r != nil {
		return r
	}
	c.inputs = string(inputs.Of(c.file, c.info).JSON())
	c.outside = outside.Of(c.file, c.info)
	c.residue = residue.Possible(c.file, c.info, c.pkg)
	return nil
}

// typeCheck fills info, pkg, errs and unused. Errors of unused imports are switched off, and unused variables are kept
// apart, because neither keeps a program from running.
func (c *check) typeCheck() {
	c.info, c.errs, c.unused = newInfo(), nil, nil
	conf := types.Config{
		Importer: importerFunc(c.gate.lib.load), Sizes: types.SizesFor("gc", runtime.GOARCH), GoVersion: goversion.Name,
		DisableUnusedImportCheck: true,
		Error: func(err error) {
			var te types.Error
			switch {
			case !errors.As(err, &te):
			case te.Soft && strings.HasPrefix(te.Msg, "declared and not used"):
				// The compiler rejects unused variables, but they are harmless.
				c.unused = append(c.unused, te)
			default:
				c.errs = append(c.errs, te)
			}
		},
	}
	c.pkg, _ = conf.Check("tool", c.fset, []*ast.File{c.file}, c.info)
}

// typeErrors records the errors of the type checker. For a package that is not available only the import counts as a
// fault.
func (c *check) typeErrors() {
	for _, e := range c.errs {
		// Messages that begin with a tab continue the error before.
		if strings.HasPrefix(e.Msg, "\t") || strings.HasPrefix(e.Msg, "could not import ") {
			continue
		}
		hint, kind := c.hintFor(e)
		c.fault(kind, e.Pos, plainMessage(e), hint)
	}
	if len(c.errs) > 0 && len(c.faults) == 0 {
		c.fault(invalidCode, c.errs[0].Pos, plainMessage(c.errs[0]), "")
	}
}
