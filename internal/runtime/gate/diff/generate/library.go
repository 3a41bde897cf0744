package generate

import (
	"fmt"
	"go/types"
)

// genericsText uses the generic declarations that every program has.
const genericsText = `
	v := @mkT
	w := pairø[@T, int]{v, 4}
	logø(@shT(w.A), @shT(w.Swap().B), @shT(idø(v)), fmt.Sprintf("%T %T", w, w.Swap()))
	st := &stackø[@T]{}
	for range 5 {
		st.Push(@mkT)
	}
	churnø(20)
	x, ok := st.Pop()
	logø(@shT(x), strconv.FormatBool(ok), strconv.Itoa(st.Len()), fmt.Sprintf("%T", st))
	for i, x := range st.All() {
		logø(strconv.Itoa(i), @shT(x))
		if i == 2 {
			break
		}
	}
	texts := mapø(st.items, func(x @T) string { return @shT(x) })
	back := mapø(texts, func(s string) pairø[string, @T] { return pairø[string, @T]{s, v} })
	logø(texts...)
	logø(@shT(back[0].B), fmt.Sprintf("%T", back))
	tree := (*treeø[@T])(nil)
	for range 6 {
		x := @mkT
		tree = tree.Insert(x, func(a, b @T) int { return strings.Compare(@shT(a), @shT(b)) })
	}
	tree.Walk(func(x @T) { logø(@shT(x)) })
`

// compareText compares values directly, in arrays and structs, and as interfaces.
const compareText = `
	a, b := @mkT, @mkT
	c := a
	tryø("compare", func() {
		logø(strconv.FormatBool(a == b), strconv.FormatBool(a == c), strconv.FormatBool(a != b))
	})
	tryø("arrays", func() {
		x, y := [2]@T{a, b}, [2]@T{c, b}
		logø(strconv.FormatBool(x == y), strconv.FormatBool(x == [2]@T{}))
	})
	tryø("structs", func() {
		type s struct {
			n int
			v @T
		}
		x, y := s{1, a}, s{1, b}
		logø(strconv.FormatBool(x == y), strconv.FormatBool(any(x) == any(s{1, c})))
	})
	tryø("switch", func() {
		switch b {
		case a:
			logø("a")
		case @mkT:
			logø("made")
		default:
			logø("neither")
		}
	})
	tryø("index", func() { logø(strconv.Itoa(slices.Index([]@T{a, b, c}, b)), strconv.FormatBool(slices.Contains([]@T{a}, c))) })
	var z @T
	logø(strconv.FormatBool(z == *new(@T)))
`

// manyText makes many values and garbage, and checks that the collector has left the values alone.
const manyText = `
	var list []@T
	var texts []string
	boxes := map[int]any{}
	byName := map[string]@T{}
	for i := range 120 {
		r = newø(uint64(i), 60)
		v := @mkT
		list = append(list, v)
		texts = append(texts, @shT(v))
		boxes[i] = v
		byName["n"+strconv.Itoa(i)] = v
		if i%8 == 0 {
			churnø(12)
		}
	}
	churnø(200)
	wrong := 0
	for i, v := range list {
		r = newø(uint64(i), 60)
		if @shT(v) != texts[i] || @shT(byName["n"+strconv.Itoa(i)]) != texts[i] {
			wrong++
		}
		if x, ok := boxes[i].(@T); ok && @shT(x) != texts[i] {
			wrong++
		}
	}
	logø("wrong", strconv.Itoa(wrong), strconv.Itoa(len(list)))
	logø(texts[7:12]...)
`

// sliceText appends to, cuts and sorts a slice type, also beyond its bounds.
const sliceText = `
	s := @mkT
	s = append(s, @mkE, @mkE)
	s = s[:len(s):len(s)]
	t := append(s, @mkE)
	t[0] = @mkE
	u := slices.Clone(s)
	u[0], u[1] = u[1], u[0]
	n := copy(u[1:], s)
	churnø(9)
	logø(@shT(s), @shT(t), @shT(u), strconv.Itoa(n))
	for i := range s {
		p := &s[i]
		*p = @mkE
	}
	s = slices.Insert(s, 1, @mkE, t[0])
	s = slices.Delete(s, 0, 1)
	s = slices.Concat(s, u[:1])
	slices.Reverse(s)
	logø(@shT(s), @shT(s[1:2]), @shT(slices.Grow(s[:1], 40)), fmt.Sprintf("%T", s))
	tryø("bounds", func() { logø(@shE(s[len(s)])) })
	tryø("bounds", func() { n := -1; logø(@shT(s[:n])) })
	tryø("array", func() { logø(fmt.Sprintf("%T", ([2]@E)(s)), @shE((*[2]@E)(s)[1]), @shE((*[999]@E)(s)[0])) })
	slices.SortFunc(s, func(a, b @E) int { return strings.Compare(@shE(a), @shE(b)) })
	i, ok := slices.BinarySearchFunc(s, s[0], func(a, b @E) int { return strings.Compare(@shE(a), @shE(b)) })
	logø(@shT(s), strconv.Itoa(i), strconv.FormatBool(ok))
	clear(s[:1])
	logø(@shE(s[0]), @shT(s[len(s):]))
`

// arrayText copies and changes an array type, also through pointers and beyond its bounds.
const arrayText = `
	a := @mkT
	b := a
	b[0] = @mkE
	p := &a
	for i := range p {
		p[i] = b[i]
	}
	for i, e := range a {
		a[len(a)-1] = @mkE
		logø(strconv.Itoa(i), @shE(e))
	}
	s := a[:]
	s[0] = @mkE
	churnø(9)
	logø(@shT(a), @shT(b), @shT(*p), strconv.Itoa(len(p)+cap(s)))
	i := len(a)
	tryø("bounds", func() { logø(@shE(a[i])) })
	m := map[string]@T{"x": a}
	x := m["x"]
	x[0] = b[0]
	logø(@shT(m["x"]), @shE(m["x"][0]))
	q := (*@T)(nil)
	tryø("nil", func() { q[0] = b[0] })
	logø(strconv.Itoa(len(q)))
	f := func(a @T) @T {
		a[0] = @mkE
		return a
	}
	logø(@shT(f(a)), @shT(a))
`

// pointerText reads and writes through a pointer type, also through nil.
const pointerText = `
	p := @mkT
	if p == nil {
		p = new(@E)
	}
	q := p
	*q = @mkE
	e := *p
	*p = @mkE
	pp := &q
	churnø(9)
	logø(@shT(p), @shE(e), @shE(**pp), strconv.FormatBool(p == *pp))
	*pp = nil
	tryø("nil", func() { logø(@shE(*q)) })
	m := map[@T]string{p: "p", q: "nil"}
	logø(m[p], m[nil], strconv.Itoa(len(m)))
	list := []@T{p, nil, p}
	*list[2] = e
	logø(@shT(list[0]), @shT(p))
`

// chanText uses a channel type as a value and as a key.
const chanText = `
	c := @mkT
	logø(strconv.Itoa(len(c)), strconv.Itoa(cap(c)), strconv.FormatBool(c == nil), fmt.Sprintf("%T", c))
	m := map[@T]int{c: 1, nil: 2}
	logø(strconv.Itoa(m[c]), @shT(c))
`

// localText declares types within a function that refer to the type.
const localText = `
	type local struct {
		V @T
		n *int
		next *local
	}
	type table map[string]local
	type tree[E any] struct {
		kids map[string]tree[E]
		v E
	}
	x := local{V: @mkT}
	x.next = &local{V: x.V}
	t := table{"a": x, "b": *x.next}
	churnø(9)
	var k tree[@T]
	k.kids = map[string]tree[@T]{"q": {v: x.V}}
	k.kids["r"] = tree[@T]{v: @mkT, kids: k.kids}
	logø(@shT(t["a"].V), @shT(t["a"].next.V), @shT(t["b"].V), @shT(k.kids["q"].v), @shT(k.kids["r"].kids["q"].v))
	logø(fmt.Sprintf("%T %T", x, t))
`

// cycles writes a value that points to itself, or "" if t has no field for that.
func cycles(g *gen, t types.Type) string {
	for f := range t.Underlying().(*types.Struct).Fields() {
		p, ok := f.Type().Underlying().(*types.Pointer)
		if !ok || !types.Identical(p.Elem(), t) || f.Name() == "_" {
			continue
		}
		return fmt.Sprintf("\tv := @mkT\n\tv.%s = &v\n\tw := v\n\tw.%[1]s = &w\n\tchurnø(30)\n\tlogø(@shT(v), strconv.FormatBool(reflect.DeepEqual(v, w)))\n", f.Name()) +
			"\ttryø(\"json\", func() {\n\t\tb, err := json.Marshal(v)\n\t\tlogø(strconv.Itoa(len(b)), scrubø(fmt.Sprint(err)))\n\t})\n"
	}
	return ""
}
