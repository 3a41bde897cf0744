// Package contracts tests that contracts are checked and say the same every time how a value falls short.
package contracts

import (
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }
