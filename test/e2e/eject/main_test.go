// Package eject tests that programs move from one daemon to another by way of a directory, in which they are plain Go.
package eject

import (
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }
