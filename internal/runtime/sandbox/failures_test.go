package sandbox

import (
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// Runners and the daemon use the same names for failures.
func TestFailureNames(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{wire.ErrExecution: agent.ErrExecution,
		wire.ErrNonSerializable:   agent.ErrNonSerializable,
		wire.ErrResourceExhausted: agent.ErrResourceExhausted, wire.ErrDenied: agent.ErrDenied} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
