//go:build !linux

package worker

import (
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/confine"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

func limitProcess(c *wire.Confinement, layers map[string]string) {
	confine.Limits(c, confine.Process, layers)
}

// confineProcess applies nothing: this system has only limits, which limitProcess sets.
func confineProcess(_ *wire.Config, ready *wire.Ready) {
	ready.Layers["seccomp"] = "off (not on this system)"
}

// landlockFirst does nothing: this system has no landlock.
func landlockFirst() {}
