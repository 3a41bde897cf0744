//go:build !linux

package worker

import (
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/confine"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

func limitProcess(c *wire.Confinement, layers map[string]string) {
	confine.Limits(c, confine.Process, layers)
}

// confineProcess has nothing to put on: a process of its own with limits is all there is.
func confineProcess(_ *wire.Config, ready *wire.Ready) {
	ready.Layers["seccomp"] = "off (not on this system)"
}

// landlockFirst has nothing to do here.
func landlockFirst() {}
