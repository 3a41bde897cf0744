// Package goversion names the Go version whose standard library the gate knows: export data and symbol tables are those of a version. A later one than the newest
// here builds with the newest's, so that programs see the library of that. docs/upgrading-go.md describes how to add a version.
package goversion

import (
	"fmt"
	"strings"
)

// Tags returns the build constraint of files that belong to this version. The newest has no upper bound.
func Tags() string {
	minor := 0
	if _, err := fmt.Sscanf(strings.TrimPrefix(Name, "go"), "1.%d", &minor); err != nil {
		panic(err) // Name is a constant of another form
	}
	if newest {
		return fmt.Sprintf("go1.%d", minor)
	}
	return fmt.Sprintf("!go1.%d", minor+1)
}
