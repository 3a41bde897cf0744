// Package sim runs a whole daemon in one process, in a bubble of testing/synctest, on simulated parts: the listener,
// the disk, the programs and the model are Go values, and the clock is the bubble's. A seed decides what clients and
// people do, and which parts fail: the power, the disk, the model, programs, connections. A ledger holds the expected
// state, and is compared with the daemon's answers after each restart and whenever no request is running.
//
// The kernel, the compiler, the engines and PostgreSQL are real parts that it cannot simulate. Their tests are in
// internal/runtime/sandbox, internal/runtime/gate and test/e2e/replicas.
package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// A Kind is the kind of a step.
type Kind string

// Steps of clients, steps of people, and faults. Check waits until no request is running, and compares.
const (
	Open    Kind = "open"    // a session
	Call    Kind = "call"    // a method of calls
	Keyed   Kind = "keyed"   // a call with an idempotency key, sent twice
	HangUp  Kind = "hang-up" // a call whose client leaves
	Patch   Kind = "patch"   // the context
	Drop    Kind = "drop"    // a session
	Upload  Kind = "upload"  // a file
	Discard Kind = "discard" // a file
	Judge   Kind = "judge"   // the client's last answer

	Expect Kind = "expect" // examples of a method
	Put    Kind = "put"    // a program
	Renew  Kind = "renew"  // another program of add is to be written
	Policy Kind = "policy"
	Undo   Kind = "undo" // the last change of the policy
	Make   Kind = "make" // a namespace
	Erase  Kind = "erase"

	Cut     Kind = "cut"     // the power
	Restart Kind = "restart" // the daemon
	Full    Kind = "full"    // the disk, for a while
	Away    Kind = "away"    // the model, for a while
	Dying   Kind = "dying"   // programs, for a while
	Slow    Kind = "slow"    // programs, for a while
	Night   Kind = "night"   // nothing happens for hours
	Check   Kind = "check"
)

// A Step is one thing that happens. Its meaning does not depend on other steps, as far as possible.
type Step struct {
	After time.Duration // time since the previous step
	Kind  Kind
	Who   int    // number of the client, if the step needs one
	N     [3]int // random numbers from 0 to 999 for the step
}

func (s Step) String() string {
	return fmt.Sprintf("%s %d %d %d %d %d", s.Kind, s.Who, s.N[0], s.N[1], s.N[2], s.After)
}

// ParseSteps reads steps as String writes them, one a line.
func ParseSteps(text string) (steps []Step, err error) {
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		var s Step
		if _, err := fmt.Sscan(line, &s.Kind, &s.Who, &s.N[0], &s.N[1], &s.N[2], &s.After); err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		steps = append(steps, s)
	}
	return steps, nil
}

// A Plan describes how much happens in a life.
type Plan struct {
	Steps   int
	Faults  int // average number of faults among the steps
	Checks  int // average number of checks among the steps
	Clients int
	Gap     time.Duration // average time between two steps
}

// usual weights the steps that are neither faults nor checks.
var usual = map[Kind]int{Call: 60, Keyed: 10, HangUp: 3, Patch: 5, Open: 3, Drop: 1, Upload: 2, Discard: 1, Judge: 3,
	Expect: 2, Put: 1, Renew: 3, Policy: 3, Undo: 1, Make: 1, Erase: 1}

// faults weights the faults.
var faults = map[Kind]int{Cut: 6, Restart: 3, Full: 2, Away: 3, Dying: 2, Slow: 2, Night: 2}

// Draw returns the steps of a life.
func (p Plan) Draw(random *rand.Rand) []Step {
	often, seldom := weighted(usual), weighted(faults)
	steps := make([]Step, 0, p.Steps)
	for range p.Steps {
		kinds := often
		switch n := random.IntN(p.Steps); {
		case n < p.Faults:
			kinds = seldom
		case n < p.Faults+p.Checks:
			kinds = []Kind{Check}
		}
		steps = append(steps, Step{After: time.Duration(random.Int64N(int64(2 * p.Gap))),
			Kind: kinds[random.IntN(len(kinds))], Who: random.IntN(p.Clients),
			N: [3]int{random.IntN(1000), random.IntN(1000), random.IntN(1000)}})
	}
	return steps
}

// order lists all kinds, because a map has no order.
var order = []Kind{Open, Call, Keyed, HangUp, Patch, Drop, Upload, Discard, Judge, Expect, Put, Renew, Policy, Undo,
	Make, Erase, Cut, Restart, Full, Away, Dying, Slow, Night, Check}

func weighted(often map[Kind]int) (kinds []Kind) {
	for _, k := range order {
		for range often[k] {
			kinds = append(kinds, k)
		}
	}
	return kinds
}
