// Package overview holds the lists that people decide by to their promises, over HTTP: tools in order, what waits, what another policy would do.
package overview

import (
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }

type object = map[string]any
