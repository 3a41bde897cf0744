package hostile

import (
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

func TestMain(m *testing.M) {
	joinTaskGroup()
	rig.Main(m)
}
