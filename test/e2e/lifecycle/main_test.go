// Package lifecycle tests the life of artifacts: generations, states, repairs and their budgets, selection, damaged files, and
// the operations of people with their undo.
package lifecycle

import (
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }
