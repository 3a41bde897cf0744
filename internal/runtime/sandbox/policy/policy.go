// Package policy says what confined processes may ask of the kernel: runners, executables and tools. The daemon sends it to them, who have no code to make it
// (package confine applies it).
package policy

import (
	"syscall"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// common are the limits that every system has.
func common(cpu int64) []wire.Limit {
	return []wire.Limit{{Resource: syscall.RLIMIT_CPU, Value: uint64(cpu)},
		{Resource: syscall.RLIMIT_NOFILE, Value: 16}, {Resource: syscall.RLIMIT_FSIZE}, {Resource: syscall.RLIMIT_CORE}}
}
