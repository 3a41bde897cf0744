// Package daemon tests the daemon as a process: start, signals, drain, restart, access, TLS, traces, and what it says when it cannot start.
package daemon

import (
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }
