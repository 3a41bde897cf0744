package interp

import (
	"fmt"
	"go/constant"
	"go/importer"
	"go/token"
	"go/types"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

// The mirrored layouts, flags and functions are those that this Go version's own source declares.
func TestLayout(t *testing.T) {
	goSource := importer.ForCompiler(token.NewFileSet(), "source", nil)
	lookup := func(path string) *types.Scope {
		p, err := goSource.Import(path)
		if err != nil {
			t.Fatal(err)
		}
		return p.Scope()
	}
	abi, refl, run := lookup("internal/abi"), lookup("reflect"), lookup("runtime")
	for mirror, original := range map[any]types.Object{
		new(rtype): abi.Lookup("Type"), new(uncommonType): abi.Lookup("UncommonType"), new(methodEntry): abi.Lookup("Method"),
		new(imethodEntry): abi.Lookup("Imethod"), new(ptrType): abi.Lookup("PtrType"), new(sliceType): abi.Lookup("SliceType"),
		new(arrayType): abi.Lookup("ArrayType"), new(chanType): abi.Lookup("ChanType"), new(funcType): abi.Lookup("FuncType"),
		new(interfaceType): abi.Lookup("InterfaceType"), new(mapType): abi.Lookup("MapType"), new(structType): abi.Lookup("StructType"),
		new(structField): abi.Lookup("StructField"), new(itabHeader): abi.Lookup("ITab"), new(eface): abi.Lookup("EmptyInterface"),
		new(sliceHeader): refl.Lookup("SliceHeader"), new(closureHead): refl.Lookup("makeFuncImpl"),
		new(typeAssertionError): run.Lookup("TypeAssertionError"),
	} {
		compareLayout(t, reflect.TypeOf(mirror).Elem(), original)
	}
	for name, mirror := range map[string]int64{
		"TFlagUncommon": flagUncommon, "TFlagExtraStar": flagExtraStar, "TFlagNamed": flagNamed, "TFlagRegularMemory": flagRegular, "TFlagGCMaskOnDemand": flagMaskOnDemand,
		"TFlagDirectIface": flagDirectIface, "Interface": kindInterface, "Slice": kindSlice, "String": kindString,
	} {
		c, ok := abi.Lookup(name).(*types.Const)
		if !ok {
			t.Errorf("internal/abi declares no constant %s", name)
		} else if v, _ := constant.Int64Val(c.Val()); v != mirror {
			t.Errorf("abi.%s is %d, the mirror has %d", name, v, mirror)
		}
	}
	for name, f := range map[string]any{
		"addReflectOff": addReflectOff, "unsafe_New": unsafeNew, "unsafe_NewArray": unsafeNewArray, "typedmemmove": typedmemmove,
		"typedmemclr": typedmemclr, "typedslicecopy": typedslicecopy, "growslice": growslice, "mapaccess": mapaccess,
		"mapassign0": mapassign, "mapdelete": mapdelete, "maplen": maplen, "mapclear": mapclear, "makemap": makemap,
	} {
		o, ok := refl.Lookup(name).(*types.Func)
		if !ok {
			t.Errorf("reflect declares no function %s", name)
			continue
		}
		if got, want := sizesOf(reflect.TypeOf(f)), goSizes(o.Signature()); got != want {
			t.Errorf("reflect.%s takes and returns values of %s bytes, the mirror has %s", name, want, got)
		}
	}
}

var goSizer = types.SizesFor("gc", runtime.GOARCH)

// otherNames are the mirror's names of fields where they are not Go's.
var otherNames = map[string]string{
	"eface.typ": "type", "closureHead.code": "fn", "typeAssertionError.iface": "interface", "typeAssertionError.missing": "missingmethod",
}

// A place is a field as it lies in memory.
type place struct {
	name         string
	offset, size int64
}

// compareLayout compares the mirror's fields with those of the original, which may have more behind.
func compareLayout(t *testing.T, mirror reflect.Type, original types.Object) {
	t.Helper()
	if original == nil {
		t.Errorf("Go no longer declares what %s mirrors", mirror)
		return
	}
	got, want := places(mirror, 0), goPlaces(original.Type(), 0)
	whole := mirror != reflect.TypeFor[itabHeader]() // its methods follow
	if whole && (len(got) != len(want) || int64(mirror.Size()) != goSizer.Sizeof(original.Type())) || len(got) > len(want) {
		t.Errorf("%s has %d fields in %d bytes, %s has %d in %d", mirror, len(got), mirror.Size(), original, len(want), goSizer.Sizeof(original.Type()))
		return
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("%s: field %+v stands in the place of %+v of %s", mirror, got[i], want[i], original)
		}
	}
}

func places(t reflect.Type, base int64) (out []place) {
	for f := range t.Fields() {
		at := base + int64(f.Offset)
		if f.Anonymous {
			out = append(out, places(f.Type, at)...)
		} else {
			name, ok := otherNames[t.Name()+"."+f.Name]
			if !ok {
				name = plainName(f.Name)
			}
			out = append(out, place{name, at, int64(f.Type.Size())})
		}
	}
	return out
}

func goPlaces(t types.Type, base int64) (out []place) {
	s := t.Underlying().(*types.Struct)
	fields := make([]*types.Var, s.NumFields())
	for i := range fields {
		fields[i] = s.Field(i)
	}
	offsets := goSizer.Offsetsof(fields)
	for i, f := range fields {
		if f.Embedded() {
			out = append(out, goPlaces(f.Type(), base+offsets[i])...)
		} else {
			out = append(out, place{plainName(f.Name()), base + offsets[i], goSizer.Sizeof(f.Type())})
		}
	}
	return out
}

// plainName makes names alike that differ by what must be exported there and need not here.
func plainName(name string) string {
	return strings.ToLower(strings.TrimLeft(strings.TrimRight(name, "_"), "_"))
}

func sizesOf(f reflect.Type) string {
	var b strings.Builder
	for in := range f.Ins() {
		b.WriteString(sizeText(int64(in.Size())))
	}
	b.WriteString("->")
	for out := range f.Outs() {
		b.WriteString(sizeText(int64(out.Size())))
	}
	return b.String()
}

func goSizes(s *types.Signature) string {
	var b strings.Builder
	for v := range s.Params().Variables() {
		b.WriteString(sizeText(goSizer.Sizeof(v.Type())))
	}
	b.WriteString("->")
	for v := range s.Results().Variables() {
		b.WriteString(sizeText(goSizer.Sizeof(v.Type())))
	}
	return b.String()
}

func sizeText(n int64) string { return fmt.Sprintf(" %d", n) }

// A function made by reflect.MakeFunc has the mirrored form, and can be called.
func TestMakeFuncForm(t *testing.T) {
	ft := reflect.TypeFor[func(int, string) error]()
	called := false
	v := reflect.MakeFunc(ft, func([]reflect.Value) []reflect.Value {
		called = true
		return []reflect.Value{reflect.Zero(ft.Out(0))}
	})
	head := (*closureHead)(funcPointer(v))
	if head.code != makeFuncCode() || reflectOf((*rtype)(head.ftyp)) != ft {
		t.Error("reflect.makeFuncImpl has another form")
	}
	if err := v.Interface().(func(int, string) error)(1, ""); err != nil || !called {
		t.Errorf("called %t: %v", called, err)
	}
	if !rtypeOf(reflect.TypeFor[*int]()).direct() || rtypeOf(reflect.TypeFor[int]()).direct() {
		t.Error("the flag of types that interfaces hold directly has moved")
	}
}
