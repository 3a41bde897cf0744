package tools

import (
	"encoding/json"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/interp"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/worker"
)

// failingName is the name under which the test binary is a daemon whose runners fail where a program asks them to.
const failingName = "failing-engine"

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
