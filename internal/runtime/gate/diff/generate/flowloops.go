package generate

import (
	"fmt"
)

// enter writes a loop with its body. It adds a label if the body uses it.
func (f *flow) enter(head string, fixed ...string) {
	label := f.fresh("L")
	outer := f.b.String()
	f.b.Reset()
	f.labels = append(f.labels, label)
	f.breaks++
	f.loops++
	n := len(f.fixed)
	f.fixed = append(f.fixed, fixed...)
	f.line("step%s()", mark)
	for _, v := range fixed {
		f.line("_ = %s", v)
	}
	f.block()
	f.fixed = f.fixed[:n:n]
	f.breaks--
	f.loops--
	f.labels = f.labels[:len(f.labels)-1]
	body := f.b.String()
	f.b.Reset()
	f.b.WriteString(outer)
	if f.used[label] {
		f.line("%s:", label)
	}
	f.line("%s {", head)
	f.b.WriteString(body)
	f.line("}")
}

// loop writes a loop over a number, a string, an array, a slice, a map or a condition.
func (f *flow) loop() {
	i := f.fresh("i")
	k := 1 + f.IntN(4)
	switch f.IntN(9) {
	case 0:
		f.enter(fmt.Sprintf("for %s := 0; %[1]s < %d; %[1]s++", i, k), i)
	case 1:
		f.enter(fmt.Sprintf("for %s := range %d", i, k), i)
	case 2:
		f.enter(fmt.Sprintf("for %s, c := range %q", i, pick(f.gen, "", "aé", "x\xffy", "日本\xe6")), i, "int(c)")
	case 3:
		f.enter(fmt.Sprintf("for %s, e := range []int{x, y, p}[:%d]", i, f.IntN(4)), i, "e")
	case 4:
		f.enter(fmt.Sprintf("for %s, e := range arr", i), i, "e")
	case 5:
		f.enter(fmt.Sprintf("for %s := range &arr", i), i)
	case 6:
		f.enter(fmt.Sprintf("for _, %s := range slices.Sorted(maps.Keys(m))", i), i)
	case 7:
		f.enter(fmt.Sprintf("for %s := range counted%s(%d)", i, mark, k), i)
	case 8:
		f.line("%s := %d", i, k)
		f.enter(fmt.Sprintf("for ; %s > 0 && %s; %s--", i, f.cond(), i), i)
	}
}

// rangeFunc writes a loop over an iterator function, one of which misbehaves.
func (f *flow) rangeFunc() {
	i, e := f.fresh("i"), f.fresh("e")
	switch f.IntN(5) {
	case 0:
		f.enter(fmt.Sprintf("for %s, %s := range pairs%s(%d)", i, e, mark, 1+f.IntN(4)), i, e)
	case 1:
		f.enter("for range func(yield func() bool) { _ = yield() && yield() }")
	case 2:
		f.enter(fmt.Sprintf("for %s := range slices.Values([]int{x, 4, y})", i), i)
	case 3:
		f.enter(fmt.Sprintf("for x, %s = range pairs%s(3)", pick(f.gen, "y", "arr[0]", "st.n"), mark))
	case 4:
		f.line("try%s(\"careless\", func() {", mark)
		f.inLiteral(func() { f.enter(fmt.Sprintf("for %s := range careless%s(%s)", i, mark, f.expr(1)), i) })
		f.line("})")
	}
}

// jump writes a conditional break, continue or return. With a label it may leave several loops.
func (f *flow) jump() {
	if f.loops > 0 && f.percent(50) {
		if label := pick(f.gen, f.labels...); label != "" {
			f.used[label] = true
			f.line("if %s {\n\t\t%s %s\n\t}", f.cond(), pick(f.gen, "break", "continue"), label)
			return
		}
	}
	switch {
	case f.loops > 0 && f.percent(50):
		f.line("if %s {\n\t\tcontinue\n\t}", f.cond())
	case f.breaks > 0 && f.percent(60):
		f.line("if %s {\n\t\tbreak\n\t}", f.cond())
	case f.lits == 0:
		f.line("if %s && %s {\n\t\treturn %s\n\t}", f.cond(), f.cond(), f.result)
	default:
		f.line("if %s {\n\t\treturn\n\t}", f.cond())
	}
}

// gotos writes a goto to a label that follows.
func (f *flow) gotos() {
	label := f.fresh("G")
	f.line("if %s {\n\t\tgoto %s\n\t}", f.cond(), label)
	f.line("x += %s", pick(f.gen, f.vars...))
	f.line("%s:", label)
	f.line("y ^= x & 255")
}

// flowHelpers declares what the functions of a flow call.
const flowHelpers = `
var stepsø int

// stepø ends functions that would run for long.
func stepø() {
	if stepsø++; stepsø > 400 {
		panic("enough")
	}
}

func negø(n int) int { return -n }

func bumpø(p *int, by int) int {
	*p += by & 3
	return *p
}

func countedø(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		defer logø("counted ends")
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}

func pairsø(n int) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		defer func() {
			p := recover()
			logø("pairs", fmt.Sprint(p))
			if p != nil {
				panic(p)
			}
		}()
		for i := n; i > 0 && yield(i, i*i); i-- {
		}
	}
}

// carelessø goes on when the loop has ended, or swallows its panics.
func carelessø(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		defer func() {
			if n&2 == 0 {
				logø("swallowed", fmt.Sprint(recover()))
			}
		}()
		for i := range 3 {
			if !yield(i) && n&1 == 0 {
				return
			}
		}
	}
}
`
