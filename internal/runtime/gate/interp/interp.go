// Package interp runs checked programs.
package interp

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/gate"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/rt"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// Name and Version identify the engine in records of runs.
const (
	Name    = "ssa"
	Version = "1"
)

// A Panic is a run that ended in a panic.
type Panic struct {
	Class   string // "runtime error", "error", "string" ...: the kind of the panic's value
	Message string // as Go prints it after "panic: ", bounded
	Line    int    // of the program, 0 when unknown
}

// A Compiled is a program ready to run, again and again, one run at a time.
type Compiled struct{ env *rt.Env }

// Compile prepares a checked program. Nothing of the program runs yet.
func Compile(p *gate.Program) (*Compiled, error) { return nil, errors.New("interp: not built yet") }

// Begin sets the clock and the seed of the next run.
func (c *Compiled) Begin(now time.Time, seed uint64) { c.env.Begin(now, seed) }

// Reads returns what the last run read of clock and chance.
func (c *Compiled) Reads() rt.Reads { return c.env.Reads() }

// Run calls the program's Run. Package variables are initialised afresh before it. Exactly one of a value with
// a nil error, an error that the program returned, and a Panic is the answer.
func (c *Compiled) Run(call *recurgent.Call) (value any, err error, panicked *Panic) {
	return nil, errors.New("interp: not built yet"), nil
}

// Encode returns the JSON form of a program's value as encoding/json gives it natively. A value without one
// (a channel, a function, a cycle, NaN, a method that fails or panics) is an error.
func Encode(v any) (json.RawMessage, error) { return json.Marshal(v) }
