// Package evolution tests predictions, and that weak answers and repeated questions become recommendations, which people apply and take back.
package evolution

import (
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }
