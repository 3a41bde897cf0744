package interp

import (
	"strings"
	"testing"
)

// A panic is reported with the line where it began, however instructions were put together: the line marked "here".
func TestLinesOfPanics(t *testing.T) {
	for name, test := range map[string]struct{ decls, body string }{
		"second round": {"", `
	a, b, sum := []int{1, 2}, []int{1, 2, 3, 4}, 0
	for i := 0; i < 4; i++ {
		sum += a[i] // here
		sum += b[i]
	}
	return sum, nil`},
		"condition": {"", `
	a, b, i, sum := []int{1, 2}, []int{1, 2, 3, 4}, 0, 0
	for a[i] < 9 { // here
		sum += b[i]
		i++
	}
	return sum, nil`},
		"one line of an expression": {"", `
	a, i := []int{1, 2}, 2
	return a[0] +
		a[1] +
		a[i] + // here
		a[1], nil`},
		"after a call": {"func half(s []int, i int) int {\n\treturn s[i] / 2\n}", `
	a, sum := []int{8, 9}, 0
	for i := 0; ; i++ {
		sum += half(a, i%2) + a[i] // here
	}`},
		"after a callback": {"", `
	a := []int{2, 1}
	sort.Slice(a, func(i, j int) bool {
		return a[i] < a[j]
	})
	return a[len(a)], nil // here`},
		"in a callback": {"", `
	a, b := []int{2, 1}, []int{}
	sort.Slice(a, func(i, j int) bool {
		return b[i] < // here
			b[j]
	})
	return a, nil`},
		"in the library": {"", `
	a, n := []int{3, 1, 2}, 0
	slices.SortFunc(a, func(x, y int) int {
		n++
		return x - y
	})
	return slices.Insert(a, n+9, 1), nil // here`},
		"field of what is nil": {"type node struct {\n\tv    int\n\tnext *node\n}", `
	n, sum := &node{next: &node{}}, 0
	for range 3 {
		sum += n.v // here
		n = n.next
	}
	return sum, nil`},
		"assignment": {"type node struct{ list []int }", `
	n, i := &node{list: []int{1}}, 1
	n.list[0] += 2
	n.list[i] += 2 // here
	return n, nil`},
		"after a recovered panic": {"func try(f func()) {\n\tdefer func() { recover() }()\n\tf()\n}", `
	var s []int
	try(func() {
		s[0] = 1
	})
	return s[1], nil // here`},
	} {
		c := compile(t, test.decls, test.body)
		want := 0
		for i, line := range strings.Split("package tool\n"+test.decls+"\nfunc Run(call *recurgent.Call) (any, error) {\n"+test.body, "\n") {
			if strings.Contains(line, "// here") {
				want = i + 1
			}
		}
		if _, _, p := c.Run(newCall(t)); p == nil || p.Line != want {
			t.Errorf("%s: got %+v, want line %d", name, p, want)
		}
	}
}
