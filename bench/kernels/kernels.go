// Command kernels compares the speed of programs as the daemon compiles them with the same programs as plain Go, in
// yaegi, and with equivalent programs in CPython. Run make bench-kernels, or go run ./bench/kernels -h.
package main

import (
	"embed"
	"encoding/json"
	"fmt"
	"math"
)

//go:embed programs
var programs embed.FS

// A kernel is one program. Its argument n determines how much it computes.
type kernel struct {
	name  string
	small int  // n in tests
	n     int  // n in measurements: some milliseconds of the compiled program
	yaegi bool // whether yaegi runs it correctly
}

// kernels lists the kernels in the order of the table.
var kernels = []kernel{
	{"fib", 12, 27, true},
	{"sieve", 100, 500_000, true},
	{"matmul", 7, 100, true},
	{"nbody", 10, 5_000, true},
	{"sort", 100, 10_000, true},
	{"quicksort", 100, 30_000, true},
	{"wordcount", 3, 1_000, true},
	{"builder", 10, 10_000, true},
	{"json", 10, 1_000, true},
	{"regexp", 20, 1_000, true},
	{"editdistance", 3, 100, false},
	{"sudoku", 1, 1, true},
	{"priorityqueue", 50, 20_000, false},
	{"factorial", 30, 2_000, false},
}

// source returns the Go program.
func (k kernel) source() string { return read(k.name + ".go.txt") }

// python returns the Python program.
func (k kernel) python() string { return read(k.name + ".py") }

// read returns an embedded file. It panics if the file is missing.
func read(name string) string {
	text, err := programs.ReadFile("programs/" + name)
	if err != nil {
		panic(err) // a kernel lacks its program
	}
	return string(text)
}

// find returns the kernel of that name.
func find(name string) (kernel, error) {
	for _, k := range kernels {
		if k.name == name {
			return k, nil
		}
	}
	return kernel{}, fmt.Errorf("no kernel is called %s", name)
}

// same reports whether two results are equal as JSON. Fractions may differ slightly, because some processors multiply
// and add in one step.
func same(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && alike(x, y)
}

// alike compares decoded JSON.
func alike(x, y any) bool {
	switch x := x.(type) {
	case float64:
		y, ok := y.(float64)
		return ok && (x == y || x != math.Trunc(x) && math.Abs(x-y) <= 1e-9*math.Abs(x))
	case []any:
		y, ok := y.([]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !alike(x[i], y[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		y, ok := y.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for k := range x {
			if other, ok := y[k]; !ok || !alike(x[k], other) {
				return false
			}
		}
		return true
	}
	return x == y
}
