package diff

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/gate"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/interp"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// The parts of programs that compute a condition from memory which is shared, change the memory, and then use the condition.
var (
	sharedDecls = `
type inner struct {
	n    int
	text string
}

type outer struct {
	in   inner
	arr  [3]int
	next *outer
}

func (o *outer) set() { o.in.n, o.arr[0], o.in.text = 9, 9, "changed" }

func alter(b []byte, m map[string]int, arr *[3]int) { b[0], arr[0] = 'q', 9; m["k"] = 9; delete(m, "gone") }

func kept(b bool) bool { return b }

func note(b bool) int {
	if b {
		return 1
	}
	return 0
}
`
	// sharedSetup makes what the conditions read and the changes write.
	sharedSetup = `
	b := []byte("xyz")
	other := b[:2]
	runes := []rune("xyz")
	words := [][]byte{b, []byte("abc")}
	m := map[string]int{"k": 1, "gone": 1}
	byText := map[string]int{"xyz": 1}
	arr := [3]int{1, 2, 3}
	slice := arr[:]
	o := outer{in: inner{1, "text"}, arr: arr, next: &outer{in: inner{n: 1}}}
	p := &o
	copied := o
	var face any = arr
	n, i := 1, 1
	pn := &n
	captured := func() int { return n }
	change := func() {
		b[0], b[2] = 'y', 'q'
		runes[0] = 'y'
		arr[0], arr[2] = 9, 9
		o.set()
		o.next.in.n = 9
		m["k"] = 9
		delete(m, "gone")
		byText["xyz"] = 9
		face = n
		n, i = 9, 2
	}
	_, _, _, _, _, _, _, _, _, _, _, _ = other, runes, words, m, byText, slice, p, copied, face, i, pn, captured
`
	sharedConditions = []string{
		`string(b) == "xyz"`, `string(b) != "xyz"`, `"xyz" == string(b)`, `string(b[:2]) == "xy"`, `string(b) < "xzz"`, `string(b) == string(words[0])`, `len(string(b)) == 3`, `string(runes) == "xyz"`,
		`byText[string(b)] == 1`, `m[string(b)] == 0`, `b[0] == 'x'`, `other[0] == 'x'`, `words[0][0] == 'x'`, `[]byte(string(b))[0] == 'x'`,
		`m["k"] == 1`, `m["gone"] == 1`, `len(m) == 2`, `arr[0] == 1`, `arr == [3]int{1, 2, 3}`, `slice[0] == 1`, `slice[i-1] == 1`, `arr[i] == 2`,
		`o.in.n == 1`, `p.in.n == 1`, `o.in == inner{1, "text"}`, `o.in.text == "text"`, `p.arr[0] == 1`, `o.arr == arr`, `p.next.in.n == 1`, `copied.in == o.in`, `copied.arr == p.arr`,
		`face == any([3]int{1, 2, 3})`, `face.([3]int)[0] == 1`, `n == 1`, `*pn == 1`, `captured() == 1`, `i == 1`, `n+i == 2`, `n == 1 && string(b) == "xyz"`, `string(b) == "abc" || arr[0] == 1`,
	}
	sharedChanges = []string{
		"change()",
		"b[0] = 'y'; b[2] = 'q'; runes[0] = 'y'; arr[0] = 9; arr[2] = 9; o.in.n = 9; o.arr[0] = 9; o.in.text = \"changed\"; m[\"k\"] = 9; n = 9; i = 2; face = 1; byText[\"xyz\"] = 9",
		"alter(b, m, &arr); p.set(); p.next = &outer{}; *pn = 9; i++",
		"other[0] = 'y'; slice[0] = 9; p.in = inner{}; p.arr = [3]int{}; *pn = 9; clear(m); clear(byText); i = 0",
		"copy(b, \"abc\"); copy(arr[:], []int{7, 8, 9}); o = outer{next: &outer{}}; n++; face = nil; m = nil; i--",
		"func() { defer func() { _ = recover() }(); change(); panic(1) }()",
		"func() { defer change() }()",
		"for range 2 { change() }",
		"words[0][0] = 'y'; words[0] = append(words[0][:0], \"qqq\"...); b = []byte(\"other\"); runes = nil; arr = [3]int{}; slice = nil; n -= 3; i += 4; o.in, copied.in = copied.in, inner{}",
		"if n == 1 { change() }",
	}
	sharedUses = []string{
		"if was {\n\t\treturn 1\n\t}\n\treturn 0",
		"if !was {\n\t\treturn 0\n\t}\n\treturn 1",
		"switch {\n\tcase was:\n\t\treturn 1\n\t}\n\treturn 0",
		"for was {\n\t\treturn 1\n\t}\n\treturn 0",
		"return note(was)",
		"return note(was == true)",
		"return note(kept(true) && was)",
		"all := []bool{was}\n\treturn note(all[0])",
		"return func() int { return note(was) }()",
		"switch was {\n\tcase true:\n\t\treturn 1\n\tdefault:\n\t\treturn 0\n\t}",
	}
)

// sharedProgram is a program that returns how often a condition had another value after a change than at once, which is never natively. What
// uses it differs from change to change; of the uses the first is that number.
func sharedProgram(condition string, first int) string {
	var s, calls strings.Builder
	s.WriteString("package tool\n\nimport \"recurgent\"\n" + sharedDecls)
	fmt.Fprintf(&s, "\nfunc atOnce() int {%s\n\tif (%s) {\n\t\tchange()\n\t\treturn 1\n\t}\n\treturn 0\n}\n", sharedSetup, condition)
	for k, change := range sharedChanges {
		fmt.Fprintf(&s, "\nfunc later%d() int {%s\n\twas := %s\n\t%s\n\t%s\n}\n", k, sharedSetup, condition, strings.ReplaceAll(change, "; ", "\n\t"), sharedUses[(first+k)%len(sharedUses)])
		fmt.Fprintf(&calls, "\tif later%d() != want {\n\t\twrong = append(wrong, %d)\n\t}\n", k, k)
	}
	s.WriteString("\nfunc Run(call *recurgent.Call) (any, error) {\n\twrong, want := []int{}, atOnce()\n" + calls.String() + "\treturn wrong, nil\n}\n")
	return s.String()
}

// No rewriting moves a read of memory that others may change past a write, a call or a panic: a condition is what it was where it was computed.
func TestConditionsAreComputedWhereTheyStand(t *testing.T) {
	t.Parallel()
	g, err := gate.New(gate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rounds := 1
	if !testing.Short() {
		rounds = len(sharedUses)
	}
	for k, condition := range sharedConditions {
		for round := range rounds {
			source := sharedProgram(condition, k+round)
			p, refusal := g.Check(source)
			if refusal != nil {
				t.Fatalf("refused: %s %q\n%s", refusal.Message, refusal.Errors, source)
			}
			c, err := interp.Compile(p)
			if err != nil {
				t.Fatal(err)
			}
			call, err := recurgent.New(recurgent.Input{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			c.Begin(time.Unix(1790000000, 0), 1)
			if got, err, panicked := c.Run(call); fmt.Sprint(got) != "[]" || err != nil || panicked != nil {
				t.Errorf("wrong after the changes %v, %v, %+v:\n%s", got, err, panicked, source)
			}
			c.Close()
		}
	}
}
