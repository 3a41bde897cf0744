// Hostileprogram is an executable without trusted code: it is not narrowed, and it makes its probes during
// initialization. Its value is their outcome.
package main

import (
	"encoding/json"
	"os"
	"strconv"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/rt"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/probe"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/serve"
)

var seen = probe.Launched(probe.Bounds{Parent: argument(1), Data: uintptr(argument(2)), Mapped: uintptr(argument(3))})

func argument(i int) int {
	n, err := strconv.Atoi(os.Args[i])
	if err != nil {
		panic(err)
	}
	return n
}

type engine struct{}

func main() { os.Exit(serve.Launched(engine{})) }

func (engine) Load(string) (*report.Facts, *report.Refusal, error) {
	return &report.Facts{}, nil, nil
}

func (engine) Run(*recurgent.Call, time.Time, uint64) (any, error, *rt.Panic) {
	return seen, nil, nil
}

func (engine) Reads() (int, int)                     { return 0, 0 }
func (engine) Encode(v any) (json.RawMessage, error) { return json.Marshal(v) }
