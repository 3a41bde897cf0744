// Package sandbox is the daemon's side of running forged programs in confined processes, the runners. It starts runners,
// keeps them warm, enforces their limits, answers the host calls of programs and kills runners. It judges
// from a canary's probes how well runners are confined. A runner is a re-exec of the binary with an empty environment (package worker is its
// code), confined before it reads any source. It runs one program for one owner and is discarded on any doubt. Whatever
// a program or its process does, the run ends in a typed Result, within the deadline plus a second, and leaves the
// daemon unharmed: it reaches no file, socket or process outside, and no state passes from one call to another.
//
// Every byte from a runner is treated as hostile (package wire). This package never parses a program, and knows nothing
// of models, of contracts or of the store.
package sandbox

import (
	"context"
	"encoding/json"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/fetch"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// Program is a program as it is stored.
type Program struct {
	Source   string // the model's own text
	Checksum string // agent.Checksum(Source): what binds a runner to the program
}

// Request is one run of a program.
type Request struct {
	Program Program
	Owner   agent.Owner // whose call it is: runners are never shared between owners

	Role, Method, CallID, TraceID string

	Depth        int
	Args         []json.RawMessage
	Kwargs       json.RawMessage            // an object or nothing
	Context      map[string]json.RawMessage // by top-level key
	InputHistory json.RawMessage            // {"messages": [...]} or nothing
	Now          time.Time                  // the program's clock at its start
	Seed         uint64                     // of the program's randomness
	// of the program's own run time, what the daemon does for it included; the clock stops while it waits for other programs or the network
	Timeout time.Duration
	NoFetch bool          // fetches are denied
	Fetches int           // that the run may make
	Guard   fetch.Guard   // what else the run may not reach; nil: nothing else
	Writes  *fetch.Ledger // of the client's call; nil: the run may not write
	// how long time.Sleep may wait in sum; 0: it moves the clock and waits for nothing
	Sleep time.Duration
	// of the whole call: a sleep beyond it ends the run at once; zero for none
	End time.Time
	// effects of an earlier call to serve instead of real ones (replay, proof); nil for real ones
	Recorded json.RawMessage
	// the form in which what is asked for is compared with Recorded, where it is not the same; nil for none
	Canonical func(json.RawMessage) json.RawMessage
}

// Result is how a run ended: exactly one of Value, Authored and Failure is set.
type Result struct {
	Value    json.RawMessage // compact JSON, bounded
	Authored *AuthoredError
	Failure  *Failure

	Context *agent.ContextChange // what the program did to its context; meaningful with a Value only
	Facts   *report.Facts        // nil when the gate refused
	Effects Effects
	Timing  Timing

	Tier string // what ran the program: TierEngine or TierNative
}

// AuthoredError is the error that a program returned.
type AuthoredError struct {
	Type, Message string
	Retriable     bool // the program says that the same call may succeed later
	Plain         bool // it has no type of its own: Type is tool_error
}

// Failure is an end that the program did not author. Type is one of invalid_code, tool_registry_violation,
// dependency_policy_violation, execution, timeout, resource_exhausted, runner_crash, non_serializable_result, canceled.
type Failure struct {
	Type    string
	Message string // bounded, one paragraph; compile errors carry the model's own lines
	// class of a death or panic: stack, memory, map_race, goroutine_panic, deadline, cpu, protocol, killed ...; "" otherwise
	Detail string
	Hint   string // a correction that a model can follow
	// the daemon's doing (shutdown, spawn failure, client gone, a fault of the engine): says nothing about the program
	Ours    bool
	Waiting bool // of a timeout: the time was spent waiting for an external source, or for a runner

	// of a timeout: what the program would have slept in sum, where that does not fit the call's time; 0 for any other
	Sleeps time.Duration
}

// Effects is what a run took from outside, in order, so that it can be run again on the same.
type Effects struct {
	Journal   json.RawMessage // opaque, bounded; nil when there were none
	Truncated bool            // too much for the journal: the call cannot be replayed
	Fetches   []Fetch
	Nested    int           // nested calls
	Asks      int           // host calls of all kinds
	Slept     time.Duration // waited for in time.Sleep
	Made      []agent.File  // what was made, kept or not
	Notes     []string      // of call.Log, bounded
}

// Fetch is one request that the daemon performed for the program.
type Fetch = fetch.Note

// Timing has the duration of each stage of a run. Build is the wait for the compiler.
type Timing struct{ Queue, Spawn, Gate, Build, Run, Host time.Duration }

// Host is what the daemon does for a running program. Its methods are called from the goroutine of Run, one at a time,
// and must end soon after ctx does.
type Host interface {
	Call(ctx context.Context, role, method string, args []json.RawMessage, kwargs json.RawMessage) agent.Outcome
	// Refuse notes a call that cannot be made, for arguments without a JSON form; a text stands in the place of each.
	Refuse(ctx context.Context, role, method string, args []json.RawMessage, kwargs json.RawMessage,
		reason string) agent.Outcome
	// Delegate registers the role with the contract, or makes the registered one stricter; the program gets the error.
	Delegate(ctx context.Context, role string, contract json.RawMessage) *AuthoredError
	// Predict asks the model for the outputs of a signature; the program gets the error.
	Predict(ctx context.Context, signature, inputs json.RawMessage) (json.RawMessage, *AuthoredError)
	Tools(ctx context.Context) (json.RawMessage, error)
	// History answers recurgent.Call's three history methods: an array of records, oldest first.
	History(ctx context.Context, all, page bool, after, limit int) (json.RawMessage, error)
	Content(ctx context.Context, ref string) (json.RawMessage, error) // nil when missing
	// OpenFile opens a file for reading, also one of CreateFile that is closed; CreateFile begins one, for the operation op. The program gets the error.
	OpenFile(ctx context.Context, id string) (*OpenFile, *AuthoredError)
	CreateFile(ctx context.Context, op, name, mediaType string) (NewFile, *AuthoredError)
	// Revision is that of what answers to op (history, tools, content) are made of: as long as it is the same, the same question
	// has the same answer. It costs next to nothing; negative when nothing is known.
	Revision(ctx context.Context, op string) int64
}

// Level is what confinement was observed at start.
type Level string

const (
	LevelFull    Level = "full"    // every layer holds
	LevelReduced Level = "reduced" // seccomp holds, another layer is missing
	LevelProcess Level = "process" // a separate process with limits, no more
)

// RunnerArg is the first argument of a runner's command line: package main gives such a process to package worker.
const RunnerArg = wire.RunnerArg

// Sandbox runs programs. Pool implements it.
type Sandbox interface {
	// Load has a runner gate and compile the program and keeps that runner warm for it and the owner.
	Load(ctx context.Context, p Program, owner agent.Owner) (*report.Facts, *Failure)
	// Fix is Load of a program as a model wrote it: the runner repairs what has one reading first. The program returned is what was loaded, or
	// refused, and is to be kept; its facts say what was repaired.
	Fix(ctx context.Context, source string, t report.Terms, owner agent.Owner) (Program, *report.Facts, Timing,
		*Failure)
	// Run runs the program. Concurrent calls are admitted up to Options.Runners at a time; nested ones (depth 1 and
	// more) use extra runners, so that programs waiting for each other cannot block one another.
	Run(ctx context.Context, r Request, h Host) Result
	// Level and Facts of the confinement as observed at start.
	Status() Status
	Stats() Stats
	Close() error
}

// Status states the confinement as the canary runner observed it, for the log, /v1/version and doctor.
type Status struct {
	Level  Level             `json:"level"`
	Layers map[string]string `json:"layers"` // layer → on, off (why), detail
	Probes map[string]string `json:"probes"` // probe → denied or ALLOWED
}

// Stats are figures for metrics.
type Stats struct {
	Busy, Idle, Warm int64            // gauges
	WarmBytes        int64            // gauge: memory of the warm ones
	Spawned          int64            // since the start
	EngineFailures   int64            // since the start: internal faults of the engine
	Killed           map[string]int64 // by reason
}
