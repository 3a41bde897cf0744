package main

import (
	"encoding/json"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	if prepare, ok := servers[os.Getenv(serveAs)]; ok {
		exit(serve(os.Stdin, os.Stdout, prepare))
	}
	os.Exit(m.Run())
}

// Every runner of this machine returns the same value for every kernel, unless it is known not to run it.
func TestRunnersAgree(t *testing.T) {
	if testing.Short() {
		t.Skip("long: compiles programs with the toolchain")
	}
	runners, err := startAll(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer stopAll(runners)
	for _, k := range kernels {
		t.Run(k.name, func(t *testing.T) {
			var want json.RawMessage
			for _, r := range runners {
				a, err := r.do(job{Kernel: k.name, N: k.small})
				switch {
				case r.name == onYaegi && !k.yaegi:
					if err == nil && same(a.Value, want) {
						t.Error("yaegi runs it right: say so in the table of kernels")
					}
				case err != nil:
					t.Errorf("%s: %v", r.name, err)
				case r.name == native:
					want = a.Value
				case !same(a.Value, want):
					t.Errorf("%s: %s, natively %s", r.name, a.Value, want)
				}
			}
		})
	}
}

func TestSame(t *testing.T) {
	for _, pair := range [][2]string{{`1`, `1.0`}, {`0.1`, `0.10000000000000001`}, {`[1,"a"]`, `[1, "a"]`},
		{`{"a":[0.3]}`, `{"a":[0.30000000000000004]}`}} {
		if !same(json.RawMessage(pair[0]), json.RawMessage(pair[1])) {
			t.Errorf("%s and %s are not the same", pair[0], pair[1])
		}
	}
	for _, pair := range [][2]string{{`1`, `2`}, {`1000000000000`, `1000000000001`}, {`0.1`, `0.1001`},
		{`[1]`, `[1,2]`}, {`{"a":1}`, `{"b":1}`}, {`1`, `"1"`}, {`1`, `x`}} {
		if same(json.RawMessage(pair[0]), json.RawMessage(pair[1])) {
			t.Errorf("%s and %s are the same", pair[0], pair[1])
		}
	}
}

func TestTable(t *testing.T) {
	runners := []*runner{{name: native}, {name: ours}, {name: onYaegi}, {name: python}}
	rows := []row{
		{"one", map[string][]float64{native: {0.001, 0.002, 0.001}, ours: {0.010, 0.040, 0.012},
			onYaegi: {0.1, 0.2, 0.1}, python: {0.005, 0.005, 0.005}}},
		{"two", map[string][]float64{native: {0.001}, ours: {0.002}, python: {0.003}}},
	}
	const want = `| kernel | native, ms | compiled | yaegi | CPython |
|---|---:|---:|---:|---:|
| one | 1.00 | 12 | 100 | 5.0 |
| two | 1.00 | 2.0 | – | 3.0 |
| **median** | | **7.0** | **100** | **4.0** |

CPython is ahead of the compiled program on 1 of 2: one.
`
	if got := table(rows, runners); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
