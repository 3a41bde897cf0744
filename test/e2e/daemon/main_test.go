// Package daemon tests the daemon as people and other programs meet it: start and end, namespaces and their people,
// caps, secrets, connections, effects, lists, stored data, files, commands, agents and clients. A file's name begins
// with its subject.
package daemon

import (
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }

type object = map[string]any
