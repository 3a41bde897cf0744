// Package interfaces tests what methods declare that they take and return, what is inferred, and that successors stay compatible.
package interfaces

import (
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }
