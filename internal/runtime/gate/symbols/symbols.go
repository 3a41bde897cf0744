// Package symbols maps the names of the packages that yaegi may give programs to what they are at run time: functions,
// variables and types of the binary itself. The tables are generated from the list in package allow.
package symbols

import "github.com/recurgentd/recurgentd/internal/runtime/gate/allow"

// Table returns the names of an allowed package: a func for a function, a pointer for a variable, a reflect.Type
// for a type. Hidden names and generic ones are missing. It returns nil for a package without a table.
func Table(path string) map[string]any { return table(path) }

// PathOf returns the path under which the package with that true import path has its table.
func PathOf(truePath string) string { return allow.SeenPath(truePath) }
