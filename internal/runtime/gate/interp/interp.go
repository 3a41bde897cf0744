// Package interp runs checked programs. It takes the SSA form that golang.org/x/tools/go/ssa makes of a program, in
// which generics are instantiated and iterators and defers lowered, and compiles it to a graph of closures that work on
// values in their native memory layout. A program's types are made as real run-time types, methods included, so that
// every host package treats a program's value exactly as it would natively.
//
// A Compiled runs one call at a time. A program gets only what the allowed packages and the Call provide. The package is
// not a security boundary: programs run in a confined process.
package interp

import (
	"encoding/json"
	"errors"
	"go/token"
	"go/types"
	"maps"
	"time"
	"unsafe"

	"golang.org/x/tools/go/ssa"

	"github.com/recurgentd/recurgentd/internal/runtime/gate"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/rt"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// Name and Version identify the engine in records of runs.
const (
	Name    = "ssa"
	Version = "1"
)

// How runs end is the same for all that run programs.
type (
	Panic   = rt.Panic
	Failure = rt.Failure
)

// ClassFailure is the class of a run that an internal fault of the engine has ended.
const ClassFailure = rt.ClassFailure

// A Compiled is a program ready to run, again and again, one run at a time.
type Compiled struct {
	mc    *machine
	fset  *token.FileSet
	run   *fn
	inits []*fn
}

// Compile prepares a checked program. Nothing of the program runs yet. The error is a *Failure when the engine is at fault, else it says what
// the program asks too much of.
func Compile(p *gate.Program) (*Compiled, error) { return compileProgram(p, nil) }

// compileProgram is Compile for a run that a meter measures, where there is one.
func compileProgram(p *gate.Program, work *meter) (out *Compiled, err error) {
	var mc *machine
	defer func() {
		if r := recover(); r != nil {
			out, err = nil, compileError(r)
		}
		if err != nil && mc != nil {
			mc.freeSlots()
		}
	}()
	prog := ssa.NewProgram(p.Fset, ssa.InstantiateGenerics|ssa.BareInits|ssa.BuildSerially)
	created := map[*types.Package]bool{}
	for _, u := range p.Units {
		prog.CreatePackage(u.Pkg, u.Files, u.Info, true)
		created[u.Pkg] = true
	}
	compiled := maps.Clone(created)
	for _, u := range p.Units {
		createImports(prog, u.Pkg, created)
	}
	mc = newMachine(prog, compiled)
	mc.work = work
	mc.constantTexts = convertedTexts(p.Units)
	mc.types.numberLocals(p.Units[len(p.Units)-1].Files)
	for _, u := range p.Units {
		mc.main = prog.Package(u.Pkg)
		mc.main.Build()
	}
	c := &Compiled{mc: mc, fset: p.Fset}
	for _, u := range p.Units {
		if init := prog.Package(u.Pkg).Func("init"); init != nil && init.Blocks != nil {
			c.inits = append(c.inits, mc.fnOf(init))
		}
	}
	run := mc.main.Func("Run")
	if run == nil {
		return nil, errors.New("the program has no Run")
	}
	c.run = mc.fnOf(run)
	mc.prepareAll()
	if err := c.CheckTypes(); err != nil {
		return nil, &Failure{Why: "a wrong type: " + err.Error()}
	}
	mc.running = true
	return c, nil
}

// prepareAll compiles every function that the program may reach, so that what does not run here is known before it runs.
func (mc *machine) prepareAll() {
	for done := 0; done < len(mc.order); done++ {
		mc.order[done].prepare()
	}
}

// createImports makes SSA packages of all imports, without bodies.
func createImports(prog *ssa.Program, pkg *types.Package, created map[*types.Package]bool) {
	for _, imp := range pkg.Imports() {
		if !created[imp] {
			created[imp] = true
			prog.CreatePackage(imp, nil, nil, true)
			createImports(prog, imp, created)
		}
	}
}

func newMachine(prog *ssa.Program, compiled map[*types.Package]bool) *machine {
	mc := &machine{
		prog: prog, env: rt.New(), types: newTypeTable(compiled),
		funcs: map[*ssa.Function]*fn{}, values: map[*ssa.Function]unsafe.Pointer{}, globals: map[*ssa.Global]unsafe.Pointer{},
		impls: map[implKey]unsafe.Pointer{}, dyn: map[dynKey]*target{}, closures: map[reflectType]closureHead{}, instructions: instructions(),
		reached: map[reflectType]reach{}, fromHostCode: fromHostCode(), makeFuncCode: makeFuncCode(),
	}
	mc.natives = natives(mc.env)
	mc.types.code = mc.stubCode
	return mc
}

// Close gives back what the program holds of the process: the host must not call into it any more.
func (c *Compiled) Close() { c.mc.freeSlots() }

// Begin sets the clock and the seed of the next run.
func (c *Compiled) Begin(now time.Time, seed uint64) { c.mc.env.Begin(now, seed) }

// OnSleep has wait called with each sleep of the runs to come; nil for none.
func (c *Compiled) OnSleep(wait func(time.Duration)) { c.mc.env.OnSleep(wait) }

// Reads returns the last run's reads of clock and randomness.
func (c *Compiled) Reads() rt.Reads { return c.mc.env.Reads() }

// Run calls the program's Run. Package variables are initialised afresh before it. Exactly one of a value with
// a nil error, an error that the program returned, and a Panic is the answer.
func (c *Compiled) Run(call *recurgent.Call) (value any, err error, panicked *Panic) {
	mc := c.mc
	mc.depth, mc.panicking, mc.pos, mc.deferring, mc.aborted = 0, false, token.NoPos, nil, nil
	returned := false
	defer func() {
		for _, f := range mc.pooled { // what frames still point to must not outlive the run
			f.pool = nil
		}
		mc.pooled = mc.pooled[:0]
		mc.forgetOrders()
		if returned {
			return
		}
		place := faultOf()
		r := recover()
		value, err = nil, nil
		switch {
		case mc.aborted != nil || r == nil:
		case mc.depth == 0: // outside of the program's functions
			mc.aborted = failureOf(r, "starting")
		case place != "":
			mc.aborted = faultAt(r, place)
		}
		panicked = c.describe(r)
	}()
	for _, g := range mc.own {
		typedmemclr(g.t, g.p)
	}
	for _, f := range c.inits {
		m := f.newFrame()
		f.run(m)
		f.release(m)
	}
	m := c.run.newFrame()
	*at[*recurgent.Call](m, c.run.params[0].off) = call
	c.run.run(m)
	value = *at[any](m, c.run.results[0].off)
	err = *at[error](m, c.run.results[1].off)
	c.run.release(m)
	if checkRuns {
		if err := c.CheckTypes(); err != nil {
			fail(err.Error())
		}
	}
	returned = true
	return value, err, nil
}

// describe returns the panic r, or what has ended the run instead, with its line.
func (c *Compiled) describe(r any) *Panic {
	if c.mc.aborted != nil {
		r = c.mc.aborted
	}
	c.mc.aborted, c.mc.depth = nil, 0
	pos := c.mc.pos
	if c.mc.panicking {
		pos = c.mc.panicPos
	}
	p := PanicOf(r) // which may run methods of the program
	if pos.IsValid() {
		p.Line = c.fset.PositionFor(pos, false).Line
	}
	return p
}

// PanicOf returns what a panic with the value r says. It has no line.
func PanicOf(r any) *Panic { return rt.PanicOf(r) }

// Encode returns the JSON form of a program's value as encoding/json gives it natively.
func Encode(v any) (json.RawMessage, error) { return rt.Encode(v) }
