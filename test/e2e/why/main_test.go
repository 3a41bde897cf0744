// Package why tests that the explanation of a call is true, for every kind of call, and that the steps it proposes can be taken.
package why

import (
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }
