package interp

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"sync"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/rt"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// A bug of the engine panics as a fault of the program does: both meet nil pointers and wrong indices. They differ in where the Go runtime
// panics: programs' faults come up in the few functions of the engine that do what an instruction says, or in host functions.

// A cause is what the Go runtime panics for.
type cause uint8

const (
	nilPointer cause = 1 << iota
	division
	shiftCount
	outOfBounds
	operand // anything else that the runtime finds wrong with what it works on: keys, channels, lengths
)

// causes has the functions of the Go runtime that panic, by the beginning of their names, each with its cause.
var causes = []struct {
	name string
	cause
}{
	{"runtime.panicmem", nilPointer}, {"runtime.sigpanic", nilPointer},
	{"runtime.panicdivide", division}, {"runtime.panicshift", shiftCount},
	{"runtime.goPanic", outOfBounds}, {"runtime.panicBounds", outOfBounds}, {"runtime.panicIndex", outOfBounds}, {"runtime.panicSlice", outOfBounds},
}

// raises has the functions of this package in which the Go runtime panics on behalf of a program, with the causes. A program's instruction
// that gets a new one needs a line here, or its panics end runs as failures of the engine.
var raises = map[string]cause{
	"nilPanic": nilPointer, "load": nilPointer | outOfBounds, "store": nilPointer | outOfBounds,
	"intOps": division, "numOps": division,
	"shiftCount": shiftCount,
	"assign":     nilPointer | outOfBounds, "elementOf": nilPointer | outOfBounds, "elementOfArray": nilPointer | outOfBounds, "checked": nilPointer, "nilCheck": nilPointer, "addressOf": nilPointer | outOfBounds,
	"addressOp": nilPointer | outOfBounds, "loadedOp": nilPointer, "fieldOp": nilPointer, "onLoaded": nilPointer | outOfBounds, "branch": nilPointer, "place": nilPointer,
	"checkIndex": nilPointer | outOfBounds, "indexPanic": outOfBounds, "readIndex": outOfBounds, "outOfRange": outOfBounds, "index": outOfBounds,
	"equal": operand, "lookup": operand, "mapUpdate": operand, "noteKey": operand, "builtin": operand,
	"appendOp": operand, "appendTo": operand, "makeSlice": operand, "makeChan": operand, "send": operand, "selectInstr": operand,
}

// callers has the functions of this package that call host functions on behalf of a program, or panic on to the host with a panic of the
// program.
var callers = map[string]bool{
	"calls0": true, "calls1": true, "calls2": true, "calls3": true, "rare1": true, "rare2": true, "reals1": true, "reals2": true, "reflectCall": true, "intrinsic": true, "sliceCall": true,
	"runForHost": true, "pull": true, "generic": true,
}

// The packages of ours whose functions a panic may come up in.
var (
	enginePath  = packagePath[machine]()
	programPath = packagePath[recurgent.Call]() // called by programs, which may lack a receiver
	clockPath   = packagePath[rt.Env]()
	daemonPath  = strings.TrimSuffix(programPath, "recurgent.") + "sandbox" // answers a program's questions
)

func packagePath[T any]() string { return reflect.TypeFor[T]().PkgPath() + "." }

// mostFrames bounds how far the origin of a panic is looked for. Host functions within host functions may take more; then a program has
// called them.
const mostFrames = 64

// faultOf returns where in our own code the panic under way came up that this code itself has run into; "" for any other. It must be called
// by a deferred function.
func faultOf() string {
	function, why, library := origin()
	switch {
	case why == 0: // its own word
		return ""
	case strings.HasPrefix(function, enginePath):
		for _, part := range nameParts().FindAllString(function[len(enginePath):], -1) {
			if library && callers[part] || !library && raises[part]&why != 0 {
				return ""
			}
		}
	case library, why == nilPointer && strings.HasPrefix(function, programPath):
		return ""
	}
	return function[strings.LastIndexByte(function, '/')+1:]
}

// origin returns the innermost function of ours in which the panic under way came up, what the Go runtime panicked for, and whether functions of
// other packages are in between. There is no cause when that function panicked itself, or there is none of ours within mostFrames.
func origin() (function string, why cause, library bool) {
	var pcs [mostFrames]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	panicked := false
	for {
		f, more := frames.Next()
		switch {
		case !panicked:
			panicked = f.Function == "runtime.gopanic"
		case ours(f.Function):
			return f.Function, why, library
		case !ofTheRuntime(f.Function):
			library, why = true, cmp.Or(why, operand)
		default:
			why = cmp.Or(why, causeOf(f.Function))
		}
		if !more {
			return "", 0, false
		}
	}
}

func ours(function string) bool {
	for _, path := range []string{enginePath, programPath, clockPath, daemonPath} {
		if strings.HasPrefix(function, path) {
			return true
		}
	}
	return false
}

// nameParts finds the names in that of a function: a closure's has those of the functions around it, inlined ones too.
var nameParts = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\w+`) })

// ofTheRuntime reports whether a function belongs to the Go runtime: it does what Go's statements say, or what package reflect offers of them.
func ofTheRuntime(name string) bool {
	for _, prefix := range []string{"runtime.", "internal/", "type:", "reflect."} {
		if strings.HasPrefix(name, prefix) {
			return name != "reflect.DeepEqual"
		}
	}
	return false
}

func causeOf(name string) cause {
	for _, c := range causes {
		if strings.HasPrefix(name, c.name) {
			return c.cause
		}
	}
	return operand
}

// blame ends the run when the panic r, which a deferred function has recovered, is a bug of the engine's at that place.
func (mc *machine) blame(r any, place string) {
	mc.contain(r)
	mc.abort(faultAt(r, place))
}

// faultAt returns the failure for a panic r of the engine's own at that place.
func faultAt(r any, place string) *Failure {
	if f, ok := r.(*Failure); ok {
		return f
	}
	return &Failure{Why: fmt.Sprintf("%.1000v in %s", r, place)}
}
