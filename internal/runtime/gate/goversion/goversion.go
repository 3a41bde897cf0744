// Package goversion names the Go version whose standard library the gate knows: export data and symbol tables belong to
// one version. A toolchain newer than the newest version here builds with the newest files, so programs see that
// version's library. docs/upgrading-go.md describes how to add a version.
package goversion

import (
	"fmt"
	"strings"
)

// Tags returns the build constraint for files of this version. The newest version has no upper bound.
func Tags() string {
	minor := 0
	if _, err := fmt.Sscanf(strings.TrimPrefix(Name, "go"), "1.%d", &minor); err != nil {
		panic(err) // Name is a constant with another format
	}
	if newest {
		return fmt.Sprintf("go1.%d", minor)
	}
	return fmt.Sprintf("!go1.%d", minor+1)
}
