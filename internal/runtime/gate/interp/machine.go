package interp

import (
	"go/token"
	"reflect"
	"unsafe"

	"golang.org/x/tools/go/ssa"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/rt"
)

// maxDepth bounds the calls within calls of a run, so that they fit a stack of 64 MiB: a stack overflow ends the process. Calls through
// the host and deferred ones weigh more, by the stack that they take.
const (
	maxDepth       = 40000
	hostWeight     = 5
	deferredWeight = 3
)

// A machine holds one program: its functions, types, globals. It runs one call at a time.
type machine struct {
	prog     *ssa.Program
	main     *ssa.Package
	env      *rt.Env
	types    *typeTable
	order    []*fn // all of funcs, as they were found
	pooled   []*fn // those with frames to reuse
	funcs    map[*ssa.Function]*fn
	values   map[*ssa.Function]unsafe.Pointer // function values
	globals  map[*ssa.Global]unsafe.Pointer
	own      []ownGlobal
	taken    []int32                    // slots
	trap     unsafe.Pointer             // code of unexported methods; nil until one needs it
	impls    map[implKey]unsafe.Pointer // itabs; nil: does not implement
	dyn      map[dynKey]*target
	closures map[reflectType]closureHead

	instructions map[reflectType]func(*compiler, ssa.Instruction) op // by go/ssa's type

	natives map[string]any
	work    *meter // nil but in tests

	orders   map[unsafe.Pointer]*keyOrder // by map; nil when there are none
	ranged   [mostOrders]uintptr          // maps ranged over lately
	rangedAt int

	fromHostCode, makeFuncCode uintptr
	deferring                  *frameHead // whose deferred call is about to be made

	running   bool // Compile is over
	depth     int
	panicPos  token.Pos // where the panic under way began, in the program's own text
	panicking bool
	aborted   error // why the run is being ended, nil while it is not: a fatal or a *Failure
}

type ownGlobal struct {
	t *rtype
	p unsafe.Pointer
}

type op func(m unsafe.Pointer)

// A codeBlock is a basic block: its operations, then where to go. next returns nil at the end of the function.
type codeBlock struct {
	ops  []op
	pos  []token.Pos
	next func(m unsafe.Pointer) *codeBlock
	last token.Pos
}

// A slot is a place in a frame.
type slot struct {
	off uintptr
	rt  *rtype
}

// A fn is a compiled function. Frames hold all values of one activation in their native memory form, at fixed offsets,
// constants included; the first word points to the frame's head.
type fn struct {
	mc       *machine
	ssa      *ssa.Function
	ready    bool
	frame    *rtype
	template unsafe.Pointer
	params   []slot
	free     []slot
	results  []slot
	entry    *codeBlock
	recover  *codeBlock
	defers   bool
	own      bool // of the program's own text: its positions are reported
	wrapper  bool // only calls a method
	pool     []unsafe.Pointer
	zero     []slot // results of functions that defer: stale ones must not be seen
}

// frameHead is the part of a frame that is not values.
type frameHead struct {
	f         *fn
	defers    *deferred
	panicking bool
	panic     any
	deferOf   *frameHead // the frame whose deferred call this is
}

type deferred struct {
	run  func(of *frameHead)
	tail *deferred
}

func headOf(m unsafe.Pointer) *frameHead { return *(**frameHead)(m) }

// newFrame returns a frame with constants in place. Frames are reused: nothing in them outlives the activation, since what
// a program takes the address of has memory of its own.
func (f *fn) newFrame() unsafe.Pointer {
	if n := len(f.pool); n > 0 {
		m := f.pool[n-1]
		f.pool = f.pool[:n-1]
		return m
	}
	m := unsafeNew(f.frame)
	typedmemmove(f.frame, m, f.template)
	*(**frameHead)(m) = &frameHead{f: f}
	return m
}

func (f *fn) release(m unsafe.Pointer) {
	if f.defers {
		*headOf(m) = frameHead{f: f}
	}
	if f.pool == nil {
		f.mc.pooled = append(f.mc.pooled, f)
	}
	if len(f.pool) < 64 {
		f.pool = append(f.pool, m)
	}
}

// run executes the function in a frame whose parameters are set; results are in the frame afterwards.
func (f *fn) run(m unsafe.Pointer) {
	if f.mc.depth++; f.mc.depth > maxDepth {
		f.mc.abort(fatal("stack overflow"))
	}
	if f.defers {
		f.runDeferring(m)
	} else {
		f.blocks(m, f.entry)
	}
	f.mc.depth--
}

func (f *fn) blocks(m unsafe.Pointer, b *codeBlock) {
	i := 0
	done := false
	depth := f.mc.depth
	defer func() {
		if done {
			return
		}
		f.notePanic(b, i)
		// A call within this one has looked already, unless it did not come to its own operations.
		if f.mc.aborted == nil && f.mc.depth <= depth+1 {
			if place := faultOf(); place != "" {
				f.mc.blame(recover(), place)
			}
		}
	}()
	for b != nil {
		for i = 0; i < len(b.ops); i++ {
			b.ops[i](m)
		}
		b = b.next(m)
	}
	done = true
}

func (f *fn) notePanic(b *codeBlock, i int) {
	mc := f.mc
	if mc.panicking || !f.own {
		return
	}
	pos := b.last
	if i < len(b.pos) {
		pos = b.pos[i]
	}
	if pos.IsValid() {
		mc.panicking, mc.panicPos = true, pos
	}
}

// runDeferring runs a function that defers: a panic runs the deferred calls, one of which may recover.
func (f *fn) runDeferring(m unsafe.Pointer) {
	for _, z := range f.zero {
		typedmemclr(z.rt, unsafe.Add(m, z.off))
	}
	head := headOf(m)
	depth := f.mc.depth
	if f.returns(m, head) {
		return
	}
	// The stack on which the panic began is gone: deferred calls run here, and panic on from here. On that stack each of them would be one
	// more panic within the others, and the time the square of their number.
	f.mc.depth = depth
	head.runDefers()
	f.mc.panicking = false
	if f.recover != nil {
		f.blocks(m, f.recover)
	}
}

// returns runs the body of a function and reports whether it returned. If not, head has what it panicked with.
func (f *fn) returns(m unsafe.Pointer, head *frameHead) (normal bool) {
	defer func() {
		if !normal && f.mc.aborted == nil {
			head.panic = recover()
			f.mc.contain(head.panic)
			head.panicking = true
		}
	}()
	f.blocks(m, f.entry)
	return true
}

// runDefers runs what was deferred, the last first, and panics on when nothing recovered.
func (h *frameHead) runDefers() {
	for h.defers != nil {
		d := h.defers
		h.defers = d.tail
		h.runDeferred(d)
	}
	if h.panicking {
		panic(h.panic)
	}
}

func (h *frameHead) runDeferred(d *deferred) {
	ok := false
	defer func() {
		if !ok && h.f.mc.aborted == nil { // the deferred call panicked itself: its panic takes the place of ours
			place := faultOf()
			p := recover()
			if place != "" {
				h.f.mc.blame(p, place)
			}
			h.f.mc.contain(p)
			h.panicking, h.panic = true, p
		}
	}()
	h.f.mc.depth += deferredWeight
	d.run(h)
	h.f.mc.depth -= deferredWeight
	ok = true
}

// doRecover is the built-in recover, called in frame m.
func doRecover(m unsafe.Pointer) any {
	h := headOf(m)
	if h.deferOf == nil || !h.deferOf.panicking {
		return nil
	}
	h.deferOf.panicking = false
	p := h.deferOf.panic
	h.deferOf.panic = nil
	h.f.mc.panicking = false
	return p
}

// lateRecover is a deferred recover, as if the function that deferred it called it when it returns. Nobody calls it while that function panics.
func lateRecover(m unsafe.Pointer) {
	if !headOf(m).panicking {
		doRecover(m)
	}
}

type reflectType = reflect.Type
