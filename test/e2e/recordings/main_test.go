// Package recordings runs the recorded scenarios, whose figures are kept in files, and serves the recorded programs.
package recordings

import (
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }
