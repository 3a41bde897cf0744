package interp

import "testing"

// BenchmarkHostCallsMethods sorts a program's type by sort.Sort and prints one that has a String method: what a call of a program's
// method by the host costs.
func BenchmarkHostCallsMethods(b *testing.B) {
	c := compile(b, `
type byAge []int

func (l byAge) Len() int           { return len(l) }
func (l byAge) Less(i, j int) bool { return l[i] < l[j] }
func (l byAge) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }

type name struct{ first, last string }

func (n name) String() string { return n.last }
`, `
	list := make(byAge, 1000)
	for i := range list {
		list[i] = i * 7919 % 1000
	}
	sort.Sort(list)
	out := ""
	for i := range 100 {
		out = fmt.Sprint(name{"a", "b"}, list[i])
	}
	return out, nil`)
	call := newCall(b)
	for b.Loop() {
		if _, err, p := c.Run(call); err != nil || p != nil {
			b.Fatal(err, p)
		}
	}
}
