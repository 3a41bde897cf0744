// Package policy computes what confined processes may ask of the kernel: runners, executables and tools. Only the
// daemon contains this code. It sends the result to the processes, and package confine applies it there.
package policy

import (
	"syscall"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// common returns the limits that every system supports; cpu is in seconds.
func common(cpu int64) []wire.Limit {
	return []wire.Limit{{Resource: syscall.RLIMIT_CPU, Value: uint64(cpu)},
		{Resource: syscall.RLIMIT_NOFILE, Value: 16}, {Resource: syscall.RLIMIT_FSIZE}, {Resource: syscall.RLIMIT_CORE}}
}
