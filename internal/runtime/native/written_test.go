package native_test

import (
	"encoding/json"
	"testing"
)

// written maps names to programs that need a text of their own, with the values that the Go toolchain gives.
var written = map[string]struct{ source, want string }{
	"a select of calls": {`
var said []string

func channel(name string, n int) chan int {
	said = append(said, name)
	c := make(chan int, 1)
	for range n {
		c <- 7
	}
	return c
}

func value(n int) int {
	said = append(said, "value")
	return n
}

type flag bool

func first(which int) (out int) {
	flags, any1 := make(chan flag, 1), make(chan any, 1)
L:
	select {
	case v, ok := <-channel("a", which):
		if ok && which == 1 {
			break L
		}
		out = v
	case channel("b", 1-which) <- value(3):
		out = 100
	case flags <- which < 5:
		out = 200
	case any1 <- nil:
		out = 300
	case any1 <- 1 << which:
		out = 400
	}
	return out + len(flags) + len(any1)
}

func last(c chan int) int {
	select {
	case <-func() chan int { select { case v := <-channel("in", 1): return channel("out", v-7); default: return nil } }():
		return 1
	case v := <-c:
		return v
	case c <- 5:
		return <-c
	}
}

func Run(call *recurgent.Call) (any, error) {
	a, b := first(0), first(1)
	return []any{a, b, last(make(chan int, 1)), said}, nil
}`, `[201,0,5,["a","b","value","a","b","value","in","out"]]`},
	"names of the text": {`
type RecurgentNativeProgram struct{ RecurgentNativeX int }

var RecurgentNativeSupport, RecurgentNativeReset1 = RecurgentNativeProgram{1}, 2

func RecurgentNativeRange(m map[string]int) (n int) {
	for RecurgentNativeRange, v := range m {
		n += v + len(RecurgentNativeRange)
	}
	return n
}

func Run(call *recurgent.Call) (any, error) {
	RecurgentNative1 := RecurgentNativeRange(map[string]int{"a": 1, "b": 2})
	return []any{fmt.Sprintf("%T", RecurgentNativeSupport), RecurgentNativeSupport.RecurgentNativeX, RecurgentNativeReset1, RecurgentNative1}, nil
}`, `["tool.RecurgentNativeProgram",1,2,5]`},
	"types without a name": {`
func same[T any](v T) T { return v }

type codec[O binary.ByteOrder] struct{ order O }

func of[O binary.ByteOrder](o O) codec[O] { return codec[O]{o} }

func (c codec[O]) put(n uint16) []byte { b := make([]byte, 2); c.order.PutUint16(b, n); return b }

var (
	order      = same(binary.LittleEndian)
	big        = of(binary.BigEndian)
	both, one  = map[string]any{"a": same(binary.BigEndian)}, []codecOf{{big, same(big)}}
	pointer    = &order
	orders     = list(binary.BigEndian, same(binary.BigEndian))
	by         = index(binary.LittleEndian)
	delta      = same(unicode.CaseRange{Delta: [3]rune{1, 2, 3}}.Delta)
	calls      int
	apply      = same(func() (n int) { calls++; return calls })
	applied    = apply()
)

type codecOf struct{ a, b interface{ put(uint16) []byte } }

func list[T any](all ...T) []T { return all }

func index[K comparable](k K) map[K]int { return map[K]int{k: 1} }

func Run(call *recurgent.Call) (any, error) {
	return []any{order.Uint16([]byte{1, 2}), big.put(1)[1], len(both), one[0].b.put(2)[1], pointer.Uint16([]byte{3, 0}), orders[1].Uint16([]byte{0, 4}), by[order], delta[2], applied, fmt.Sprintf("%T", order)}, nil
}`, `[513,1,1,2,3,4,1,3,1,"binary.littleEndian"]`},
	"names of the language": {`
type string int

type byte struct{ int }

func bool() {}

var (
	text   = fmt.Sprint("a", 1)
	length = len(text)
	less   = length < 3
	number = string(3)
	mine   = byte{4}
	made   = map[any]func(...int) (<-chan struct{ A int "json:\"c\"" }, error){}
	bytes  = []uint8(text)
)

func Run(call *recurgent.Call) (any, error) {
	return []any{text, length, less, number, mine.int, len(made), bytes[0], fmt.Sprintf("%T %T", number, made)}, nil
}`, `["a1",2,true,3,4,0,97,"tool.string map[interface {}]func(...int) (<-chan struct { A int \"json:\\\"c\\\"\" }, error)"]`},
	"parts in turn": {`
var n int

func f() int { n++; return n }

type pair struct {
	a, b int
	more []int
}

type truth bool

var (
	all  = []int{n, f(), n, f()}
	kept = &pair{n, f(), []int{n, f(), 2: n << 1}}
	mix  = []any{n, f(), pair{a: n, b: f()}, nil, n > 3}
	in   = [...]int{2: n, 0: f(), 1: n}
	grid = [][]int{{n, f()}, {n, f()}}
	flags = []truth{n > 3, f() > 10, !(n > 3)}
	to    = []*pair{{a: n, b: f()}, {a: n}}
)

func Run(call *recurgent.Call) (any, error) {
	return []any{all, kept.a, kept.b, kept.more, mix[0], mix[1], mix[2].(pair).a, mix[2].(pair).b, mix[4], in, grid, flags, to[0].a, to[0].b, to[1].a}, nil
}`, `[[0,1,1,2],2,3,[3,4,8],4,5,5,6,true,[7,7,6],[[7,8],[8,9]],[true,false,false],10,11,11]`},
}

// Programs that need a text of their own return the same values as elsewhere, again in each run.
func TestWrittenPrograms(t *testing.T) {
	b, p := builder(t)
	var names, texts, sources []string
	for name, w := range written {
		source := "package tool\n\nimport (\n\t\"encoding/binary\"\n\t\"fmt\"\n\t\"unicode\"\n\n\t\"recurgent\"\n)\n\nvar _, _, _ = fmt.Sprint, binary.LittleEndian, unicode.IsUpper\n" + w.source + "\n"
		names, texts, sources = append(names, name), append(texts, textOf(t, source)), append(sources, source)
	}
	path, err := b.BuildMany(t.Context(), "written", texts)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		for range 2 {
			got := run(t, p, sources[i], path, "[]")
			if value := manyAsOne.ReplaceAllString(string(got.Value),
				"tool."); value != written[name].want || !json.Valid([]byte(value)) {
				t.Errorf("%s: got %s, %+v\nwant %s", name, value, got.Failure, written[name].want)
			}
		}
	}
}
