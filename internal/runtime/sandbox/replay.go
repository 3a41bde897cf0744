package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
)

// A Recording is a call that has ended, as the log and its effect journal record it.
type Recording struct {
	// Program, Owner, names, Args, Kwargs, Depth, Timeout; what the journal holds comes from there
	Request
	Journal     json.RawMessage // the call's Effects.Journal; nil when it took nothing from outside
	Value       json.RawMessage // how it ended: a value,
	Authored    *AuthoredError  // the program's own error,
	FailureType string          // or the type of a failure
}

// A Comparison is a recording beside its second run.
type Comparison struct {
	Equal    bool   // byte for byte
	Recorded string // how the call ended, in one line
	Replayed string // how its second run ended
	Diverged string // not "": the second run asked for what the journal does not have; the two cannot be compared
}

// Replay runs the program again on the same input and the same effects, with nothing real outside, and says whether
// it ends in the same bytes. The host is asked only for what the journal holds as a digest: the session's history and
// contents, as they were at the call.
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

// ending is the end of a call in one line. Of a failure the type alone counts: its message may name an address.
func ending(value json.RawMessage, authored *AuthoredError, failure string) string {
	switch {
	case failure != "":
		return "failure " + failure
	case authored != nil:
		return fmt.Sprintf("error %s %q", authored.Type, authored.Message)
	}
	return "value " + string(value)
}
