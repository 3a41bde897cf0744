// Package commands tests the client commands as people meet them: output, exit codes, terminals, and the screen of watch.
package commands

import (
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }
