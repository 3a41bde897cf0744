// Package now narrows the process as it is initialised. Each program imports package support, which imports this one: so the language has it come before all of a program. A launcher has
// confined the process before that, and so also what another package does earlier.
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
