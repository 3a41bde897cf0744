package sandbox

import (
	"os"
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// classifyDeath returns the Failure of a run whose process died. The daemon's own reason comes first, then the last
// words of the Go runtime (lastWords), then the signal. The output is hostile. It only selects one of our messages and
// is never quoted, except for the first line of a panic or a fatal error.
func classifyDeath(state *os.ProcessState, reason *string, stderr []byte, exhausted bool, cpuLimit int64) *Failure {
	if reason != nil && *reason == "shutdown" {
		return &Failure{Type: agent.ErrCanceled, Detail: "canceled",
			Message: "the call was given up: " + errShutdown.Error(), Ours: true}
	}
	if reason != nil && *reason != "flood" {
		return &Failure{Type: agent.ErrRunnerCrash, Detail: "killed",
			Message: "the runner was ended by the daemon: " + *reason}
	}
	if exitedAsGo(state) {
		if f := readWords(stderr).failure(exhausted); f != nil {
			return f
		}
	}
	if reason != nil {
		return &Failure{Type: agent.ErrRunnerCrash, Detail: "flood", Message: "the runner flooded its standard error"}
	}
	switch signal := deathSignal(state, cpuLimit); signal {
	case "cpu":
		return &Failure{Type: agent.ErrTimeout, Detail: "cpu",
			Message: "the program used up its runner's processor time",
			Hint:    "Bound every loop and do less work in one call."}
	case "killed":
		return &Failure{Type: agent.ErrRunnerCrash, Detail: "killed", Message: "the runner was killed from outside"}
	case "sys":
		return &Failure{Type: agent.ErrRunnerCrash, Detail: "seccomp",
			Message: "the runner made a forbidden system call"}
	case "":
	default:
		return &Failure{Type: agent.ErrRunnerCrash, Detail: "signal",
			Message: "the runner died of the signal " + signal}
	}
	return &Failure{Type: agent.ErrRunnerCrash, Detail: "exit", Message: "the runner ended in the middle of a call"}
}

// detailEngine is the Detail of a Failure of a run, or of a program's preparation, caused by an internal fault of the
// engine.
const detailEngine = "engine"

// engineFault returns the Failure for an internal fault of the engine, which is not evidence against the program.
func engineFault(why string) *Failure {
	return &Failure{Type: agent.ErrRunnerCrash, Detail: detailEngine, Message: "the engine failed: " + why, Ours: true,
		Hint: "This is a fault of the daemon, not of the program. Please report it with the program's source."}
}

// notLoaded returns why a runner could not load a program, or nil if it could.
func notLoaded(l *wire.Loaded) *Failure {
	switch {
	case l.Refusal != nil:
		return refused(l.Refusal)
	case l.Fault != "":
		return engineFault(l.Fault)
	case l.Error != "":
		return &Failure{Type: agent.ErrInvalidCode, Detail: "compile", Message: l.Error,
			Hint: "Write it in a plainer way."}
	}
	return nil
}

// refused converts the gate's refusal into a Failure.
func refused(r *report.Refusal) *Failure {
	f := &Failure{Type: agent.ErrInvalidCode, Message: wire.BoundText([]byte(r.Message), wire.MaxMessage),
		Detail: "gate", Hint: wire.BoundText([]byte(r.Hint), wire.MaxMessage)}
	switch r.Type {
	case agent.ErrToolRegistry, agent.ErrDependencyPolicy:
		f.Type = r.Type
	case agent.ErrUnsupportedCapability:
		f.Type, f.Ours = r.Type, true // no other program text would help
	}
	for i, line := range r.Errors[min(len(r.Errors), 1):] { // the first error is the message itself
		if i == maxFaults {
			break
		}
		f.Message += "\n" + wire.BoundText([]byte(line), maxFault)
	}
	return f
}

// maxFaults is how many errors a Failure lists after the first, and maxFault how many bytes of each.
const (
	maxFaults = 20
	maxFault  = 720
)

func outOfMemory() *Failure {
	return &Failure{Type: agent.ErrResourceExhausted, Detail: "memory",
		Message: "the program needed more memory than its runner has",
		Hint:    "Work in smaller pieces and bound what is kept."}
}

// goExit is the exit code of a process whose Go runtime aborts it.
const goExit = 2

// exitedAsGo reports whether the Go runtime may have ended the process: by exit code 2 after its last words, or by a
// signal. A process that exits with another code wrote its last words itself.
func exitedAsGo(state *os.ProcessState) bool {
	return state == nil || !state.Exited() || state.ExitCode() == goExit
}

// lastWords holds the lines before the first stack, in which the Go runtime explains why it aborts. The runtime indents
// continuation lines of a program's text by a tab, so the program cannot fake a line of the runtime.
type lastWords struct {
	own   string   // first line of a panic in a goroutine of the program; "" if there is none
	words []string // the runtime's own lines
	fatal bool     // words contains a fatal error
	line  int      // line in the program's source of its innermost function in the first stack; 0 if unknown
}

// Prefixes of lines that may contain text of the program.
const (
	wordPanic = "panic: "
	// The String or Error method of the panic value panicked as well.
	wordPrinting = "fatal error: panic while printing panic value"
	wordFatal    = "fatal error: "
)

// readWords parses the standard error of a dead process.
func readWords(stderr []byte) (w lastWords) {
	lines := strings.Split(string(stderr), "\n")
	for i, line := range lines {
		switch {
		case line == "" || line[0] == '\t':
		case strings.HasPrefix(line, "goroutine ") && (w.own != "" || w.fatal):
			w.line = programLine(lines[i+1:])
			return w
		case strings.HasPrefix(line, wordPanic), strings.HasPrefix(line, wordPrinting):
			if w.own == "" {
				w.own = line
			}
		default:
			w.words = append(w.words, line)
			w.fatal = w.fatal || strings.HasPrefix(line, wordFatal)
		}
	}
	return w
}

// programLine returns the innermost line of the program's source in a stack, or 0. Each function in a stack is followed
// by a tab and its position.
func programLine(stack []string) int {
	for _, line := range stack {
		if line == "" {
			return 0
		}
		at, _, _ := strings.Cut(line, " ")
		if file, number, ok := strings.Cut(at, ".go:"); ok && strings.HasPrefix(line, "\t") &&
			strings.HasSuffix(file, "program") {
			n, _ := strconv.Atoi(number) // 0 if it is not a number
			return n
		}
	}
	return 0
}

// failure returns the Failure that the words describe, or nil if they describe none. exhausted means that the process
// was near its memory limit, where the runtime's own allocations fail as well.
func (w lastWords) failure(exhausted bool) *Failure {
	if w.own != "" && !w.fatal {
		f := &Failure{Type: agent.ErrExecution, Detail: "goroutine_panic",
			Message: "a goroutine of the program ended in " + quoted(strings.TrimPrefix(w.own, wordFatal))}
		if w.line > 0 {
			f.Message += " (program.go:" + strconv.Itoa(w.line) + ")"
		}
		return f
	}
	for _, c := range deaths {
		for _, word := range w.words {
			at := strings.Index(word, c.mark)
			if at < 0 {
				continue
			}
			if c.unclear && exhausted {
				return outOfMemory()
			}
			f := c.failure
			if c.quote {
				f.Message += quoted(word[at:])
			}
			return &f
		}
	}
	return nil
}

// quoted returns line, cut for quoting in a message.
func quoted(line string) string { return strings.TrimSpace(wire.BoundText([]byte(line), 200)) }

// deaths maps the runtime's words to failures, the most specific first.
var deaths = []struct {
	mark    string
	quote   bool
	unclear bool // near the memory limit, the cause is the runtime's own failed allocation
	failure Failure
}{
	{"goroutine stack exceeds", false, false, Failure{Type: agent.ErrResourceExhausted, Detail: "stack",
		Message: "the program's stack grew beyond its limit: recursion without end, or too deep",
		Hint:    "Use a loop, or bound the depth of the recursion."}},
	{"stack overflow", false, false, Failure{Type: agent.ErrResourceExhausted, Detail: "stack",
		Message: "the program's stack grew beyond its limit",
		Hint:    "Use a loop, or bound the depth of the recursion."}},
	{"out of memory", false, false, *outOfMemory()},
	{"cannot allocate memory", false, false, *outOfMemory()},
	{"concurrent map", false, false, Failure{Type: agent.ErrExecution, Detail: "map_race",
		Message: "several goroutines used one map at the same time", Hint: "Do the work in one goroutine."}},
	{"all goroutines are asleep", false, false, Failure{Type: agent.ErrExecution, Detail: "deadlock",
		Message: "the program waits for something that can never happen",
		Hint:    "Do not block on channels that nobody serves."}},
	{"main called runtime.Goexit", false, false, Failure{Type: agent.ErrExecution, Detail: "exit",
		Message: "the program ended its goroutine, and Run did not return"}},
	{"failed to create new OS thread", false, false, Failure{Type: agent.ErrResourceExhausted, Detail: "threads",
		Message: "the program needed more threads than its runner may have"}},
	{"pthread_create failed", false, false, Failure{Type: agent.ErrResourceExhausted, Detail: "threads",
		Message: "the program needed more threads than its runner may have"}},
	{"fatal error: sync: ", true, false, Failure{Type: agent.ErrExecution, Detail: "fatal",
		Message: "the program ended in "}},
	{"unexpected signal during runtime execution", false, true,
		Failure{Type: agent.ErrRunnerCrash, Detail: "signal", Message: "the program corrupted its runner"}},
	{"SIGSEGV", false, true, Failure{Type: agent.ErrRunnerCrash, Detail: "signal",
		Message: "the program corrupted its runner"}},
	{wordFatal, true, true, Failure{Type: agent.ErrRunnerCrash, Detail: "fatal", Message: "the Go runtime gave up: "}},
}
