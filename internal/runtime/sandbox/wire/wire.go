// Package wire is the protocol between the daemon and its runners: frames on a pipe, the messages in them, and the
// checks that every message must pass before it is used.
//
// A frame has a length of four bytes (little endian, of what follows), a kind of one byte, and the payload. Payloads
// consist of unsigned varints and length-prefixed byte strings, so JSON is copied verbatim, never escaped or scanned
// for its end. The daemon speaks first: Config, then Load, then any number of Run. A runner answers these with Ready,
// Loaded and Answer. While a program runs it may send Questions, one at a time.
//
// The daemon treats every byte from a runner as hostile. An announced length alone allocates nothing, and the results
// of ParseAnswer, ParseLoaded and ParseQuestion are within their bounds. Each check is one pass over the message. The
// package does not confine processes and does not parse programs.
package wire

// Bounds of a runner's messages, in bytes, in addition to Limits.
const (
	MaxMessage  = 4 << 10   // an error's text
	MaxFacts    = 256 << 10 // the gate's facts or refusal
	MaxReady    = 64 << 10  // a report of the confinement
	MaxAskParam = 2 << 20   // a question's parameters: room for the body of a fetch
	maxKey      = 1 << 10   // a context key
)

// RunnerArg is the first argument of a runner's command line.
const RunnerArg = "runner"

// AnswerFD is the descriptor to which a runner writes; it reads from 0. Its standard output and error share a second
// pipe, which the daemon reads only to learn how the process died.
const AnswerFD = 3

// Nobody is the user and group id of runners if the daemon is root.
const Nobody = 65534
