package sandbox

import (
	"os"
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// goExit is the exit code of a process whose Go runtime gives up.
const goExit = 2

// exitedAsGo reports whether the process may have ended by its Go runtime: after its last words, or by a signal among them. One that exits otherwise wrote them itself.
func exitedAsGo(state *os.ProcessState) bool {
	return state == nil || !state.Exited() || state.ExitCode() == goExit
}

// lastWords are the lines in which the Go runtime says why it gives up, those before the first stack. It puts a tab before each further line of a text of the
// program's, so none of these can pass for a line of its own.
type lastWords struct {
	own   string   // of the program's: a panic in a goroutine, up to its first line break; "" for none
	words []string // the runtime's own lines
	fatal bool     // one of these is a fatal error
	line  int      // of the program's text, of the innermost of its functions in the first stack; 0: not known
}

// Beginnings of lines whose rest may be of the program.
const (
	wordPanic    = "panic: "
	wordPrinting = "fatal error: panic while printing panic value" // its text panics, too
	wordFatal    = "fatal error: "
)

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

// programLine returns the first line of the program's text in a stack: after the line with a function comes, behind a tab, where it is.
func programLine(stack []string) int {
	for _, line := range stack {
		if line == "" {
			return 0
		}
		at, _, _ := strings.Cut(line, " ")
		if file, number, ok := strings.Cut(at, ".go:"); ok && strings.HasPrefix(line, "\t") &&
			strings.HasSuffix(file, "program") {
			n, _ := strconv.Atoi(number) // 0 where it is not one
			return n
		}
	}
	return 0
}

// failure returns what the words say, nil where they say nothing. A process near its memory's limit also dies of its runtime's own allocations.
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

// quoted bounds a line that is quoted.
func quoted(line string) string { return strings.TrimSpace(wire.BoundText([]byte(line), 200)) }

// deaths are the ways in which the Go runtime gives up, the most specific first.
var deaths = []struct {
	mark    string
	quote   bool
	unclear bool // near its memory's limit it also dies so, as its own allocations fail first
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
