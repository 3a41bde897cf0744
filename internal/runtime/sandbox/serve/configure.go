package serve

import (
	"bytes"
	"runtime"
	"runtime/debug"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

const (
	// maxStack is below the hard limits, so the Go runtime reports an overflow before the kernel kills the process.
	maxStack = 64 << 20
	// procs is 1. A garbage collector on a second thread may be descheduled while the program allocates on, gigabytes a
	// second. On busy machines, programs that kept almost nothing ran out of memory.
	procs = 1
)

// Configure reads the configuration, the first frame on the pipe, and sets the limits of the Go runtime. It does not
// confine the process.
func Configure(in *wire.Reader) (*wire.Config, error) {
	kind, payload, err := in.Next(wire.MaxReady)
	if err != nil {
		return nil, err
	}
	if kind != wire.KindConfig {
		return nil, wire.ErrFrame
	}
	cfg, err := wire.ParseConfig(bytes.Clone(payload))
	if err != nil {
		return nil, err
	}
	runtime.GOMAXPROCS(procs)
	debug.SetMaxStack(maxStack)
	debug.SetMemoryLimit(cfg.Memory * 2 / 3)
	return cfg, nil
}
