package interp

import (
	"fmt"
	"testing"
)

// A program that inserts, deletes and ranges over one map again and again, which it breaks off or changes while it ranges, sees its
// keys in order, each at most once, each that was there from start to end, and none that is not there. index(key(i)) is i, in the order of the keys.
const rangeUnderChange = `
var seed = uint32(7)

func random(n int) int {
	seed = seed*1664525 + 1013904223
	return int(seed>>8) % n
}

func Check(rounds int) (problems []string) {
	m := map[K]int{}
	there := make([]bool, 600)
	insert := func(i int) { m[key(i)] = i; there[i] = true }
	remove := func(i int) { delete(m, key(i)); there[i] = false }
	for range 200 {
		insert(random(600))
	}
	for round := range rounds {
		for range random(4) {
			insert(random(600))
			remove(random(600))
		}
		if round%50 == 49 {
			clear(m)
			clear(there)
			for i := range 100 {
				insert(i * 5)
			}
		}
		before, last, most := slices.Clone(there), -1, random(3)*random(300)
		stays := slices.Clone(there)
		seen := 0
		change := func() {
			i, j := random(600), random(600)
			insert(i)
			remove(j)
			stays[j] = false
		}
		for k, v := range m {
			i := index(k)
			switch {
			case v != i:
				problems = append(problems, fmt.Sprint("round ", round, ": key ", i, " has ", v))
			case i <= last:
				problems = append(problems, fmt.Sprint("round ", round, ": ", i, " after ", last))
			case !there[i]:
				problems = append(problems, fmt.Sprint("round ", round, ": ", i, " is not there"))
			}
			for missed := last + 1; missed < i; missed++ {
				if before[missed] && stays[missed] {
					problems = append(problems, fmt.Sprint("round ", round, ": ", missed, " is left out"))
				}
			}
			last = i
			if seen++; seen == most {
				break
			}
			if round%3 == 0 && seen%7 == 0 {
				change()
			}
		}
	}
	return problems
}
`

func TestRangesOverMapsThatChange(t *testing.T) {
	for name, k := range map[string]struct{ typ, key, index string }{
		"int":    {"int", "return i - 300", "return k + 300"},
		"string": {"string", `return fmt.Sprintf("%04d", i)`, `n, _ := strconv.Atoi(k); return n`},
		"float":  {"float64", "return float64(i) / 2", "return int(k * 2)"},
		"struct": {"struct { a int; s string }", `return K{i / 10, fmt.Sprint(i % 10)}`, `n, _ := strconv.Atoi(k.s); return k.a*10 + n`},
		"array":  {"[2]uint8", "return K{uint8(i / 200), uint8(i % 200)}", "return int(k[0])*200 + int(k[1])"},
		"any":    {"any", "if i < 300 { return i }\nreturn fmt.Sprintf(\"%04d\", i)", "if n, ok := k.(int); ok { return n }\nn, _ := strconv.Atoi(k.(string)); return n"},
		"iface":  {"fmt.Stringer", "return number(i)", "return int(k.(number))"},
	} {
		t.Run(name, func(t *testing.T) {
			decls := fmt.Sprintf("import (\n\"fmt\"\n\"slices\"\n\"strconv\"\n)\nvar _ = strconv.Itoa\ntype number int\nfunc (n number) String() string { return \"n\" }\ntype K = %s\nfunc key(i int) K { %s }\nfunc index(k K) int { %s }\n%s", k.typ, k.key, k.index, rangeUnderChange)
			c := compile(t, decls, "return Check(1000), nil")
			v, err, p := c.Run(newCall(t))
			if list, ok := v.([]string); !ok || len(list) > 0 || err != nil || p != nil {
				t.Errorf("%.500v %v %+v", v, err, p)
			}
		})
	}
}

// Keys that compare equal, and keys that are not equal to themselves, come once each however often the map is ranged over; what
// a host function writes into a map is seen.
func TestRangesOverOddKeys(t *testing.T) {
	c := compile(t, `import ("encoding/json"; "fmt"; "math")
type a struct { p *int }
type b struct { p *int }
func count[K comparable](m map[K]int) (n, sum int) {
	for range 3 { // from the second on in an order that is kept
		n, sum = 0, 0
		for _, v := range m { n++; sum += v }
	}
	return n, sum
}`, `
	structs, nans, mixed, pointers := map[a]int{}, map[float64]int{}, map[any]int{}, map[*int]int{}
	floats := map[float64]int{}
	for i := range 100 {
		structs[a{new(int)}] = i
		nans[math.NaN()] = i
		mixed[a{new(int)}] = i
		mixed[b{new(int)}] = i
		pointers[new(int)] = i
		floats[float64(i)] = i
	}
	out := fmt.Sprintln(count(structs)) + fmt.Sprintln(count(nans)) + fmt.Sprintln(count(mixed)) + fmt.Sprintln(count(pointers)) + fmt.Sprintln(count(floats))
	for i := range 3 { floats[math.NaN()] = i }
	out += fmt.Sprintln(count(floats))
	text := map[string]int{}
	for i := range 100 { text[fmt.Sprint(i)] = i }
	out += fmt.Sprintln(count(text))
	if err := json.Unmarshal([]byte("{\"x\": 1000}"), &text); err != nil { return nil, err }
	out += fmt.Sprintln(count(text))
	return out, nil`)
	const want = "100 4950\n100 4950\n200 9900\n100 4950\n100 4950\n103 4953\n100 4950\n101 5950\n"
	if v, err, p := c.Run(newCall(t)); v != want || err != nil || p != nil {
		t.Errorf("got %q %v %+v, want %q", v, err, p, want)
	}
}
