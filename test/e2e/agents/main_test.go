// Package agents tests what agents see of the daemon: function tools and MCP, over HTTP and stdio.
package agents

import (
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }
