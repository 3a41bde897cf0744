// Package engine tests over HTTP what becomes of calls when the engine that runs programs fails.
package engine

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/interp"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/worker"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// TestMain has the runners of this package run programs by an engine that fails where it is asked to.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sandbox.RunnerArg {
		os.Exit(worker.Serve(newFailing))
	}
	rig.Main(m)
}

// A failing engine is the default one, but fails to compile a program that says so, and to encode a value that does.
type failing struct{ worker.Engine }

func newFailing(setting string) (worker.Engine, error) {
	e, err := worker.NewEngine(setting)
	return failing{e}, err
}

func (e failing) Load(source string) (*report.Facts, *report.Refusal, error) {
	if strings.Contains(source, "// a fault while compiling") {
		return nil, nil, &interp.Failure{Why: "planted while compiling"}
	}
	return e.Engine.Load(source)
}

func (e failing) Encode(v any) (json.RawMessage, error) {
	raw, err := e.Engine.Encode(v)
	if strings.Contains(string(raw), "a fault while running") {
		return nil, &interp.Failure{Why: "planted while running"}
	}
	return raw, err
}
