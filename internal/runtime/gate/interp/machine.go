package interp

import (
	"go/token"
	"reflect"
	"unsafe"

	"golang.org/x/tools/go/ssa"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/rt"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/symbols"
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

	constantTexts map[token.Pos]bool // conversions of them

	natives *symbols.Natives
	reached map[reflectType]reach // of types of parameters
	work    *meter                // nil but in tests

	orders   map[unsafe.Pointer]*keyOrder // by map; nil when there are none
	ranged   [mostOrders]uintptr          // maps ranged over lately
	rangedAt int

	fromHostCode, makeFuncCode uintptr
	deferring                  *frameHead // whose deferred call is about to be made

	running   bool // Compile is over
	depth     int
	pos       token.Pos // in the program's own text, of the operation that runs and may panic
	panicPos  token.Pos // pos where the panic under way began
	panicking bool
	aborted   error // why the run is being ended, nil while it is not: a fatal or a *Failure
}

type ownGlobal struct {
	t *rtype
	p unsafe.Pointer
}

type op func(m unsafe.Pointer)

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
	compiler *compiler // from declare to prepare
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

// maxPooled is how many frames a function keeps to use again.
const maxPooled = 64

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
	return f.makeFrame()
}

// makeFrame makes the first frames of a function, which is compiled by then.
func (f *fn) makeFrame() unsafe.Pointer {
	if !f.ready {
		f.prepare()
	}
	m := unsafeNew(f.frame)
	typedmemmove(f.frame, m, f.template)
	*(**frameHead)(m) = &frameHead{f: f}
	return m
}

func (f *fn) release(m unsafe.Pointer) {
	if n := len(f.pool); n < cap(f.pool) {
		f.pool = f.pool[:n+1]
		f.pool[n] = m
	} else if n == 0 {
		f.startPool(m)
	}
}

func (f *fn) startPool(m unsafe.Pointer) {
	f.mc.pooled = append(f.mc.pooled, f)
	f.pool = append(make([]unsafe.Pointer, 0, maxPooled), m)
}

// run executes the function in a frame whose parameters are set; results are in the frame afterwards. The caller's position is that of the
// machine again when it returns.
func (f *fn) run(m unsafe.Pointer) {
	mc := f.mc
	if mc.depth++; mc.depth > maxDepth {
		mc.abort(fatal("stack overflow"))
	}
	pos := mc.pos
	if f.defers {
		f.runDeferring(m)
	} else {
		for b := f.entry; b != nil; {
			if b.pos != token.NoPos {
				mc.pos = b.pos
			}
			b = b.run(m)
		}
	}
	mc.pos = pos
	mc.depth--
}

func (f *fn) blocks(m unsafe.Pointer, b *codeBlock) {
	mc := f.mc
	for b != nil {
		if b.pos != token.NoPos {
			mc.pos = b.pos
		}
		b = b.run(m)
	}
}

// noteCaught notes where the panic p began, which a deferred function has recovered. It ends the run when the panic is one of the engine's own, at
// the place that faultOf has named.
func (mc *machine) noteCaught(p any, place string) {
	if !mc.panicking && mc.pos.IsValid() {
		mc.panicking, mc.panicPos = true, mc.pos
	}
	if place != "" {
		mc.blame(p, place)
	}
	mc.contain(p)
}

// runDeferring runs a function that defers: a panic runs the deferred calls, one of which may recover.
func (f *fn) runDeferring(m unsafe.Pointer) {
	for _, z := range f.zero {
		typedmemclr(z.rt, unsafe.Add(m, z.off))
	}
	head := headOf(m)
	depth := f.mc.depth
	if f.returns(m, head) {
		*head = frameHead{f: f}
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
	*head = frameHead{f: f}
}

// returns runs the body of a function and reports whether it returned. If not, head has what it panicked with.
func (f *fn) returns(m unsafe.Pointer, head *frameHead) (normal bool) {
	defer func() {
		if !normal && f.mc.aborted == nil {
			place := faultOf()
			head.panic = recover()
			f.mc.noteCaught(head.panic, place)
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
			h.f.mc.noteCaught(p, place)
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
