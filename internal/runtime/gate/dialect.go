package gate

import (
	"fmt"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
)

// Dialect is what a prompt tells a model about the Go that runs here: only what is really not allowed, and the packages.
func Dialect() string {
	var b strings.Builder
	b.WriteString("Write ordinary, current Go (generics, iterators, min/max/clear and range over integers included) in one file, package tool, with exactly one\n")
	fmt.Fprintf(&b, "`%s`. Not available: go statements, init functions, compiler directives, assignment to other packages' variables.\n", runForm)
	b.WriteString("Nothing reads files, the network or the environment except through the Call. Imports may be any of:\n")
	b.WriteString(strings.Join(packageList(), ", "))
	b.WriteString("\n")
	return b.String()
}

// packageList returns the allowed packages with what is held back of them.
func packageList() []string {
	var out []string
	for _, p := range allow.Packages() {
		switch {
		case p.Path == allow.Host:
			out = append(out, p.Path)
		case len(p.Only) > 0:
			out = append(out, fmt.Sprintf("%s (only %s)", p.Path, strings.Join(p.Only, ", ")))
		case len(p.Hidden) > 0:
			out = append(out, fmt.Sprintf("%s (without %s)", p.Path, strings.Join(p.Hidden, ", ")))
		default:
			out = append(out, p.Path)
		}
	}
	return out
}
