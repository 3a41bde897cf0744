// Package wire is the protocol between the daemon and its runners: frames on a pipe, the messages in them, and the
// checks that each message must pass before any of it is used.
//
// A frame is a length of four bytes (little endian, of what follows), a kind of one byte, and the payload. Payloads
// consist of unsigned varints and length-prefixed byte strings, so JSON is copied as it is, never escaped or scanned for
// its end. The daemon speaks first: Config, then Load, then any number of Run. A runner answers each with Ready, Loaded
// and Answer, and may send Questions while a program runs, one at a time.
//
// The daemon treats every byte from a runner as hostile: nothing is allocated for a length that was only announced, and
// the results of ParseAnswer, ParseLoaded and ParseQuestion are within their bounds. The package does no confinement,
// and parses no program. Each check is one pass over the message.
package wire

// Bounds of what a runner may say, in bytes, beside Limits.
const (
	MaxMessage  = 4 << 10   // of an error's text
	MaxFacts    = 256 << 10 // of the gate's facts or refusal
	MaxReady    = 64 << 10
	MaxAskParam = 2 << 20 // of a question's parameters: room for a fetch's body
	maxKey      = 1 << 10 // of a context key
)

// RunnerArg is the first argument of a runner's command line.
const RunnerArg = "runner"

// AnswerFD is the descriptor on which a runner answers; it reads on 0. Its standard output and error are one pipe that the daemon
// only reads to learn how it died.
const AnswerFD = 3

// Nobody is the user that runners become when the daemon is root.
const Nobody = 65534
