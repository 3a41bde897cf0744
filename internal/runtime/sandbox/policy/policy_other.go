//go:build !linux

package policy

import (
	"errors"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// Confinement fails: there are no native executables on this system.
func Confinement(bool) (*wire.Confinement, error) { return nil, errors.ErrUnsupported }
