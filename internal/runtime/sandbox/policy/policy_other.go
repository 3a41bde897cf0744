//go:build !linux

package policy

import (
	"errors"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// Runner has limits only: this system has no other layer.
func Runner(_, cpu int64, _ bool) (*wire.Confinement, error) {
	return &wire.Confinement{Limits: common(cpu), User: wire.Nobody}, nil
}

// Program fails: nothing is launched here.
func Program(int64, int64) (*wire.Confinement, error) { return nil, errors.ErrUnsupported }

// Tool fails, too.
func Tool(*wire.Tools, int64) (*wire.Confinement, error) { return nil, errors.ErrUnsupported }
