//go:build !linux

package policy

import (
	"syscall"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// Runner returns limits only: this system has no other layer and does not bound memory.
func Runner(_, cpu int64, _ bool) (*wire.Confinement, error) {
	return &wire.Confinement{Limits: common(cpu), User: wire.Nobody}, nil
}

// Program returns the confinement of a runner.
func Program(memory, cpu int64) (*wire.Confinement, error) { return Runner(memory, cpu, false) }

// Tool returns the limits of a compiler or linker, which may write files.
func Tool(t *wire.Tools, _ int64) (*wire.Confinement, error) {
	c := &wire.Confinement{User: wire.Nobody, Limits: []wire.Limit{{Resource: syscall.RLIMIT_CPU, Value: uint64(t.CPU)},
		{Resource: syscall.RLIMIT_FSIZE, Value: uint64(t.File)},
		{Resource: syscall.RLIMIT_NOFILE, Value: 64}, {Resource: syscall.RLIMIT_CORE}}}
	return c, nil
}
