// Package compiled is what an executable of the rig's compiler does (its program is in package program): it runs programs on the engine, and goes wrong as its mode says.
package compiled

import (
	"encoding/json"
	"strings"
	"syscall"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/rt"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/serve"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/worker"
)

// Place is what the compiler writes the mode over in a copy of the program, which can open no file to read it from.
const Place = "the mode of this executable stands here: same       "

var mode = Place

// initially is what the canary's probes saw as the package was initialised, in the mode that asks for it.
var initially = probed()

// Main is the whole of an executable's process. It returns the exit code.
func Main() int {
	e, err := worker.NewEngine(report.EngineSSA)
	if err != nil {
		return 3
	}
	return serve.Launched(&engine{Engine: e, mode: strings.TrimSpace(mode)})
}

// An engine is the runners' one, except for what its mode does.
type engine struct {
	worker.Engine
	mode  string
	given []string // first arguments of all calls of this process
}

func (e *engine) Run(call *recurgent.Call, now time.Time, seed uint64) (any, error, *rt.Panic) {
	die := func() { _ = syscall.Kill(syscall.Getpid(), syscall.SIGSEGV); select {} }
	first := ""
	if len(call.Args) > 0 {
		raw, _ := json.Marshal(call.Args[0]) // it came as JSON
		first = string(raw)
	}
	if first != "" {
		e.given = append(e.given, first)
	}
	value, err, panicked := e.Engine.Run(call, now, seed)
	switch {
	case e.mode == "reports at 99" && first == "99": // what this process was given
		return strings.Join(e.given, " "), nil, nil
	case initially != nil && first == "99":
		return initially, nil, nil
	case e.mode == "differs", e.mode == "differs at 13" && first == "13":
		return "not what the engine says", nil, nil
	case e.mode == "dies at 99" && first == "99": // after its host calls, if it makes any
		die()
	case e.mode == "hangs at 99" && first == "99":
		for forever := true; forever; { // with work, as a loop of a program has
			forever = len(e.mode) > 0
		}
	}
	return value, err, panicked
}
