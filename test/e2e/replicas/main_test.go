// Package replicas holds daemons that share a PostgreSQL database to the promises of one daemon, and daemons of both
// kinds to what they promise while they are killed, stopped and cut off (chaos).
package replicas

import (
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }
