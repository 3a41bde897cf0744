// Package history tests that each call leaves one record without values, and what programs and models see of these records.
package history

import (
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }
