package interp

import (
	"go/constant"
	"strings"
	"unsafe"

	"golang.org/x/tools/go/ssa"
)

// A loop over a function has a variable that says how its body was left. go/ssa keeps it as the toolchain does, but for two things that
// only careless iterators see: it has one state for a body that was left and an iterator that has returned, and a body called too late
// does not count as one that panicked.
const (
	loopReady     = 0 // greater: the body was left, by this exit
	loopBusy      = -1
	loopExhausted = -2
)

// isLoopState reports whether v points to the state of a loop of the function itself. Names with a dollar are none of the program's.
func isLoopState(v ssa.Value) bool {
	a, ok := v.(*ssa.Alloc)
	return ok && strings.HasPrefix(a.Comment, "jump$")
}

// exhaust reads the state of a loop when its iterator has returned, and notes that.
func exhaust(d, x uintptr) op {
	return func(m unsafe.Pointer) {
		state := *at[*int](m, x)
		*at[int](m, d) = *state
		if *state != loopBusy {
			*state = loopExhausted
		}
	}
}

// loopPanic compiles a panic that go/ssa makes where an iterator misbehaves, with the runtime's text; nil stands for any other panic.
func (c *compiler) loopPanic(in *ssa.Panic) ending {
	made, ok := in.X.(*ssa.MakeInterface)
	if !ok || in.Pos().IsValid() {
		return nil
	}
	text, ok := made.X.(*ssa.Const)
	if !ok || text.Value == nil || text.Value.Kind() != constant.String {
		return nil
	}
	switch constant.StringVal(text.Value) {
	case "yield function called after range loop exit":
		if state := checkedState(in.Block()); state != nil {
			return calledLate(c.off(state))
		}
	case "iterator call did not preserve panic":
		return func(unsafe.Pointer) *codeBlock {
			panic(errLoopPanicLost())
		}
	}
	return nil
}

// checkedState returns the variable whose value led to a block.
func checkedState(b *ssa.BasicBlock) ssa.Value {
	if len(b.Preds) != 1 {
		return nil
	}
	before := b.Preds[0].Instrs
	branch, ok := before[len(before)-1].(*ssa.If)
	if !ok {
		return nil
	}
	compare, ok := branch.Cond.(*ssa.BinOp)
	if !ok {
		return nil
	}
	if load, ok := compare.X.(*ssa.UnOp); ok {
		return load.X
	}
	return nil
}

// calledLate panics as the runtime does when the body of a loop is called that is not ready.
func calledLate(x uintptr) ending {
	return func(m unsafe.Pointer) *codeBlock {
		state := *at[*int](m, x)
		err := errLoopLeft
		switch *state {
		case loopBusy:
			err = errLoopPanicked
		case loopExhausted:
			err = errLoopOver
		}
		*state = loopBusy
		panic(err())
	}
}
