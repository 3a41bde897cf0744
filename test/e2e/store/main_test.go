// Package store tests that what was acknowledged is there after kills, replays to the same bytes, and moves by export and import.
package store

import (
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }
