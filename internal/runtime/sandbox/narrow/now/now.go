// Package now narrows the process in its init function. Every program imports package support, which imports this
// package, so Go initializes it before any package of the program. A launcher has confined the process earlier still,
// which covers packages that are initialized before this one.
package now

import (
	"syscall"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/narrow"
)

func init() {
	if err := narrow.Process(); err != nil {
		_, _ = syscall.Write(2, []byte("runner: narrowing: "+err.Error()+"\n"))
		syscall.Exit(3)
	}
}
