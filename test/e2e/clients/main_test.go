// Package clients tests the client libraries and the examples against a real daemon.
package clients

import (
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }
