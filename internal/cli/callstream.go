package cli

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/recurgentd/recurgentd/internal/cli/text"
	"github.com/recurgentd/recurgentd/internal/client"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
)

// patience is how long a stage lasts before the reason for the wait is reported.
const patience = 10 * time.Second

// stages reports a call's progress on stderr: on a terminal one line that changes, otherwise one line per stage. For a
// long stage it also reports what the call waits for. It is safe for concurrent use.
type stages struct {
	sh   Shell
	what string // role.method
	spin *spinner

	mu      sync.Mutex
	waiting string      // the reason for waiting; guarded by mu
	timer   *time.Timer // fires late in the stage; guarded by mu
	ended   bool        // guarded by mu
}

// newStages starts the report of a call. The caller must call stop.
func newStages(sh Shell, r client.CallRequest) *stages {
	what := text.Clean(r.Role+"."+r.Method, 40)
	s := &stages{sh: sh, what: what, spin: startSpinner(sh, what+": started"),
		waiting: "the daemon has not started the call"}
	s.timer = time.AfterFunc(patience, s.late)
	return s
}

// stop ends the report. A timer that fires afterwards prints nothing.
func (s *stages) stop() {
	s.mu.Lock()
	s.ended = true
	s.timer.Stop()
	s.mu.Unlock()
	s.spin.stop()
}

// say reports a stage, and sets what the call waits for in it.
func (s *stages) say(stage, waiting string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = waiting
	s.timer.Reset(patience)
	s.print(stage)
}

// late reports what the call waits for.
func (s *stages) late() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended && s.waiting != "" {
		s.print("waiting: " + s.waiting)
	}
}

// print reports words. The caller holds mu.
func (s *stages) print(words string) {
	s.spin.say(s.what + ": " + words)
	if _, terminal := s.sh.terminal(s.sh.Stderr); !terminal {
		fmt.Fprintf(s.sh.Stderr, "%s: %s\n", s.what, words)
	}
}

func (s *stages) Started(callID string) {
	s.say("started as "+text.Clean(callID, 0), "the daemon has not said what the call does")
}

func (s *stages) Connected(gone error) {
	if gone != nil {
		s.say("connecting again: "+text.Clean(gone.Error(), 0), "the daemon cannot be reached; the call may still run")
	}
}

func (s *stages) Event(e client.Event) {
	if words, waiting := stage(e); words != "" {
		s.say(words, waiting)
	}
}

// stage returns a description of an event and of what the call then waits for, or "" for an unknown event.
func stage(e client.Event) (words, waiting string) {
	var d struct {
		Kind, Trigger, Decision, Reason string
		Stage                           string
		Ahead                           int
		ErrorType                       string `json:"error_type"`
		ErrorMessage                    string `json:"error_message"`
	}
	if json.Unmarshal(e.Data, &d) != nil {
		return "", ""
	}
	trigger := " (" + text.Clean(d.Trigger, 40) + ")"
	switch e.Type {
	case progress.Queued:
		return "queued behind " + text.Plural(d.Ahead, "call"),
			"the calls of a session run in order, and earlier ones have not ended"
	case progress.Gate:
		return "the program is at the gate", "the new program is checked and compiled"
	case progress.Building:
		return "compiling the stored program", "the compiler has not ended"
	case progress.Selected:
		return text.Clean("selected: "+d.Decision+" ("+d.Reason+")", 0), "the program has not ended"
	case progress.Forging:
		if d.Kind == "repair" {
			return "repairing" + trigger, "the model has not sent the repaired program"
		}
		return "forging" + trigger, "the model has not sent the program"
	case progress.Running:
		return "running a new program" + trigger, "the program has not ended"
	case progress.AttemptFailed:
		return text.Clean("failed in "+d.Stage+": "+d.ErrorType+": "+d.ErrorMessage, 0),
			"the daemon decides how to recover"
	}
	return "", ""
}
