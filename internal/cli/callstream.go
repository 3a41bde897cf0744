package cli

import (
	"encoding/json"
	"fmt"

	"github.com/recurgentd/recurgentd/internal/cli/text"
	"github.com/recurgentd/recurgentd/internal/client"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
)

// stages reports a call's progress on stderr: one line that changes on a terminal, a line a stage elsewhere.
type stages struct {
	sh   Shell
	what string // role.method
	spin *spinner
}

func newStages(sh Shell, r client.CallRequest) *stages {
	what := text.Clean(r.Role+"."+r.Method, 40)
	return &stages{sh: sh, what: what, spin: startSpinner(sh, what+": started")}
}

func (s *stages) say(stage string) {
	s.spin.say(s.what + ": " + stage)
	if _, terminal := s.sh.terminal(s.sh.Stderr); !terminal {
		fmt.Fprintf(s.sh.Stderr, "%s: %s\n", s.what, stage)
	}
}

func (s *stages) Started(callID string) { s.say("started as " + text.Clean(callID, 0)) }

func (s *stages) Connected(gone error) {
	if gone != nil {
		s.say("connecting again: " + text.Clean(gone.Error(), 0))
	}
}

func (s *stages) Event(e client.Event) {
	if words := stage(e); words != "" {
		s.say(words)
	}
}

// stage says an event in words, or "" for one that is not known.
func stage(e client.Event) string {
	var d struct {
		Kind, Trigger, Decision, Reason string
		Stage                           string
		Ahead                           int
		ErrorType                       string `json:"error_type"`
		ErrorMessage                    string `json:"error_message"`
	}
	if json.Unmarshal(e.Data, &d) != nil {
		return ""
	}
	trigger := " (" + text.Clean(d.Trigger, 40) + ")"
	switch e.Type {
	case progress.Queued:
		return "queued behind " + text.Plural(d.Ahead, "call")
	case progress.Gate:
		return "the program is at the gate"
	case progress.Selected:
		return text.Clean("selected: "+d.Decision+" ("+d.Reason+")", 0)
	case progress.Forging:
		if d.Kind == "repair" {
			return "repairing" + trigger
		}
		return "forging" + trigger
	case progress.Running:
		return "running a new program" + trigger
	case progress.AttemptFailed:
		return text.Clean("failed in "+d.Stage+": "+d.ErrorType+": "+d.ErrorMessage, 0)
	}
	return ""
}
