package interp

import (
	"go/types"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"unsafe"
)

const sampleTypes = `
type key struct { name string; n int; of *node }
type node struct {
	base
	text string ` + "`json:\"t\"`" + `
	kids map[key]node
	any any
	f func(node, ...[]int) (key, error)
	few [3]pair
	c chan<- *node
}
type base struct { id string; nums [2]float64 }
type pair struct { a int; b string }
type face interface { Take(node) key; hidden() }
type large struct { parts [3000]struct { s string; n [3]int; p *int }; last key }
type plain struct { a, b int32; p *int }
type one struct { p *node }
type list []node
type table map[string]large
type fn func(int, string) (face, bool)
type row [4]*pair
type pipe chan map[string]row
func (b base) ID() string { return b.id }
func (n node) Take(node) key { return key{} }
func (n *node) hidden() {}
func (n *node) String() string { return n.text }
`

const sampleBody = `
	n := &node{kids: map[key]node{}, text: "t"}
	var x face = n
	l := new(large)
	l.last.name = "last"
	return []any{x, *n, l, table{}, fn(nil), list{}, row{}, pipe(nil), one{n}, plain{}, struct{ base; k key }{}, map[string]*large{}}, nil`

// typeNamed returns the made type of a name, or of the text of an unnamed one.
func typeNamed(t *testing.T, tt *typeTable, name string) *rtype {
	t.Helper()
	var out *rtype
	tt.byType.Iterate(func(gt types.Type, rt any) {
		if rt.(reflect.Type).String() == name {
			out = rtypeOf(rt.(reflect.Type))
		}
	})
	if out == nil {
		t.Fatalf("the program has no type %s", name)
	}
	return out
}

// change sets *p to v and returns how to undo that.
func change[T any](p *T, v T) func() {
	old := *p
	*p = v
	return func() { *p = old }
}

// flip turns one bit of a copy of a type's pointer mask.
func flip(r *rtype, word uintptr) func() {
	mask := make([]byte, (r.PtrBytes/wordSize/64+1)*8)
	copy(mask, unsafe.Slice(r.GCData, (r.PtrBytes/wordSize+7)/8))
	mask[word/8] ^= 1 << (word % 8)
	return change(&r.GCData, &mask[0])
}

func as[T any](r *rtype) *T { return (*T)(unsafe.Pointer(r)) }

// The oracle objects to every kind of wrong type, and to none that is right.
func TestOracleObjects(t *testing.T) {
	c := compile(t, "import \"fmt\"\n"+sampleTypes+"var _ fmt.Stringer = (*node)(nil)", sampleBody)
	if _, err, p := c.Run(newCall(t)); err != nil || p != nil {
		t.Fatal(err, p)
	}
	tt := c.mc.types
	get := func(name string) *rtype { return typeNamed(t, tt, name) }
	node, key, base, large, plain := get("tool.node"), get("tool.key"), get("tool.base"), get("tool.large"), get("tool.plain")
	kids := as[mapType](get("map[tool.key]tool.node"))
	group := as[structType](kids.Group)
	slots := as[arrayType](group.Fields[len(group.Fields)-1].Typ)
	ptr, face, fn, pipe, row := get("*tool.node"), get("tool.face"), get("tool.fn"), get("tool.pipe"), get("tool.row")
	intType, stringType := rtypeOf(reflect.TypeFor[int]()), rtypeOf(reflect.TypeFor[string]())
	fields := func(r *rtype, edit func(f []structField) []structField) func() {
		s := as[structType](r)
		return change(&s.Fields, edit(append([]structField{}, s.Fields...)))
	}
	field := func(r *rtype, i int, edit func(f *structField)) func() {
		return fields(r, func(f []structField) []structField { edit(&f[i]); return f })
	}
	methods := methodTable(ptr)
	uncommon := (*uncommonType)(unsafe.Add(unsafe.Pointer(ptr), reflect.TypeFor[ptrType]().Size()))
	args := unsafe.Slice((**rtype)(unsafe.Add(unsafe.Pointer(fn), reflect.TypeFor[funcType]().Size()+reflect.TypeFor[uncommonType]().Size())), 4)
	yes := func(_, _ unsafe.Pointer) bool { return true }

	tests := map[string]func() (undo func()){
		"size":                    func() func() { return change(&node.Size, node.Size+8) },
		"alignment":               func() func() { return change(&node.Align, 4) },
		"alignment as a field":    func() func() { return change(&node.FieldAlign, 4) },
		"kind":                    func() func() { return change(&node.Kind, uint8(reflect.Int)) },
		"pointer bytes":           func() func() { return change(&node.PtrBytes, node.PtrBytes-8) },
		"mask lacks a pointer":    func() func() { return flip(node, 0) },
		"mask has one too many":   func() func() { return flip(node, 1) },
		"mask of a key":           func() func() { return flip(key, 3) },
		"large type lacks a part": func() func() { return field(large, 0, func(f *structField) { f.Typ = intType }) },
		"large type's inner mask": func() func() { return flip(as[arrayType](as[structType](large).Fields[0].Typ).Elem, 3) },
		"no equality":             func() func() { return change(&key.Equal, nil) },
		"equality without need":   func() func() { return change(&node.Equal, yes) },
		"all are equal":           func() func() { return change(&key.Equal, yes) },
		"none is equal":           func() func() { return change(&key.Equal, func(_, _ unsafe.Pointer) bool { return false }) },
		"equality leaves out a field": func() func() {
			return change(&plain.Equal, func(p, q unsafe.Pointer) bool { return *(*int32)(p) == *(*int32)(q) })
		},
		"equality one way only": func() func() {
			return change(&plain.Equal, func(p, q unsafe.Pointer) bool {
				return *(*int32)(p) <= *(*int32)(q) && *(*[12]byte)(unsafe.Add(p, 4)) == *(*[12]byte)(unsafe.Add(q, 4))
			})
		},
		"direct in interfaces":       func() func() { return change(&key.TFlag, key.TFlag|flagDirectIface) },
		"not direct in interfaces":   func() func() { one := get("tool.one"); return change(&one.TFlag, one.TFlag&^flagDirectIface) },
		"plain memory with a string": func() func() { return change(&key.TFlag, key.TFlag|flagRegular) },
		"name":                       func() func() { return change(&node.Str, key.Str) },
		"named":                      func() func() { return change(&node.TFlag, node.TFlag&^flagNamed) },
		"package path": func() func() {
			u := (*uncommonType)(unsafe.Add(unsafe.Pointer(node), reflect.TypeFor[structType]().Size()))
			return change(&u.PkgPath, node.Str)
		},
		"pointer to it": func() func() { return change(&node.PtrToThis, 0) },

		"field's type": func() func() {
			return field(base, 0, func(f *structField) { f.Typ = rtypeOf(reflect.TypeFor[error]()) })
		},
		"field of equal form": func() func() { return field(base, 0, func(f *structField) { f.Typ = pairString(t) }) },
		"field's offset":      func() func() { return field(plain, 1, func(f *structField) { f.Offset = 0 }) },
		"field's name": func() func() {
			return field(plain, 0, func(f *structField) { f.Name = unsafe.SliceData(encodeName("z", "", false, false, 0)) })
		},
		"field's tag": func() func() {
			return field(node, 1, func(f *structField) { f.Name = unsafe.SliceData(encodeName("text", "x", false, false, 0)) })
		},
		"embedding": func() func() {
			return field(node, 0, func(f *structField) { f.Name = unsafe.SliceData(encodeName("base", "", false, false, 0)) })
		},
		"a field is missing": func() func() { return fields(plain, func(f []structField) []structField { return f[:2] }) },
		"package of fields": func() func() {
			s := as[structType](plain)
			return change(&s.PkgPath, unsafe.SliceData(encodeName("other", "", false, false, 0)))
		},

		"map's key":          func() func() { return change(&kids.Key, stringType) },
		"map's element":      func() func() { return change(&kids.Elem, stringType) },
		"map's hash":         func() func() { return change(&kids.Hasher, func(unsafe.Pointer, uintptr) uintptr { return 7 }) },
		"mask of map groups": func() func() { return flip(kids.Group, 1) },
		"mask of map slots":  func() func() { return flip(slots.Elem, 0) },
		"slots of a map":     func() func() { return change(&slots.Len, 7) },
		"mask of all slots":  func() func() { return flip(&slots.rtype, 0) },
		"part of a group":    func() func() { return field(kids.Group, len(group.Fields)-1, func(f *structField) { f.Offset = 0 }) },

		"array's length":        func() func() { return change(&as[arrayType](row).Len, 5) },
		"array's element":       func() func() { return change(&as[arrayType](row).Elem, rtypeOf(reflect.TypeFor[*int]())) },
		"array's slice":         func() func() { return change(&as[arrayType](row).Slice, rtypeOf(reflect.TypeFor[[]*int]())) },
		"channel's element":     func() func() { return change(&as[chanType](pipe).Elem, intType) },
		"channel's direction":   func() func() { return change(&as[chanType](pipe).Dir, int(reflect.RecvDir)) },
		"slice's element":       func() func() { return change(&as[sliceType](get("tool.list")).Elem, key) },
		"pointer's element":     func() func() { return change(&as[ptrType](ptr).Elem, key) },
		"function's parameter":  func() func() { return change(&args[1], intType) },
		"function's result":     func() func() { return change(&args[3], intType) },
		"function's parameters": func() func() { return change(&as[funcType](fn).InCount, 1) },
		"variadic function":     func() func() { f := as[funcType](fn); return change(&f.OutCount, f.OutCount|1<<15) },

		"interface lacks a method": func() func() { i := as[interfaceType](face); return change(&i.Methods, i.Methods[:1]) },
		"interface method's type":  func() func() { i := as[interfaceType](face); return change(&i.Methods[0].Typ, i.Methods[1].Typ) },
		"interface method's name":  func() func() { i := as[interfaceType](face); return change(&i.Methods[0].Name, methods[0].Name) },
		"no methods":               func() func() { return change(&uncommon.Mcount, 0) },
		"exported methods":         func() func() { return change(&uncommon.Xcount, 1) },
		"method's type":            func() func() { return change(&methods[0].Mtyp, methods[2].Mtyp) },
		"method's name":            func() func() { return change(&methods[0].Name, methods[1].Name) },
		"method's code":            func() func() { return change(&methods[0].Ifn, 0) },
		"method's direct code":     func() func() { return change(&methods[0].Tfn, 0) },
		"hidden method's name":     func() func() { return change(&methods[3].Name, methods[0].Name) },
		"order of methods":         func() func() { return change(&methods[0], methods[1]) },
	}
	for i := range reflect.TypeFor[mapType]().NumField() { // all that is counted of a map
		f := reflect.ValueOf(kids).Elem().Field(i)
		if f.CanUint() {
			size, p := f.Type().Size(), f.Addr().UnsafePointer()
			tests["map's "+reflect.TypeFor[mapType]().Field(i).Name] = func() func() {
				if size == 4 {
					return change((*uint32)(p), *(*uint32)(p)^4)
				}
				return change((*uintptr)(p), *(*uintptr)(p)+8)
			}
		}
	}
	for name, corrupt := range tests {
		t.Run(name, func(t *testing.T) {
			undo := corrupt()
			err := tt.check()
			undo()
			if err == nil {
				t.Error("nothing is said")
			} else {
				t.Logf("%.200s", strings.SplitN(err.Error(), "\n", 2)[0])
			}
			if err := tt.check(); err != nil {
				t.Fatalf("the right types: %v", err)
			}
		})
	}
}

// pairString returns a made type with the memory form of a string.
func pairString(t *testing.T) *rtype {
	f := newForm(reflect.TypeFor[string](), 0, 0)
	(&typeTable{}).identify(f, "text")
	return f.t
}

// The mask that the runtime builds of a large type when it needs one is looked at, too.
func TestOracleSeesBuiltMasks(t *testing.T) {
	c := compile(t, sampleTypes, sampleBody)
	v, err, p := c.Run(newCall(t))
	if err != nil || p != nil {
		t.Fatal(err, p)
	}
	runtime.GC() // reads the large value, and so needs its mask
	large := typeNamed(t, c.mc.types, "tool.large")
	built := builtMask(large)
	if built == nil {
		t.Fatal("the runtime has built no mask")
	}
	if err := c.CheckTypes(); err != nil {
		t.Fatal(err)
	}
	runtime.KeepAlive(v)
	undo := change(built, *built^2)
	err = c.CheckTypes()
	undo()
	if err == nil || !strings.Contains(err.Error(), "pointer in word 1") {
		t.Errorf("got %v", err)
	}
}
