package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
)

// A Recording is an ended call, as the log and its effect journal record it.
type Recording struct {
	// Request needs Program, Owner, names, Args, Kwargs, Depth and Timeout. The journal supplies the rest.
	Request
	Journal     json.RawMessage // the call's Effects.Journal; nil if it took nothing from outside
	Value       json.RawMessage // set if the call ended in a value
	Authored    *AuthoredError  // set if it ended in the program's own error
	FailureType string          // set if it ended in a failure
}

// A Comparison compares a recording with its replay.
type Comparison struct {
	Equal    bool   // both ended alike: values and errors byte for byte, failures by type
	Recorded string // end of the recorded call, in one line
	Replayed string // end of the replay, in one line
	// Diverged is why the two cannot be compared: the replay asked for something that the journal lacks. It is "" if
	// they can.
	Diverged string
}

// Replay runs the program again on the same input and the recorded effects, without access to anything real, and
// compares the ends. The host is asked only for answers that the journal holds as a digest: the session's history and
// contents as of the recorded call. The error means that the replay could not be made.
func Replay(ctx context.Context, s Sandbox, rec Recording, h Host) (Comparison, error) {
	req := rec.Request
	req.Recorded = rec.Journal
	if req.Recorded == nil {
		req.Recorded = EmptyJournal()
	}
	var form journalForm
	if err := json.Unmarshal(req.Recorded, &form); err != nil {
		return Comparison{}, fmt.Errorf("the effect journal cannot be read: %w", err)
	}
	if form.V != journalVersion {
		return Comparison{}, fmt.Errorf("the effect journal has version %d, this daemon reads %d", form.V,
			journalVersion)
	}
	if form.Context != nil {
		req.Context = form.Context
	}
	if form.InputHistory != nil {
		req.InputHistory = form.InputHistory
	}
	res := s.Run(ctx, req, h)
	if res.Failure != nil && res.Failure.Ours {
		return Comparison{}, fmt.Errorf("the program could not be run: %s", res.Failure.Message)
	}
	c := Comparison{Recorded: ending(rec.Value, rec.Authored, rec.FailureType),
		Replayed: ending(res.Value, res.Authored, "")}
	if res.Failure != nil {
		c.Replayed = ending(nil, nil, res.Failure.Type)
		if res.Failure.Detail == DetailDiverged {
			c.Diverged = res.Failure.Message
		}
	}
	c.Equal = c.Diverged == "" && c.Recorded == c.Replayed
	return c, nil
}

// ending describes the end of a call in one line. Only the type of a failure counts, because its message may name an
// address.
func ending(value json.RawMessage, authored *AuthoredError, failure string) string {
	switch {
	case failure != "":
		return "failure " + failure
	case authored != nil:
		return fmt.Sprintf("error %s %q", authored.Type, authored.Message)
	}
	return "value " + string(value)
}
