//go:build !linux

// Package launch launches nothing on this system.
package launch

import (
	"errors"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// Main fails.
func Main() int { return wire.ExitCode(errors.ErrUnsupported) }
