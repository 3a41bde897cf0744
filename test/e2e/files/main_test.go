// Package files tests that files go in and out whole, belong to their owners, stay within bounds, and are gone when their time is over.
package files

import (
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }
