package interp

import (
	"go/token"
	"go/types"
	"reflect"
	"unsafe"

	"golang.org/x/tools/go/types/typeutil"
)

// maxTypes bounds the run-time types of a program: a generic type may instantiate itself without end.
const maxTypes = 8192

// maxParams bounds the parameters and results of a function type: with a receiver reflect makes no more than 128.
const maxParams = 127

// A typeTable makes the run-time types of a program: reflect makes what it can, declare what it refuses, which is names,
// methods, embedded and blank fields, and interfaces with methods. The types live as long as the process, as the runtime demands.
//
// A type that refers to itself must be seen by reflect before its own parts can be made. So that nobody ever sees half a type, each is
// born as a copy of its layout, a whole type of the same memory form; of returns when it and all that it leads to have
// got their own parts and methods.
type typeTable struct {
	byType   typeutil.Map          // types.Type -> reflect.Type
	layouts  typeutil.Map          // types.Type -> reflect.Type of the same memory form
	back     map[*rtype]types.Type // program types with methods, for dynamic calls
	tables   map[string]map[string]any
	compiled map[*types.Package]bool          // packages whose types are made: the program, and packages compiled with it
	hidden   map[typeKey]reflect.Type         // types of the binary that no table lists; nil until the first lookup
	numbers  map[token.Pos]int                // of types that functions declare
	locals   map[*types.TypeName][]types.Type // type arguments of the functions that declare types
	naming   typeutil.Map                     // types without a name whose text is being written
	born     []func()                         // complete new types with their parts
	bare     []func()                         // fill method tables
	depth    int
	count    int
	serial   uint32
	broken   string // why no more types can be made: some may have been left without their parts
	code     func(t types.Type, sel *types.Selection, ft reflect.Type) unsafe.Pointer
	msets    typeutil.MethodSetCache
}

func newTypeTable(compiled map[*types.Package]bool) *typeTable {
	return &typeTable{compiled: compiled, locals: map[*types.TypeName][]types.Type{}, numbers: map[token.Pos]int{}, back: map[*rtype]types.Type{}, tables: map[string]map[string]any{}}
}

// of returns the run-time type of t, which is finished, and so is all that it leads to.
func (tt *typeTable) of(t types.Type) reflect.Type {
	if rt := tt.byType.At(t); rt != nil {
		return rt.(reflect.Type)
	}
	if tt.broken != "" {
		fail(tt.broken)
	}
	if tt.depth > 0 {
		return tt.enter(t)
	}
	done := false
	defer func() {
		if !done {
			tt.broken = "the program's types could not be made"
		}
	}()
	tt.depth++ // types made from here on are finished below
	rt := tt.enter(t)
	for len(tt.born)+len(tt.bare) > 0 {
		queue := &tt.born
		if len(tt.born) == 0 {
			queue = &tt.bare // method types need parts only, but methods may need types whose parts are missing
		}
		next := (*queue)[0]
		*queue = (*queue)[1:]
		next()
	}
	tt.depth--
	done = true
	return rt
}

func (tt *typeTable) enter(t types.Type) reflect.Type {
	tt.depth++
	if tt.count++; tt.count > maxTypes || tt.depth > 2000 {
		refuse("the program has too many types")
	}
	rt := tt.make(types.Unalias(t))
	tt.depth--
	tt.byType.Set(t, rt)
	return rt
}

func (tt *typeTable) make(t types.Type) reflect.Type {
	switch t := t.(type) {
	case *types.Basic:
		return basicType(t)
	case *types.Named:
		return tt.named(t)
	case *types.Pointer:
		elem := tt.of(t.Elem())
		if rt := tt.byType.At(t); rt != nil { // made together with its element
			return rt.(reflect.Type)
		}
		return reflect.PointerTo(elem)
	case *types.Slice:
		return reflect.SliceOf(tt.of(t.Elem()))
	case *types.Array:
		return reflect.ArrayOf(int(t.Len()), tt.of(t.Elem()))
	case *types.Map:
		return reflect.MapOf(tt.of(t.Key()), tt.of(t.Elem()))
	case *types.Chan:
		if tt.layout(t.Elem()).Size() >= 1<<16 {
			refuse("the elements of a channel are larger than 64 KiB") // to the Go toolchain, too
		}
		return reflect.ChanOf(chanDirs[t.Dir()], tt.of(t.Elem()))
	case *types.Signature:
		return tt.signature(t)
	case *types.Struct:
		return tt.structure(t)
	case *types.Interface:
		if t.NumMethods() == 0 {
			return reflect.TypeFor[any]()
		}
		return tt.declare(t, tt.unnamed(t, tt.interfaceName), 0)
	}
	fail("no run-time type for " + t.String())
	return nil
}

var chanDirs = [...]reflect.ChanDir{types.SendRecv: reflect.BothDir, types.SendOnly: reflect.SendDir, types.RecvOnly: reflect.RecvDir}

func (tt *typeTable) signature(t *types.Signature) reflect.Type {
	in := make([]reflect.Type, t.Params().Len())
	for i := range in {
		in[i] = tt.of(t.Params().At(i).Type())
	}
	out := make([]reflect.Type, t.Results().Len())
	for i := range out {
		out[i] = tt.of(t.Results().At(i).Type())
	}
	if len(in)+len(out) > maxParams {
		refuse("a function type has more than 127 parameters and results")
	}
	return reflect.FuncOf(in, out, t.Variadic())
}

func basicType(t *types.Basic) reflect.Type {
	if t.Kind() < types.BasicKind(len(basics)) && basics[t.Kind()] != nil {
		return basics[t.Kind()]
	}
	switch t.Kind() {
	case types.UntypedBool:
		return reflect.TypeFor[bool]()
	case types.UntypedInt:
		return reflect.TypeFor[int]()
	case types.UntypedRune:
		return reflect.TypeFor[rune]()
	case types.UntypedFloat:
		return reflect.TypeFor[float64]()
	case types.UntypedComplex:
		return reflect.TypeFor[complex128]()
	case types.UntypedString:
		return reflect.TypeFor[string]()
	case types.UntypedNil:
		return reflect.TypeFor[unsafe.Pointer]()
	case types.Invalid:
		return reflect.TypeFor[struct{}]() // an unused part of a tuple
	}
	fail("no run-time type for " + t.String())
	return nil
}

var basics = [...]reflect.Type{
	types.Bool: reflect.TypeFor[bool](), types.Int: reflect.TypeFor[int](), types.Int8: reflect.TypeFor[int8](),
	types.Int16: reflect.TypeFor[int16](), types.Int32: reflect.TypeFor[int32](), types.Int64: reflect.TypeFor[int64](),
	types.Uint: reflect.TypeFor[uint](), types.Uint8: reflect.TypeFor[uint8](), types.Uint16: reflect.TypeFor[uint16](),
	types.Uint32: reflect.TypeFor[uint32](), types.Uint64: reflect.TypeFor[uint64](), types.Uintptr: reflect.TypeFor[uintptr](),
	types.Float32: reflect.TypeFor[float32](), types.Float64: reflect.TypeFor[float64](),
	types.Complex64: reflect.TypeFor[complex64](), types.Complex128: reflect.TypeFor[complex128](),
	types.String: reflect.TypeFor[string](), types.UnsafePointer: reflect.TypeFor[unsafe.Pointer](),
}

// off registers name bytes with the runtime, which keeps them.
func off(b []byte) int32 { return addReflectOff(unsafe.Pointer(unsafe.SliceData(b))) }

func typeOff(t reflect.Type) int32 { return addReflectOff(unsafe.Pointer(rtypeOf(t))) }

func pkgName(p *types.Package) []byte {
	path := "tool"
	if p != nil {
		path = p.Path()
	}
	return encodeName(path, "", false, false, 0)
}
