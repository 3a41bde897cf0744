// Package sandbox runs forged programs in confined processes, called runners. It starts runners, keeps them warm,
// enforces their limits, answers the host calls of programs and kills runners. A canary runner probes its own
// confinement at start, and Status reports the level observed. A runner is a re-exec of the binary with an empty
// environment, whose code is package worker, and it is confined before it reads any source. It runs one program for one
// owner and is discarded on any doubt. Whatever a program or its process does, the run ends in a typed Result within
// the deadline plus a second. The daemon is unharmed: a program reaches no file, socket or process outside its runner,
// and no state passes from one call to another.
//
// The package treats every byte from a runner as hostile (see package wire). It never parses a program, and knows
// nothing of models, contracts or the store.
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

// Program is a stored program.
type Program struct {
	Source   string // the model's own text
	Checksum string // agent.Checksum(Source); a runner is bound to it
}

// Request is one run of a program.
type Request struct {
	Program Program
	Owner   agent.Owner // runners are never shared between owners

	Role, Method, CallID, TraceID string

	Depth        int
	Args         []json.RawMessage
	Kwargs       json.RawMessage            // a JSON object; empty means none
	Context      map[string]json.RawMessage // by top-level key
	InputHistory json.RawMessage            // {"messages": [...]}; empty means none
	Now          time.Time                  // the program's clock at its start
	Seed         uint64                     // seeds the program's randomness
	// Timeout bounds the program's own run time. It includes the daemon's work for the program. The clock stops while
	// the program waits for other programs or the network. Zero means 30 seconds.
	Timeout time.Duration
	NoFetch bool          // NoFetch denies fetches.
	Fetches int           // the most fetches that the run may make
	Guard   fetch.Guard   // further restrictions on what the run may reach; nil means none
	Writes  *fetch.Ledger // the ledger of the client's call; nil forbids writes
	// Sleep bounds the sum of all time.Sleep waits. Zero means that time.Sleep only moves the clock.
	Sleep time.Duration
	// End is the deadline of the whole call. A sleep that would pass it ends the run at once. Zero means no deadline.
	End time.Time
	// Recorded holds the effects of an earlier call. The run is served from them instead of the real sources (replay,
	// proof). Nil means the real sources.
	Recorded json.RawMessage
	// Canonical normalizes the parameters of a host call before they are compared with Recorded, if they do not match
	// literally. Nil means no normalization.
	Canonical func(json.RawMessage) json.RawMessage
}

// Result reports how a run ended. Exactly one of Value, Authored and Failure is set.
type Result struct {
	Value    json.RawMessage // compact JSON, bounded
	Authored *AuthoredError
	Failure  *Failure

	Context *agent.ContextChange // the program's changes to its context; set only with a Value
	Facts   *report.Facts        // nil if the program was never loaded
	Effects Effects
	Timing  Timing

	Tier string // TierEngine or TierNative
}

// AuthoredError is an error that the program itself returned.
type AuthoredError struct {
	Type, Message string
	Retriable     bool // the program marked the error as retriable
	Plain         bool // the error has no type of its own, so Type is tool_error
}

// Failure is an end of a run that the program did not author. Type is one of invalid_code, tool_registry_violation,
// dependency_policy_violation, execution, timeout, resource_exhausted, runner_crash, non_serializable_result, canceled.
type Failure struct {
	Type    string
	Message string // bounded, one paragraph; compile errors carry the model's own lines
	// Detail classifies a death or panic: stack, memory, map_race, goroutine_panic, deadline, cpu, protocol, killed and
	// others. It is empty if no class applies.
	Detail string
	Hint   string // a correction that a model can follow
	// Ours marks a failure that the daemon caused (shutdown, spawn failure, client gone, engine fault). It is not
	// evidence against the program.
	Ours    bool
	Waiting bool // set on a timeout spent waiting for an external source or a runner

	// Sleeps is the sum of the program's sleeps if a timeout was reported because they exceed the call's time.
	// Otherwise it is 0.
	Sleeps time.Duration
}

// Effects lists what a run obtained from outside, in order. A later run can be replayed against it.
type Effects struct {
	Journal   json.RawMessage // opaque, bounded; nil if there were no effects
	Truncated bool            // the journal exceeded its limit, so the call cannot be replayed
	Fetches   []Fetch
	Nested    int           // number of nested calls
	Asks      int           // number of host calls of all kinds
	Slept     time.Duration // real time spent in time.Sleep
	Made      []agent.File  // files that the run made, kept or not
	Notes     []string      // texts passed to call.Log, bounded
}

// Fetch is one request that the daemon performed for the program.
type Fetch = fetch.Note

// Timing holds the duration of each stage of a run. Build is the time spent waiting for the compiler.
type Timing struct{ Queue, Spawn, Gate, Build, Run, Host time.Duration }

// Host performs the host calls of a running program. Run calls the methods from its own goroutine, one at a time. Each
// must return soon after ctx ends.
type Host interface {
	Call(ctx context.Context, role, method string, args []json.RawMessage, kwargs json.RawMessage) agent.Outcome
	// Refuse records a call that cannot be made, because some arguments cannot be encoded as JSON. Each of those is
	// replaced by a text.
	Refuse(ctx context.Context, role, method string, args []json.RawMessage, kwargs json.RawMessage,
		reason string) agent.Outcome
	// Delegate registers the role with the contract, or tightens the registered contract. A returned error goes to the
	// program.
	Delegate(ctx context.Context, role string, contract json.RawMessage) *AuthoredError
	// Predict asks the model for the outputs of a signature. A returned error goes to the program.
	Predict(ctx context.Context, signature, inputs json.RawMessage) (json.RawMessage, *AuthoredError)
	// Tools returns the tools that the program can see, as JSON.
	Tools(ctx context.Context) (json.RawMessage, error)
	// History serves the three history methods of recurgent.Call. It returns an array of records, oldest first.
	History(ctx context.Context, all, page bool, after, limit int) (json.RawMessage, error)
	// Content returns the stored content of ref, or nil if there is none.
	Content(ctx context.Context, ref string) (json.RawMessage, error)
	// OpenFile opens a file for reading, including a closed file of CreateFile. A returned error goes to the program.
	OpenFile(ctx context.Context, id string) (*OpenFile, *AuthoredError)
	// CreateFile creates a file for the operation op. A returned error goes to the program.
	CreateFile(ctx context.Context, op, name, mediaType string) (NewFile, *AuthoredError)
	// Revision returns the revision of the data behind op (history, tools, content). While it is unchanged, the same
	// question has the same answer. It is cheap, and negative if the revision is unknown.
	Revision(ctx context.Context, op string) int64
}

// Level is a degree of confinement, as observed at start.
type Level string

const (
	LevelFull    Level = "full"    // every layer holds
	LevelReduced Level = "reduced" // seccomp holds, another layer is missing
	LevelProcess Level = "process" // only a separate process with resource limits
)

// RunnerArg is the first argument of a runner's command line. Package main hands a process started with it to package
// worker.
const RunnerArg = wire.RunnerArg

// Sandbox runs programs. Pool implements it.
type Sandbox interface {
	// Load gates and compiles the program in a runner, which stays warm for it and the owner.
	Load(ctx context.Context, p Program, owner agent.Owner) (*report.Facts, *Failure)
	// Fix loads a program as a model wrote it. The runner first repairs faults that have only one reading. The returned
	// Program is the text that was loaded or refused, and should be stored instead of source. Its facts list the
	// repairs.
	Fix(ctx context.Context, source string, t report.Terms, owner agent.Owner) (Program, *report.Facts, Timing,
		*Failure)
	// Run runs the program. Concurrent calls are admitted up to Options.Runners at a time; nested ones (depth 1 and
	// more) use extra runners, so that programs waiting for each other cannot block one another.
	Run(ctx context.Context, r Request, h Host) Result
	// Status returns the confinement observed at start.
	Status() Status
	Stats() Stats // Stats returns current figures for metrics.
	Close() error // Close ends every runner and waits until all are reaped.
}

// Status describes the confinement that the canary runner observed. The log, /v1/version and doctor report it.
type Status struct {
	Level  Level             `json:"level"`
	Layers map[string]string `json:"layers"` // by layer: on, off (with the reason), or a detail
	Probes map[string]string `json:"probes"` // by probe: denied or ALLOWED
}

// Stats holds figures for metrics.
type Stats struct {
	Busy, Idle, Warm int64            // gauges
	WarmBytes        int64            // gauge: bytes held by warm runners
	Spawned          int64            // since the start
	EngineFailures   int64            // since the start: internal engine faults
	Killed           map[string]int64 // since the start, by reason
}
