package interp

import (
	"fmt"
	"runtime"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/rt"
)

func fail(why string) { panic(&Failure{Why: why}) }

// limit is the panic that ends the compiling of a program which asks for too much.
type limit = rt.Limit

func refuse(why string) { panic(limit(why)) }

// fatal is a panic that a program cannot recover, as natively it would end the process.
type fatal = rt.Fatal

// abort ends the run. Deferred calls do not run, and a host function that swallows panics, as fmt does, only delays it.
func (mc *machine) abort(why error) {
	if mc.aborted == nil {
		mc.aborted = why
	}
	mc.depth = maxDepth // the next call of anything aborts again
	panic(mc.aborted)
}

// contain ends the run when r, which was recovered, is the panic of a fault. It sees whatever a program or the host could recover.
func (mc *machine) contain(r any) {
	switch r := r.(type) {
	case *Failure:
		mc.abort(r)
	case limit: // Compile should have met it
		mc.abort(&Failure{Why: string(r)})
	}
}

// containCompiling, deferred, ends the run when a function cannot be compiled that is only found while the program runs.
func (mc *machine) containCompiling() {
	if r := recover(); r != nil {
		mc.abort(compileFailure(r))
	}
}

// containOwn, deferred, ends the run at any panic of code that runs nothing of the program.
func (mc *machine) containOwn() {
	if r := recover(); r != nil {
		if mc.aborted != nil {
			panic(r)
		}
		mc.contain(r)
		mc.blame(r, "the call of a method or function by the host")
	}
}

// compileError returns the error for what a panic r has ended.
func compileError(r any) error {
	if l, ok := r.(limit); ok {
		return fmt.Errorf("the program does not compile here: %w", l)
	}
	return compileFailure(r)
}

func compileFailure(r any) *Failure { return failureOf(r, "compiling") }

// failureOf returns the failure that ended what the engine did with a panic r.
func failureOf(r any, doing string) *Failure {
	if f, ok := r.(*Failure); ok {
		return f
	}
	return &Failure{Why: fmt.Sprintf("%s: %.1000v", doing, r)}
}

// runtimeTypeAssertionError is the runtime's own error type: programs see it in recover.
type runtimeTypeAssertionError = runtime.TypeAssertionError
