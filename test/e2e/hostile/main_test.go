// Package hostile runs hostile programs through a real daemon, which survives them, also where it may have few processes.
package hostile

import (
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

func TestMain(m *testing.M) {
	joinTaskGroup()
	rig.Main(m)
}
