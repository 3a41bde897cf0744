// Package tools tests over HTTP how a tool is forged, answers, is repaired, corrected, judged, explained and moved, and
// that hostile programs harm nothing. A file's name begins with its subject: seeds_*_test.go hold single sentences of
// the seeds.
package tools

import (
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

func TestMain(m *testing.M) {
	joinTaskGroup()
	rig.Main(m)
}

type object = map[string]any
