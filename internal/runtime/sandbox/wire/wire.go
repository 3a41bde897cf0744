// Package wire is what the daemon and its runners both speak: frames on a pipe, the messages in them, and what is checked of each
// message before anything of it is used.
//
// A frame is four bytes of length (little endian, of what follows), one byte of kind, and the payload. Payloads are made of unsigned
// varints and of byte strings with their length before them, so that JSON travels as it is and is never escaped or scanned for its end.
// The daemon speaks first: Config, then Load, then any number of Run; a runner answers each with Ready, Loaded and Answer, and may send
// Questions while a program runs, one at a time.
//
// The daemon takes every byte from a runner as hostile: nothing is allocated for what has only been announced, and what ParseAnswer,
// ParseLoaded and ParseQuestion return is within its bounds. The package does no confinement, and parses no program.
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
