package sandbox

import (
	"os"

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
