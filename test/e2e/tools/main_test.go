// Package tools tests over HTTP how a tool is forged, answers, is repaired, corrected, judged, explained and moved, and that hostile programs
// and a failing engine harm nothing. A file's name begins with its subject: seeds_*_test.go hold single sentences of the seeds.
package tools

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/worker"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// TestMain gives the runners of a binary of another name another engine.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sandbox.RunnerArg && !slices.Contains(os.Args, wire.LaunchArg) {
		binary, _ := os.Executable() // "" is no name of these
		switch filepath.Base(binary) {
		case failingName:
			os.Exit(worker.Serve(newFailing))
		case wrongName:
			os.Exit(worker.Serve(newWrong))
		}
	}
	joinTaskGroup()
	rig.Main(m)
}

type object = map[string]any
