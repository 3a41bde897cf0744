package interp

import (
	"bytes"
	"cmp"
	"errors"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/symbols"
)

// hostSignatures returns the types of all functions that programs can name, and of all methods of types that they can come by, each with names.
func hostSignatures() map[reflect.Type][]string {
	out := map[reflect.Type][]string{}
	var found []reflect.Type
	note := func(name string, ft reflect.Type) {
		out[ft] = append(out[ft], name)
		found = slices.AppendSeq(slices.AppendSeq(found, ft.Ins()), ft.Outs())
	}
	for _, p := range allow.Packages() {
		for name, v := range symbols.Table(p.Path) {
			if t, ok := v.(reflect.Type); ok {
				found = append(found, t, reflect.PointerTo(t))
			} else if t := reflect.TypeOf(v); t.Kind() == reflect.Func {
				note(p.Path+"."+name, t)
			}
		}
	}
	seen := map[reflect.Type]bool{}
	for len(found) > 0 {
		t := found[0]
		found = found[1:]
		if seen[t] || t.Kind() == reflect.Interface {
			continue
		}
		seen[t] = true
		for m := range t.Methods() {
			note(t.String()+"."+m.Name, m.Func.Type())
		}
	}
	return out
}

// slowly has the functions that are called by reflection: those with arrays, with arguments of ten words and more, and some with results that few
// functions have.
const slowly = `
	big.Float.Float32 big.Rat.Float32 io.SectionReader.Outer netip.Addr.As16 netip.Addr.As4 rand.ChaCha8.Seed
	recurgent.Call.Delegate recurgent.Call.FileInfo recurgent.Call.Predict recurgent.Call.FetchWith recurgent.Tool.Call recurgent.Tool.CallWith recurgent.Outcome.OK
	reflect.Value.FieldByIndexErr reflect.Value.InterfaceData reflect.Value.SetComplex reflect.Value.SetFloat reflect.Method.IsExported
	reflect.StructField.IsExported regexp.Regexp.Expand regexp.Regexp.ExpandString scanner.Scanner.Pos scanner.Scanner.String
	xml.Encoder.EncodeElement xml.ProcInst.Copy xml.StartElement.Copy xml.StartElement.End base32.Encoding.WithPadding base64.Encoding.Strict
	base64.Encoding.WithPadding bytes.Replace crypto/md5.Sum crypto/sha1.Sum crypto/sha256.Sum224 crypto/sha256.Sum256 crypto/sha512.Sum384
	crypto/sha512.Sum512 crypto/sha512.Sum512_224 crypto/sha512.Sum512_256 encoding/ascii85.Decode encoding/pem.Decode math.Nextafter32
	math/rand/v2.NewChaCha8 net/netip.AddrFrom16 net/netip.AddrFrom4 strconv.ParseComplex strconv.UnquoteChar
	jsontext.Decoder.ReadToken jsontext.Decoder.StackIndex jsontext.Encoder.StackIndex jsontext.Encoder.WriteToken
	jsontext.Token.Float32 jsontext.Token.Float jsontext.Token.Int jsontext.Token.Uint jsontext.Token.Bool jsontext.Token.Kind
	jsontext.Token.Clone jsontext.Token.String
`

// A function of every signature that programs can call gets its arguments and gives its results as by reflection, while the collector runs.
func TestHostCallsOfEverySignature(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var byReflection []string
	signatures := hostSignatures()
	for _, ft := range slices.SortedFunc(mapKeys(signatures), func(a, b reflect.Type) int { return cmp.Compare(a.String(), b.String()) }) {
		if !checkSignature(t, ft, random) {
			byReflection = append(byReflection, signatures[ft]...)
		}
	}
	if len(signatures) < 700 {
		t.Errorf("only %d signatures are found", len(signatures))
	}
	for _, name := range byReflection {
		if !slices.Contains(strings.Fields(slowly), strings.TrimPrefix(name, "*")) {
			t.Errorf("%s is called by reflection", name)
		}
	}
}

func mapKeys[K comparable, V any](m map[K]V) func(func(K) bool) {
	return func(yield func(K) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// checkSignature reports whether functions of type ft are called without reflection.
func checkSignature(t *testing.T, ft reflect.Type, random *rand.Rand) bool {
	fields := []reflect.StructField{{Name: "Head", Type: reflect.TypeFor[*int]()}}
	add := func(prefix string, of reflect.Type) {
		fields = append(fields, reflect.StructField{Name: prefix + string(rune('A'+len(fields))), Type: of})
	}
	for in := range ft.Ins() {
		add("In", in)
	}
	for o := range ft.Outs() {
		add("Out", o)
	}
	add("Pad", reflect.TypeFor[uintptr]())
	frame := reflect.New(reflect.StructOf(fields)).Elem()
	var args, results []argument
	want := make([]reflect.Value, ft.NumOut())
	for i := range ft.NumIn() {
		frame.Field(1 + i).Set(someValue(ft.In(i), random))
		args = append(args, argument{frame.Type().Field(1 + i).Offset, nil})
	}
	for i := range want {
		want[i] = someValue(ft.Out(i), random)
		results = append(results, argument{frame.Type().Field(1 + len(args) + i).Offset, nil})
	}
	var p passing
	p.addAll(ft, args)
	direct := (&compiler{}).directCaller(p, ft, results)
	if direct == nil {
		return false
	}
	calls := 0
	f := reflect.MakeFunc(ft, func(in []reflect.Value) []reflect.Value {
		calls++
		if random.IntN(8) == 0 {
			runtime.GC()
		}
		for i, got := range in {
			if !sameBits(got, frame.Field(1+i)) {
				t.Errorf("%v: argument %d is %v, not %v", ft, i, got, frame.Field(1+i))
			}
		}
		return want
	})
	*direct.fn = funcPointer(f)
	direct.call(frame.Addr().UnsafePointer())
	for i := range want {
		if got := frame.Field(1 + len(args) + i); !sameBits(got, want[i]) {
			t.Errorf("%v: result %d is %v, not %v", ft, i, got, want[i])
		}
	}
	if calls != 1 {
		t.Errorf("%v: %d calls", ft, calls)
	}
	return true
}

// sameBits compares two values byte by byte.
func sameBits(a, b reflect.Value) bool {
	bits := func(v reflect.Value) []byte {
		p := reflect.New(v.Type())
		p.Elem().Set(v)
		return bytes.Clone(unsafe.Slice((*byte)(p.UnsafePointer()), v.Type().Size()))
	}
	return bytes.Equal(bits(a), bits(b))
}

// someValue returns a random value, whose pointers are valid.
func someValue(t reflect.Type, random *rand.Rand) reflect.Value {
	p := reflect.New(t)
	fillRandom(p.Elem(), random)
	return p.Elem()
}

func fillRandom(v reflect.Value, random *rand.Rand) {
	t := v.Type()
	switch v.Kind() {
	case reflect.Pointer:
		*(*unsafe.Pointer)(v.Addr().UnsafePointer()) = reflect.New(t.Elem()).UnsafePointer()
	case reflect.Map:
		v.Set(reflect.MakeMap(t))
	case reflect.Chan:
		v.Set(reflect.MakeChan(reflect.ChanOf(reflect.BothDir, t.Elem()), 1).Convert(t))
	case reflect.Func:
		v.Set(reflect.MakeFunc(t, func([]reflect.Value) []reflect.Value { return nil }))
	case reflect.String:
		v.SetString(strings.Repeat("x", 1+random.IntN(9)))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(t, 1+random.IntN(3), 4+random.IntN(3)))
	case reflect.Interface:
		for _, x := range []any{errors.New("x"), &bytes.Buffer{}, reflect.TypeFor[int](), 7} {
			if reflect.TypeOf(x).Implements(t) {
				v.Set(reflect.ValueOf(x))
				return
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Field(i)
			fillRandom(reflect.NewAt(f.Type(), f.Addr().UnsafePointer()).Elem(), random)
		}
	case reflect.Array:
		for i := range v.Len() {
			fillRandom(v.Index(i), random)
		}
	case reflect.Bool:
		v.SetBool(random.IntN(2) == 1)
	case reflect.UnsafePointer:
		v.SetPointer(unsafe.Pointer(new(int)))
	default: // numbers
		for i := range t.Size() {
			*(*byte)(unsafe.Add(v.Addr().UnsafePointer(), i)) = byte(random.IntN(120)) // no NaN
		}
	}
}
