//go:build !linux

package policy

import (
	"errors"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// Confinement fails: this system has neither of the layers.
func Confinement(bool) (*wire.Confinement, error) { return nil, errors.ErrUnsupported }

// Tools fails, too.
func Tools() ([]byte, error) { return nil, errors.ErrUnsupported }
