package minimise

import (
	"strings"
	"testing"
)

const large = `package tool

type unused struct{ a, b int }

func (unused) method() int { return 1 }

func helper(n int) int {
	m := n * 2
	for i := range n {
		m += i
	}
	return m
}

func Main() int {
	x, y := 1, 2
	if x < y {
		x = helper(x)
		for range 3 {
			y = x / y
		}
	}
	return helper(y)
}
`

// Program keeps only what the condition needs, and each program it asks about type-checks.
func TestProgram(t *testing.T) {
	got := Program(large, func(name string) bool { return name == "Main" }, nil, func(texts []string) []bool {
		out := make([]bool, len(texts))
		for i, text := range texts {
			if repair(text, func(name string) bool { return name == "Main" }, nil) == "" {
				t.Errorf("does not type-check:\n%s", text)
			}
			out[i] = strings.Contains(text, "x / y")
		}
		return out
	})
	if !strings.Contains(got, "x / y") || strings.Contains(got, "unused") || strings.Contains(got, "if x") ||
		strings.Contains(got, "for range") {
		t.Errorf("got\n%s", got)
	}
}
