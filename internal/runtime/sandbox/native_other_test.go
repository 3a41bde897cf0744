//go:build !linux

package sandbox

import (
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

func outPrograms() map[string]func(*recurgent.Call) (any, error) { return nil }

// awaitSignal: a runner counts as ended when its own reader says so; there is no waitid here to ask earlier.
func awaitSignal(testing.TB, int) {}
