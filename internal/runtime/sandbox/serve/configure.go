package serve

import (
	"bytes"
	"runtime"
	"runtime/debug"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

const (
	// maxStack lies below the hard limits, so that the Go runtime dies in good order.
	maxStack = 64 << 20
	// procs is one. A collector on a second thread stands still while another process has its processor, and the program allocates on,
	// gigabytes a second: on a busy machine programs that kept almost nothing ran out of memory.
	procs = 1
)

// Configure reads the configuration, the first frame on the pipe, and bounds the Go runtime as it says.
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
