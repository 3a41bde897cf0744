// Package seeds tests single sentences of the seeds that no other package has; docs/seeds.md names all tests by requirement.
package seeds

import (
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }

type object = map[string]any
