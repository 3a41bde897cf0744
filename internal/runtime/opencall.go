package runtime

import (
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/mask"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/runtime/env"
	"github.com/recurgentd/recurgentd/internal/runtime/fetch"
	"github.com/recurgentd/recurgentd/internal/runtime/files"
	"github.com/recurgentd/recurgentd/internal/runtime/history"
	"github.com/recurgentd/recurgentd/internal/runtime/lifetime"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// A Call is a checked request of a client or a program. Except for the fields marked otherwise, it does not change once it
// is registered as running: views, flights and nested calls read it concurrently.
type Call struct {
	env     *env.Env
	policy  *agent.Policy // as of the start of the call
	rules   *mask.Rules   // rules for secrets, as of the start of the call
	session agent.Session
	id      string
	traceID string
	depth   int
	speaker string
	owner   string

	operates bool // the owner's token has the scope operate

	parent        string // ID of the call whose program made this one; "" at depth 0
	root          string // ID of the client's call at the root; "" at depth 0
	parentAttempt string // attempt that made this call; "" at depth 0

	role, method string
	args         []json.RawMessage
	kwargs       json.RawMessage
	inputHistory json.RawMessage     // nil if the call has none
	inputTurns   []history.Turn      // decoded inputHistory
	signature    *contract.Signature // describes the turns; nil if there is none

	// JSON pointer to the argument that held inputHistory; "" if it came as the call's history
	historyArgument string
	// contract resolved for the check of the history input; reused unless the call waits for its turn
	early   *terms
	asked   *agent.Contract // contract given by the caller
	started time.Time
	fence   int64 // epoch under which its session is owned; 0 without other replicas

	inherited []string                   // secrets of the calls above
	input     atomic.Pointer[shownInput] // args and kwargs as they may be shown
	first     shownInput                 // the first value of input; saves an allocation

	tree      *tree
	own       tree         // tree of a root call
	begins    fetch.Place  // position in the tree's ledger at which the call's programs begin
	slept     atomic.Int64 // nanoseconds that its programs slept
	weakBelow atomic.Int32 // weak successes among the calls below it
	deadline  time.Time    // of the whole call; zero if there is none
	life      lifetime.Context
	// files of its programs, and of the programs that wait for this call, which it may read; used only by the goroutine
	// that runs the call
	drafts, lent []*files.Draft
	progress     progress.Log
	span         *telemetry.Span // nil if traces are off
}

// A tree holds what a root call shares with the nested calls below it. Only the fields that several goroutines may use
// at once are atomic.
type tree struct {
	made    atomic.Int32 // nested calls
	refused atomic.Bool  // one refusal has been recorded
	written atomic.Bool  // a model was asked for a program
	usage   agent.Usage  // of the nested calls; written by the goroutine that runs the tree
	writes  fetch.Ledger // writes of all calls; used by the same goroutine
}
