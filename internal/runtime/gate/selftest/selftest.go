// Package selftest holds programs whose answers show that an engine works with the Go runtime of the binary: run-time
// types, maps, methods, JSON and the like. A canary runner runs them before a daemon takes calls.
package selftest

import (
	_ "embed"
	"fmt"
	"strings"

	"golang.org/x/tools/txtar"
)

//go:embed programs.txtar
var programs []byte

// A Program is one program with the answer that it must give.
type Program struct {
	Name   string
	Source string // without imports: the gate adds them
	Want   string // the JSON of what Run returns for a call without arguments
}

// Programs returns the programs. An error says that the embedded file is malformed.
func Programs() ([]Program, error) {
	var out []Program
	files := txtar.Parse(programs).Files
	for i := 0; i+1 < len(files); i += 2 {
		p, want := files[i], files[i+1]
		if want.Name != p.Name+".want" {
			return nil, fmt.Errorf("selftest: %q follows %q", want.Name, p.Name)
		}
		out = append(out, Program{Name: p.Name, Source: "package tool\n\n" + string(p.Data), Want: strings.TrimSpace(string(want.Data))})
	}
	return out, nil
}
