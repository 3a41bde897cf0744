// Package tenancy tests that nothing of one namespace shows in another, for every operation, and what people of one namespace see of each other.
package tenancy

import (
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }
